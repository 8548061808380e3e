"""Two brokers of Kafka 4.3 and a light broker replicate each other, while they and their controllers are killed, frozen and cut off the network."""

import random

import pytest

from bench.soaking.mixed import PARTITIONS, Fault, fail_under_load
from lab.peers.mixed_cluster import KAFKAS, LIGHT, STEWARDS, mixed_cluster

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

FAULTS = (("isolate", LIGHT), ("freeze", KAFKAS[0]), ("isolate", KAFKAS[1]), ("kill", LIGHT))
"""A soak has 60."""


def run(faults: tuple[Fault, ...], stewards: tuple[int, ...] = ()) -> None:
    """Let nodes fail under load; it raises an error after a loss or where logs differ."""
    with mixed_cluster(stewards) as cluster:
        (line,) = fail_under_load(cluster, faults, random.Random(20))
        sizes = [len(content) for content in cluster.logs("load-0", PARTITIONS - 1).values()]

    assert line.startswith(f"{len(faults)} faults")
    assert min(sizes) > 0


@pytest.mark.shows("B1", "B2", "F65", "F66")
def test_nothing_is_lost_under_three_controllers_of_which_any_fails() -> None:
    """B1: acks=all with min.insync.replicas 2; an isolated leader still has the clients, and must not acknowledge alone."""
    run(
        (*FAULTS[:2], ("freeze", STEWARDS[0]), ("kill", STEWARDS[1]), ("isolate", KAFKAS[1]), ("kill", STEWARDS[2])),
        STEWARDS,
    )


@pytest.mark.soak("integration/test_mixed_cluster.py::test_nothing_is_lost_under_three_controllers_of_which_any_fails")
def test_nothing_is_lost_under_a_controller_of_kafka() -> None:
    """The same brokers under Kafka's own controller."""
    run(FAULTS)
