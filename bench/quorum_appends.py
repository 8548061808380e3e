"""Appends to a KRaft quorum of three: three Steward voters, and three of Kafka's TestRaftServer, in turn (P7).

The voter that leads appends records of 256 bytes, one a call, with and without linger. The load rises until a side commits less than
is appended; its figure is the highest growth of a follower's log, which is what a majority has. At a low load the figures are the
times from append to commit, as the leader prints them. Leaves out observers that fetch, and quorums of five.
"""

import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Better, Effort, Row, duration, promised, side_of
from kafka_log.format.names import LOG_SUFFIX
from kafka_wire.records import batch_headers
from lab.quorum import Load, Program, Quorum, QuorumNode, quorum
from lab.waiting import wait_until

NAME = "quorum-appends"
ABOUT = "appends to a quorum of three Steward voters, compared with Kafka's TestRaftServer (fifteen minutes)"

NODES = (1, 2, 3)
RECORD_BYTES = 256
LINGERS_MS = (0, 25)

LOADS_PER_S = (4_000, 8_000, 12_000, 16_000, 24_000, 32_000, 48_000)
"""Records a second, in this order; a load far above what a voter can commit ends a JVM without memory."""
QUICK_LOADS_PER_S = (4_000,)
COMMITTED_AT_LEAST = 0.9
"""Share of a load; the side is at its limit where fewer are committed."""
SUSTAINED_PER_S = 1_000
"""Both sides sustain it without linger: the load of the rows of latencies."""

WARM_UP_S = 12.0
"""The JIT compiler of Kafka's side has compiled its paths by then."""
MEASURED_S = 15.0
QUICK_S = 5.0

LATENCY_S = 75.0
"""TestRaftServer's percentiles are those of its last 30 to 60 seconds: by then, none of the warm-up is left."""
QUICK_LATENCY_S = 12.0

PEER = "three TestRaftServers of Kafka 4.3 with the same settings"
PEER_HEAP = "1g"
"""More than a test's voter gets, so that appends without a commit do not end it."""
PATIENCE_S = 60.0

_LINE = re.compile(r"Latency \(ms\): ([\d.]+) p75 ([\d.]+) p99")


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds from append to commit."""

    p75_s: float
    p99_s: float


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of each linger."""
    for linger_ms in LINGERS_MS:
        yield _rate_row(linger_ms, effort)
        yield from _latency_rows(linger_ms, effort)


def _rate_row(linger_ms: int, effort: Effort) -> Row:
    runs = effort.runs(1)
    pairs = [[highest(linger_ms, effort, is_steward=is_steward) for is_steward in (True, False)] for _ in range(runs)]
    ours, peer = ([pair[side] for pair in pairs] for side in (0, 1))
    what = f"committed records of {RECORD_BYTES} bytes, one an append, linger {linger_ms} ms, three voters"
    name = f"{NAME}.rate.linger-{linger_ms}"
    row = Row(name, what, PEER, "records/s", Better.HIGHER, side_of(ours), side_of(peer), runs)
    return promised(row, "P7", 0.5)


def _latency_rows(linger_ms: int, effort: Effort) -> Iterator[Row]:
    ours, peer = (latencies(linger_ms, effort, is_steward=is_steward) for is_steward in (True, False))
    what = f"append to commit at {SUSTAINED_PER_S:,} records a second, linger {linger_ms} ms, three voters"
    name = f"{NAME}.latency.linger-{linger_ms}"
    yield duration(f"{name}.p75", f"{what}, 75th percentile", PEER, ([ours.p75_s], [peer.p75_s]))
    p99 = duration(f"{name}.p99", f"{what}, 99th percentile", PEER, ([ours.p99_s], [peer.p99_s]))
    yield promised(p99, "P7", 0.5)


def highest(linger_ms: int, effort: Effort, *, is_steward: bool) -> float:
    """Return the highest rate of committed records of all loads up to the first that is too high."""
    rates = []
    for load_per_s in QUICK_LOADS_PER_S if effort.quick else LOADS_PER_S:
        rates.append(committed_per_s(linger_ms, load_per_s, effort, is_steward=is_steward))
        if rates[-1] < COMMITTED_AT_LEAST * load_per_s:
            break
    return max(rates)


def committed_per_s(linger_ms: int, load_per_s: int, effort: Effort, *, is_steward: bool) -> float:
    """Return how many records a follower's log grows by in a second."""
    with _quorum(linger_ms, load_per_s, is_steward=is_steward) as voters:
        leader, _ = voters.wait_for_leader()
        time.sleep(QUICK_S if effort.quick else WARM_UP_S)
        follower = next(node for node_id, node in voters.items() if node_id != leader)
        first, start_s = end_offset(follower), time.perf_counter()
        time.sleep(QUICK_S if effort.quick else MEASURED_S)
        return (end_offset(follower) - first) / (time.perf_counter() - start_s)


def latencies(linger_ms: int, effort: Effort, *, is_steward: bool) -> Latencies:
    """Return the last latencies that the leader printed."""
    with _quorum(linger_ms, SUSTAINED_PER_S, is_steward=is_steward) as voters:
        leader, _ = voters.wait_for_leader()
        time.sleep(QUICK_LATENCY_S if effort.quick else LATENCY_S)
        lines: list[tuple[str, str]] = []

        def has_printed() -> bool:
            lines[:] = _LINE.findall(voters[leader].process.log_text())
            return bool(lines)

        wait_until(has_printed, timeout_s=PATIENCE_S, what="a line with latencies")
        p75_ms, p99_ms = map(float, lines[-1])
        return Latencies(p75_ms / 1000, p99_ms / 1000)


def _quorum(linger_ms: int, records_per_s: int, *, is_steward: bool) -> AbstractContextManager[Quorum]:
    return quorum(
        () if is_steward else NODES,
        stewards=NODES if is_steward else (),
        program=Program.RAFT_SERVER,
        load=Load(records_per_s, RECORD_BYTES, heap=PEER_HEAP).also_of_steward(),
        settings={"controller.quorum.append.linger.ms": str(linger_ms)},
    )


def end_offset(node: QuorumNode) -> int:
    """Return the offset after the last whole batch in a voter's log."""
    last: Path = max(node.log_folder.glob(f"*{LOG_SUFFIX}"))
    *_, (_, header) = batch_headers(last.read_bytes())
    return header.last_offset + 1
