"""Two brokers of Kafka 4.3 and a light broker replicate each other, while they are killed, frozen and cut off the network."""

import random

import pytest

from bench.soaking.mixed import PARTITIONS, fail_under_load
from lab.mixed_cluster import KAFKAS, LIGHT, mixed_cluster

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

FAULTS = (("isolate", LIGHT), ("freeze", KAFKAS[0]), ("isolate", KAFKAS[1]), ("kill", LIGHT))
"""A soak has 60."""


@pytest.mark.shows("B1", "B2")
def test_brokers_of_kafka_and_a_light_broker_lose_nothing_and_their_logs_end_equal() -> None:
    """B1: acks=all with min.insync.replicas 2; an isolated leader still has the clients, and must not acknowledge alone."""
    with mixed_cluster() as cluster:
        (line,) = fail_under_load(cluster, FAULTS, random.Random(20))
        sizes = [len(content) for content in cluster.logs("load-0", PARTITIONS - 1).values()]

    assert line.startswith("4 faults")
    assert min(sizes) > 0
