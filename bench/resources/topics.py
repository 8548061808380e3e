"""A thousand Topics from `create` to Ready on a real API server, Kafka 4.3, and 3.9 under a Steward controller, compared with kopf (P8).

The baseline is kopf with handlers that do nothing (`kopf_floor`), in the same run, on the same API server, without Kafka: the difference
is the cost of creating topics. Then ten thousand Topics exist: the memory of the process, and the time until a new process has checked
all of them, in which it must write nothing. Writes are those that the API server counts.
"""

import sys
import time
from collections.abc import Iterator

from bench.harness import Better, Effort, Row, Side, duration, limited, promised, side_of
from bench.resources.kopf_floor import LAST_HANDLED
from bench.resources.many_topics import create_and_wait, is_ready, writes
from bench.resources.operator_stage import Stage, kafka_4_stage, operator_stage
from lab.peers.steward import ROOT, StewardOperator
from lab.processes.process import Process
from lab.processes.waiting import SHORTEST_POLL_INTERVAL_S, wait_until

NAME = "topics"
ABOUT = "1,000 Topics to Ready, compared with empty kopf handlers; 10,000 Topics; real API server and brokers (many minutes)"

COUNT, QUICK_COUNT = 1_000, 100
RESIDENT, QUICK_RESIDENT = 10_000, 300
ROUNDS = 5
"""The first two are slower: brokers and API server are cold."""

READY_LIMIT_S, WRITES_LIMIT, MEMORY_LIMIT_MB, RESYNC_LIMIT_S = 15.0, 3.0, 300.0, 60.0
"""The promised limits."""

READY_RATIO = 0.6
"""Promised of the rate of kopf, which creates nothing in Kafka."""

PATIENCE_S = 120.0
FLOOR = "kopf with empty handlers, the same API server, no Kafka"


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of the thousand on both versions of Kafka, then those of the ten thousand."""
    count, resident = (QUICK_COUNT, QUICK_RESIDENT) if effort.quick else (COUNT, RESIDENT)
    rounds = 1 if effort.quick else effort.runs(ROUNDS)
    with kafka_4_stage() as at:
        yield from ready_rows(at, count, rounds)
    with operator_stage() as at:
        yield from ready_rows(at, count, rounds, ".zookeeper")
        yield from resident_rows(at, resident)


def ready_rows(at: Stage, count: int, rounds: int, mode: str = "") -> Iterator[Row]:
    """Yield the time and the writes of a number of Topics; `mode` is the end of the names of rows in ZooKeeper mode."""
    pairs = [(ours(at, count), floor(at, count)) for _ in range(rounds)]
    kafka = "Kafka 3.9 under a Steward controller" if mode else "Kafka 4.3"
    what = f"{count:,} Topics of one partition on {kafka}, from the first create to the last Ready"
    seconds = [mine[0] for mine, _ in pairs], [theirs[0] for _, theirs in pairs]
    ready = duration(f"{NAME}.ready{mode}", what, FLOOR, seconds)
    yield ready if mode else promised(ready, "P8", READY_RATIO)
    yield _limited(f"ready_limit{mode}", what, "s", side_of(seconds[0]), READY_LIMIT_S)
    sides = side_of([mine[1] / count for mine, _ in pairs]), side_of([theirs[1] / count for _, theirs in pairs])
    what = f"writes for each Topic besides its create on {kafka}, as the API server counts them"
    yield Row(f"{NAME}.writes{mode}", what, FLOOR, "writes", Better.LOWER, *sides, rounds)
    yield _limited(f"writes_limit{mode}", what, "writes", sides[0], WRITES_LIMIT)


def ours(at: Stage, count: int) -> tuple[float, float]:
    """Return the seconds until all are Ready, and the writes."""
    namespace = at.namespace("ours")
    with at.operator(namespace):
        at.connect(namespace)
        before = writes(at.api)
        seconds = create_and_wait(at.api, namespace, (f"{namespace}-{index}" for index in range(count)), is_ready)
        return seconds, writes(at.api) - before


def floor(at: Stage, count: int) -> tuple[float, float]:
    """Return the seconds until kopf has handled all, and its writes."""
    namespace = at.namespace("floor")
    command = [sys.executable, "-m", "bench.resources.kopf_floor", str(at.api.kubeconfig), namespace]
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"}
    process = Process("kopf-floor", command, at.folder / namespace, environment=path)

    def handled(topic: dict[str, object]) -> bool:
        metadata = topic["metadata"]
        assert isinstance(metadata, dict)
        return LAST_HANDLED in metadata.get("annotations", {})

    process.launch()
    try:
        create_and_wait(at.api, namespace, ["warm"], handled)
        before = writes(at.api)
        seconds = create_and_wait(at.api, namespace, (f"{namespace}-{index}" for index in range(count)), handled)
        return seconds, writes(at.api) - before
    finally:
        process.kill()


def resident_rows(at: Stage, count: int) -> Iterator[Row]:
    """Yield the memory of a process with this number of Topics, and the time that a new one takes to check all of them."""
    namespace = at.namespace("resident")
    with at.operator(namespace) as process:
        at.connect(namespace)
        create_and_wait(at.api, namespace, (f"{namespace}-{index}" for index in range(count)), is_ready)
        highest = process.process.highest_resident_bytes
    before = writes(at.api), writes(at.api, "events")
    began_s = time.perf_counter()
    with at.operator(namespace) as process:
        wait_until(
            lambda: _reconciled(process) >= count and process.metric("steward_reconciliations_queue_size") == 0,
            timeout_s=PATIENCE_S + count / 10,
            what="the new process has checked all Topics",
            interval_s=SHORTEST_POLL_INTERVAL_S,
        )
        seconds = time.perf_counter() - began_s
        rest = process.process.resident_bytes
    after = writes(at.api), writes(at.api, "events")
    if after != before:
        raise AssertionError(f"{after[0] - before[0]:.0f} writes without a change")
    message = f"with {count:,} Topics"
    yield _limited("memory", f"resident memory {message}, at rest", "MB", side_of([rest / 1e6]), MEMORY_LIMIT_MB)
    most = side_of([highest / 1e6])
    yield _limited("memory_highest", f"resident memory {message}, at its highest", "MB", most, MEMORY_LIMIT_MB)
    what = f"from the start of a process until it has reconciled everything {message} without a write"
    yield _limited("resync", what, "s", side_of([seconds]), RESYNC_LIMIT_S)


def _limited(name: str, what: str, unit: str, figure: Side, limit: float) -> Row:
    return limited(f"{NAME}.{name}", what, unit, figure, limit, "P8")


def _reconciled(process: StewardOperator) -> float:
    return process.metric('steward_reconciliations_successful_total{kind="Topic"}') or 0.0
