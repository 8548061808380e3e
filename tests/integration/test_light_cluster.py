"""Three light brokers under Steward's controller, without Java: kills under load."""

import random

import pytest

from bench.soaking.light import PARTITIONS, kill_under_load
from lab.light_cluster import light_cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

KILLS = 10
"""A soak has 200."""


@pytest.mark.shows("B1", "B2")
def test_brokers_that_are_killed_under_load_lose_nothing_and_their_logs_end_equal() -> None:
    """B1: acks=all with min.insync.replicas 2, a random broker killed with -9 again and again."""
    with light_cluster() as cluster:
        (line,) = kill_under_load(cluster, KILLS, random.Random(20))
        sizes = [len(content) for content in cluster.logs("load-0", PARTITIONS - 1).values()]

    assert line.startswith("10 kills")
    assert min(sizes) > 0
