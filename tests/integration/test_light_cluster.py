"""Three light brokers under Steward's controller, without Java: faults under load."""

import random

import pytest

from bench.soaking.light import ON_DISKS, PARTITIONS, fail_under_load
from lab.faults import slow_disk
from lab.peers.light_cluster import light_cluster

pytestmark = pytest.mark.slow

KILLS = 10
"""A soak has 200."""


@pytest.mark.shows("B1", "B2")
def test_brokers_that_are_killed_under_load_lose_nothing_and_their_logs_end_equal() -> None:
    """B1: acks=all with min.insync.replicas 2, a random broker killed with -9 again and again."""
    with light_cluster() as cluster:
        (line,) = fail_under_load(cluster, ["kill"] * KILLS, random.Random(20))
        sizes = [len(content) for content in cluster.logs("load-0", PARTITIONS - 1).values()]

    assert line.startswith("10 faults (kill: 10)")
    assert min(sizes) > 0


@pytest.mark.shows("B1", "B2")
def test_brokers_whose_disks_are_full_or_slow_under_load_lose_nothing_and_their_logs_end_equal() -> None:
    """B1: a broker without room ends and goes on later, one with a slow disk leaves ISRs and comes back."""
    with light_cluster(with_slow_disks=True) as cluster:
        (line,) = fail_under_load(cluster, [*ON_DISKS, *ON_DISKS], random.Random(21))
        logs = [broker.log_text() for broker in cluster.values()]

    assert line.startswith("4 faults (full disk: 2, slow disk: 2)")
    assert any(slow_disk.MARK in log for log in logs)
    assert any("File too large" in log for log in logs)
