"""Appends to a KRaft quorum: Steward voters, and as many of Kafka's TestRaftServer, in turn (P7).

The voter that leads appends records of 256 bytes, one a call, with and without linger. The load rises until a side commits less than
is appended; its figure is the highest growth of a follower's log, which is what a majority has. At a low load the figures are the
times from append to commit, as the leader prints them. `five_voters` and `observers` measure further quorums with these parts.
"""

import contextlib
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Better, Effort, Row, duration, promised, side_of
from bench.quorum.observer_load import READY
from kafka_log.format.names import LOG_SUFFIX
from kafka_wire.records import batch_headers
from lab.peers.quorum import Load, Program, Quorum, QuorumNode, quorum
from lab.processes.process import Process
from lab.processes.waiting import wait_until

NAME = "quorum-appends"
ABOUT = "appends to a quorum of three Steward voters, compared with Kafka's TestRaftServer (fifteen minutes)"

THREE = (1, 2, 3)
RECORD_BYTES = 256
LINGERS_MS = (0, 25)

LOADS_PER_S = (1_000, 2_000, 4_000, 8_000, 12_000, 16_000, 24_000, 32_000, 48_000)
"""Records a second, in this order; a load far above what a voter can commit ends a JVM without memory."""
LEAST_PER_S = 4_000
"""Of these loads, the first for three voters: both sides sustain it."""
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

PEER_HEAP = "1g"
"""More than a test's voter gets, so that appends without a commit do not end it."""
PATIENCE_S = 60.0

_LINE = re.compile(r"Latency \(ms\): ([\d.]+) p75 ([\d.]+) p99")


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds from append to commit."""

    p75_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class Setup:
    """A quorum whose appends are measured."""

    linger_ms: int
    voters: tuple[int, ...] = THREE
    observers: int = 0
    """Replicas outside the quorum that fetch its log (`observer_load`)."""
    least_per_s: int = LEAST_PER_S

    @property
    def description(self) -> str:
        """Text in a row."""
        observers = f", {self.observers} observers that fetch" if self.observers else ""
        return f"linger {self.linger_ms} ms, {len(self.voters)} voters{observers}"

    @property
    def peer(self) -> str:
        """The other side."""
        return f"{len(self.voters)} TestRaftServers of Kafka 4.3 with the same settings"


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of each linger."""
    for linger_ms in LINGERS_MS:
        yield from rows(NAME, Setup(linger_ms), effort)


def rows(benchmark: str, setup: Setup, effort: Effort) -> Iterator[Row]:
    """Yield the rate and the latencies of one setup, by the benchmark's name."""
    yield _rate_row(f"{benchmark}.rate.linger-{setup.linger_ms}", setup, effort)
    yield from _latency_rows(f"{benchmark}.latency.linger-{setup.linger_ms}", setup, effort)


def _rate_row(name: str, setup: Setup, effort: Effort) -> Row:
    runs = effort.runs(1)
    pairs = [[highest(setup, effort, is_steward=is_steward) for is_steward in (True, False)] for _ in range(runs)]
    ours, peer = ([pair[side] for pair in pairs] for side in (0, 1))
    what = f"committed records of {RECORD_BYTES} bytes, one an append, {setup.description}"
    row = Row(name, what, setup.peer, "records/s", Better.HIGHER, side_of(ours), side_of(peer), runs)
    return promised(row, "P7", 0.5)


def _latency_rows(name: str, setup: Setup, effort: Effort) -> Iterator[Row]:
    ours, peer = (latencies(setup, effort, is_steward=is_steward) for is_steward in (True, False))
    what = f"append to commit at {SUSTAINED_PER_S:,} records a second, {setup.description}"
    yield duration(f"{name}.p75", f"{what}, 75th percentile", setup.peer, ([ours.p75_s], [peer.p75_s]))
    p99 = duration(f"{name}.p99", f"{what}, 99th percentile", setup.peer, ([ours.p99_s], [peer.p99_s]))
    yield promised(p99, "P7", 0.5)


def highest(setup: Setup, effort: Effort, *, is_steward: bool) -> float:
    """Return the highest rate of committed records of all loads up to the first that is too high."""
    loads = [load for load in LOADS_PER_S if load >= setup.least_per_s]
    rates = []
    for load_per_s in loads[:1] if effort.quick else loads:
        rates.append(committed_per_s(setup, load_per_s, effort, is_steward=is_steward))
        if rates[-1] < COMMITTED_AT_LEAST * load_per_s:
            break
    return max(rates)


def committed_per_s(setup: Setup, load_per_s: int, effort: Effort, *, is_steward: bool) -> float:
    """Return how many records a follower's log grows by in a second."""
    with _loaded(setup, load_per_s, is_steward=is_steward) as (voters, leader):
        time.sleep(QUICK_S if effort.quick else WARM_UP_S)
        follower = next(node for node_id, node in voters.items() if node_id != leader)
        first, start_s = end_offset(follower), time.perf_counter()
        time.sleep(QUICK_S if effort.quick else MEASURED_S)
        return (end_offset(follower) - first) / (time.perf_counter() - start_s)


def latencies(setup: Setup, effort: Effort, *, is_steward: bool) -> Latencies:
    """Return the last latencies that the leader printed."""
    with _loaded(setup, SUSTAINED_PER_S, is_steward=is_steward) as (voters, leader):
        time.sleep(QUICK_LATENCY_S if effort.quick else LATENCY_S)
        lines: list[tuple[str, str]] = []

        def has_printed() -> bool:
            lines[:] = _LINE.findall(voters[leader].process.log_text())
            return bool(lines)

        wait_until(has_printed, timeout_s=PATIENCE_S, what="a line with latencies")
        p75_ms, p99_ms = map(float, lines[-1])
        return Latencies(p75_ms / 1000, p99_ms / 1000)


@contextlib.contextmanager
def _loaded(setup: Setup, records_per_s: int, *, is_steward: bool) -> Iterator[tuple[Quorum, int]]:
    """Yield a quorum whose leader appends and whose observers fetch, and the leader."""
    running = quorum(
        () if is_steward else setup.voters,
        stewards=setup.voters if is_steward else (),
        program=Program.RAFT_SERVER,
        load=Load(records_per_s, RECORD_BYTES).also_of_steward(),
        heap=PEER_HEAP,
        settings={"controller.quorum.append.linger.ms": str(setup.linger_ms)},
    )
    with contextlib.ExitStack() as stack:
        voters = stack.enter_context(running)
        leader, _ = voters.wait_for_leader()
        if setup.observers:
            port = str(voters[leader].member.port)
            command = [sys.executable, "-m", "bench.quorum.observer_load", port, str(setup.observers)]
            observers = Process("observers", command, voters.folder)
            stack.callback(observers.kill)
            observers.launch()
            observers.wait_until_ready(lambda: READY in observers.log_text(), timeout_s=PATIENCE_S)
        yield voters, leader


def end_offset(node: QuorumNode) -> int:
    """Return the offset after the last whole batch in a voter's log."""
    last: Path = max(node.log_folder.glob(f"*{LOG_SUFFIX}"))
    *_, (_, header) = batch_headers(last.read_bytes())
    return header.last_offset + 1
