"""`make soak ARGS="--mixed"`: brokers of Kafka 4.3 and a light broker replicate each other while one after another is killed, frozen or isolated.

With `--stewards` they have three controllers of Steward, which are killed, frozen and isolated too; otherwise one of Kafka 4.3, which runs.

After each fault all replicas are in sync again. After some faults the load is compared with what is read back, and the logs of all replicas
have the same bytes. An isolated leader goes on serving clients, and must not acknowledge a record that no other replica has.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from bench.soaking.checked_load import check_load, print_lines
from lab.checks.traffic import Traffic
from lab.peers.mixed_cluster import STEWARDS, MixedCluster, mixed_cluster

FAULTS = 60
FAULTS_PER_TOPIC = 6
"""Faults until the load is read back, and the next topic begins."""
SHORTEST_S, LONGEST_S = 0.5, 8.0
"""Shorter and longer than the session of a broker: some are fenced, some come back before."""
PARTITIONS = 6
RECORDS_PER_S = 100
NEW_RECORDS = 50
"""Records that must be acknowledged after a fault."""
Fault = tuple[str, int]
"""One of `KINDS`, and a broker or controller."""

REQUEST_TIMEOUT = {"request.timeout.ms": "3000"}
"""A client leaves a leader that cannot commit after this time."""


def soak_mixed(faults: int, seed: int, *, stewards: bool) -> int:
    """Let nodes fail, print a line for each topic, and return the exit status."""
    controllers, source = STEWARDS if stewards else (), random.Random(seed)

    def lines() -> Iterator[str]:
        with mixed_cluster(controllers) as cluster:
            yield from fail_under_load(cluster, _drawn([*cluster, *controllers], faults, source), source)

    return print_lines(lines(), seed)


def _drawn(nodes: Sequence[int], count: int, source: random.Random) -> list[Fault]:
    """Return faults in a random order, in which each node fails in each way before one is repeated."""
    every = [(kind, node) for kind in KINDS for node in nodes]
    rounds = [source.sample(every, len(every)) for _ in range(-(-count // len(every)))]
    return [fault for faults in rounds for fault in faults][:count]


def fail_under_load(cluster: MixedCluster, faults: Sequence[Fault], source: random.Random) -> Iterator[str]:
    """Let nodes fail one after another, and yield a line for each topic of the load. Raises BrokenError and LabError."""
    for first in range(0, len(faults), FAULTS_PER_TOPIC):
        topic, chosen = f"load-{first}", faults[first : first + FAULTS_PER_TOPIC]
        cluster.create(topic, PARTITIONS, min_insync_replicas="2")
        with Traffic(
            cluster.bootstrap, topic, rate_per_s=RECORDS_PER_S, consume=False, producer_settings=REQUEST_TIMEOUT
        ) as traffic:
            for kind, node in chosen:
                with KINDS[kind](cluster, node):
                    time.sleep(source.uniform(SHORTEST_S, LONGEST_S))
                cluster.wait_until_in_sync(topic)
                traffic.wait_for_acks(NEW_RECORDS)
            report = traffic.stop()
        check_load(cluster, topic, PARTITIONS, report)
        yield f"{first + len(chosen)} faults ({', '.join(f'{kind} {node}' for kind, node in chosen)}) | {report.summary()}"


@contextmanager
def _killed(cluster: MixedCluster, node: int) -> Iterator[None]:
    cluster.process(node).kill()
    yield
    cluster.process(node).launch()


@contextmanager
def _frozen(cluster: MixedCluster, node: int) -> Iterator[None]:
    cluster.process(node).pause()
    try:
        yield
    finally:
        cluster.process(node).resume()


@contextmanager
def _isolated(cluster: MixedCluster, node: int) -> Iterator[None]:
    cluster.isolate(node)
    try:
        yield
    finally:
        cluster.network.heal()


KINDS: Mapping[str, Callable[[MixedCluster, int], AbstractContextManager[None]]] = {
    "kill": _killed,
    "freeze": _frozen,
    "isolate": _isolated,
}
"""Fault of a node, for a time."""
