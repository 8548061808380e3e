"""Placement of a million partitions: Steward and AdminUtils.assignReplicasToBrokers of Kafka (P1).

Three figures each: hot, as columns, which the controller works with; hot, as lists of lists, which Java returns; and a new process for
one call, completely measured. Both sides place with the same random numbers and are checked to give the same answer. Then come the rows
of `plan`: moves of placed partitions.
"""

import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.harness import Effort, Row, alternate, duration, promised, throughput, timed
from bench.jvm import Jvm, compiled_peer, whole_command
from bench.planner import plan
from controller_core.model import IntArray
from controller_core.rules.placement import place_replicas

NAME = "placement"
ABOUT = "a million partitions on 100 brokers, compared with Kafka's AdminUtils; a plan of moves (P9)"

BROKERS = 100
REPLICATION_FACTOR = 3
RACKS = 5
START = 17
PARTITIONS = 1_000_000
PEER = "AdminUtils.assignReplicasToBrokers"
AT_LEAST = 5.0

ROOT = Path(__file__).resolve().parents[2]


def place(racks: int, partitions: int = PARTITIONS) -> IntArray:
    """Place as columns; `racks` 0 means brokers without racks."""
    brokers = {broker: f"rack-{broker % racks}" if racks else None for broker in range(BROKERS)}
    return place_replicas(brokers, partitions, REPLICATION_FACTOR, START, START)


def checksum(placed: IntArray) -> int:
    """Compute the checksum of an answer as the peer does."""
    weights = np.arange(1, REPLICATION_FACTOR + 1) * (np.arange(len(placed)) % 1009 + 1)[:, None]
    return int((placed * weights).sum())


def measure(effort: Effort) -> Iterator[Row]:
    """Yield each row when it is measured."""
    with compiled_peer() as jvm:
        for racks in (0, RACKS):
            yield from _hot(jvm, racks, effort)
        yield from _new_process(jvm, effort)
    yield from plan.measure(effort)


def _hot(jvm: Jvm, racks: int, effort: Effort) -> Iterator[Row]:
    columns = timed(functools.partial(place, racks))
    lists = timed(lambda: place(racks).tolist())
    kind, message = ("racks", f"{RACKS} racks") if racks else ("plain", "no racks")
    with jvm.hot("place", str(PARTITIONS), str(racks), str(START), quick=effort.quick) as peer:
        assert checksum(place(racks)) == peer.checksum, "both place the same"
        for form, run in (("columns", columns), ("lists", lists)):
            run()
            seconds = alternate(run, peer.run, effort.runs())
            what = f"place 1 M partitions, {BROKERS} brokers, RF {REPLICATION_FACTOR}, {message}; hot; ours as {form}"
            name, peer_is = f"{NAME}.{kind}.{form}", f"{PEER}, hot, Java lists"
            row = throughput(name, what, peer_is, "partitions/s", PARTITIONS, seconds)
            yield promised(row, "P1", AT_LEAST if form == "columns" else None)


def _new_process(jvm: Jvm, effort: Effort) -> Iterator[Row]:
    """One call in a separate process: the time of the whole command, and that of the call, which is the process's first."""
    ours = [sys.executable, "-m", "bench.planner.placement"]
    peer = jvm.command("once", "place", str(PARTITIONS), "0", str(START))
    pairs = [(whole_command(ours), whole_command(peer)) for _ in range(effort.runs())]
    whole = [mine[0] for mine, _ in pairs], [theirs[0] for _, theirs in pairs]
    first = [mine[1] for mine, _ in pairs], [theirs[1] for _, theirs in pairs]
    message = f"place 1 M partitions, {BROKERS} brokers, RF {REPLICATION_FACTOR}, no racks, as columns"
    yield duration(
        f"{NAME}.whole_command", f"{message}; the whole command", f"{PEER}, start of the JVM included", whole
    )
    yield duration(f"{NAME}.first_call", f"{message}; the first call of a process", f"{PEER}, cold", first)


if __name__ == "__main__":  # run by the whole command: one call, and its nanoseconds
    sys.stdout.write(f"{round(timed(functools.partial(place, 0))() * 1e9)}\n")
