"""The data path of the light broker and Kafka 4.3, under one librdkafka client: time and the broker's processor time.

Kafka runs twice, as the lab runs it (96 MB, the first compiler tier) and with 256 MB and Java's own compilers and collector; both have taken
2 GiB before the first measured run. In each row the peer is the one of the two that is better there. All brokers take turns.
"""

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.broker_load import Spent, consume, create_topic, delete_topic, measured, produce, produce_one
from bench.harness import Better, Effort, Row, duration, promised, side_of
from lab.peers.kraft import KraftNode, kraft_cluster
from lab.peers.light_broker import LightBroker, light_broker
from lab.processes.process import Process

NAME = "light-broker"
ABOUT = "the light broker's produce and fetch, start and memory, compared with Kafka 4.3 (about 6 minutes)"

RUNS = 3
BATCHES = {"1mib": 1024 * 1024, "16kib": 16 * 1024}
"""Bytes of a batch."""
WARM_BYTES, QUICK_WARM_BYTES = 2 * 1024**3, 16 * 1024**2
RUN_BYTES, QUICK_RUN_BYTES = 512 * 1024**2, 16 * 1024**2
"""Of each run: two seconds of the faster side."""
REST_TOPIC, REST_PARTITIONS = "rest", 100
MEMORY = "MB"

OURS, SMALL_KAFKA, KAFKA = "the light broker", "Kafka 4.3, -Xmx96m, C1", "Kafka 4.3, -Xmx256m"
PEERS = (SMALL_KAFKA, KAFKA)

AT_LEAST: Mapping[str, float] = {"produce_1mib": 1.0, "produce_16kib": 1.2, "consume": 1.0}
"""Least ratio of throughput (P13)."""
CPU_AT_LEAST = 1.0
"""The light broker takes no more processor time a gigabyte than Kafka."""
START_AT_LEAST = 1.0
"""In ZooKeeper mode, next to Kafka 3.9, it is 5 (`start`)."""
MEMORY_AT_LEAST = 2.5
"""Compared with the smaller Kafka."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker."""

    bootstrap: str
    process: Process


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows when all brokers have run."""
    runs = effort.runs(RUNS)
    with light_and_kafka() as brokers:
        yield from _start_rows(brokers, runs)
        for name in PEERS:
            _warm(brokers[name], QUICK_WARM_BYTES if effort.quick else WARM_BYTES)
        spent: dict[str, dict[str, list[Spent]]] = defaultdict(lambda: defaultdict(list))
        for _ in range(runs):
            for name, broker in brokers.items():
                for figure, load in _loads(broker, QUICK_RUN_BYTES if effort.quick else RUN_BYTES):
                    spent[figure][name].append(load)
    for figure, sides in spent.items():
        yield from _load_rows(figure, sides)


@contextlib.contextmanager
def light_and_kafka() -> Iterator[Mapping[str, Broker]]:
    """Yield the three brokers, each alone."""
    with (
        light_broker() as ours,
        kraft_cluster((1,)) as small,
        kraft_cluster((1,), heap="256m", is_small=False) as usual,
    ):
        yield {OURS: _of(ours), SMALL_KAFKA: _of(small[1]), KAFKA: _of(usual[1])}


def _of(node: LightBroker | KraftNode) -> Broker:
    if isinstance(node, LightBroker):
        return Broker(node.bootstrap, node)
    return Broker(node.address, node.process)


def _start_rows(brokers: Mapping[str, Broker], runs: int) -> Iterator[Row]:
    """Restart each broker with 100 partitions: time to the first acknowledged record, and memory then."""
    seconds: dict[str, list[float]] = defaultdict(list)
    memory: dict[str, list[float]] = defaultdict(list)
    for broker in brokers.values():
        create_topic(broker.bootstrap, REST_TOPIC, REST_PARTITIONS)
    for _ in range(runs):
        for name, broker in brokers.items():
            broker.process.terminate()
            started = time.perf_counter()
            broker.process.launch()
            produce_one(broker.bootstrap, REST_TOPIC)
            seconds[name].append(time.perf_counter() - started)
            memory[name].append(broker.process.resident_bytes / 1e6)
    peer = min(PEERS, key=lambda name: side_of(seconds[name]).median)
    what = f"from exec to the first acknowledged record, with {REST_PARTITIONS} partitions"
    yield promised(duration(f"{NAME}.start", what, peer, (seconds[OURS], seconds[peer])), "P13", START_AT_LEAST)
    row = Row(
        f"{NAME}.memory",
        f"resident memory at rest with {REST_PARTITIONS} partitions",
        SMALL_KAFKA,
        MEMORY,
        Better.LOWER,
        side_of(memory[OURS]),
        side_of(memory[SMALL_KAFKA]),
        runs,
    )
    yield promised(row, "P13", MEMORY_AT_LEAST)


def _warm(broker: Broker, total_bytes: int) -> None:
    """Produce in both batch sizes, and consume, until the JVM has compiled the code."""
    for _ in _loads(broker, total_bytes // len(BATCHES)):
        pass


def _loads(broker: Broker, total_bytes: int) -> Iterator[tuple[str, Spent]]:
    """Yield each figure of one broker with its run. Each run has topics of its own, which are deleted."""
    address, pids = broker.bootstrap, [broker.process.pid]
    for name, batch_bytes in BATCHES.items():
        topic = f"load-{name}"
        create_topic(address, topic)
        yield (
            f"produce_{name}",
            measured(pids, total_bytes, lambda: produce(address, topic, batch_bytes, total_bytes)),  # noqa: B023 - runs at once
        )
        if batch_bytes == max(BATCHES.values()):
            yield "consume", measured(pids, total_bytes, lambda: consume(address, topic, total_bytes))  # noqa: B023 - runs at once
        delete_topic(address, topic)


def _load_rows(figure: str, sides: Mapping[str, list[Spent]]) -> Iterator[Row]:
    """Yield the throughput of one figure, and the broker's processor time."""
    rates = {name: [run.mb_per_s for run in runs] for name, runs in sides.items()}
    costs = {name: [run.cpu_s_per_gb for run in runs] for name, runs in sides.items()}
    fastest = max(PEERS, key=lambda name: side_of(rates[name]).median)
    cheapest = min(PEERS, key=lambda name: side_of(costs[name]).median)
    runs = len(rates[OURS])
    what = "values of 1 KiB, one librdkafka client" + ("" if figure == "consume" else ", acks=1")
    row = Row(
        f"{NAME}.{figure}",
        what,
        fastest,
        "MB/s",
        Better.HIGHER,
        side_of(rates[OURS]),
        side_of(rates[fastest]),
        runs,
    )
    yield promised(row, "P13", AT_LEAST[figure])
    row = Row(
        f"{NAME}.{figure}_cpu",
        f"processor time of the broker: {what}",
        cheapest,
        "processor seconds a GB",
        Better.LOWER,
        side_of(costs[OURS]),
        side_of(costs[cheapest]),
        runs,
    )
    yield promised(row, "P13", CPU_AT_LEAST)
