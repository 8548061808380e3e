"""Striped placement of many partitions (invariants C3 and C11; KRaft's StripedReplicaPlacer is the peer)."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.cluster.placement import PlacementError, Racks
from controller_core.cluster.placement_shares import shares_by_rack
from controller_core.cluster.placement_striped import place_striped
from controller_core.cluster.placement_striped_plain import place_striped_plain
from tests.controller_core.cases import clusters

NUMBERS = st.integers(0, 2**40)
PARTITIONS = st.integers(1, 300)


@given(clusters(), PARTITIONS, st.integers(1, 12), NUMBERS)
def test_columns_agree_with_the_plain_twin(brokers: Racks, partitions: int, factor: int, mixed_by: int) -> None:
    """style.md, habit 14: the same partitions, whatever their order within a stripe."""
    factor = min(factor, len(brokers))

    expected = place_striped_plain(brokers, partitions, factor, mixed_by)

    ours = np.sort(place_striped(brokers, partitions, factor, mixed_by), axis=1).tolist()
    assert sorted(expected) == sorted(ours)


@pytest.mark.shows("C3")
@given(clusters(), PARTITIONS, st.integers(1, 12), NUMBERS)
def test_a_partition_is_on_distinct_brokers_in_as_many_racks_as_can_be(
    brokers: Racks, partitions: int, factor: int, mixed_by: int
) -> None:
    """Invariant C3, and StripedReplicaPlacer's first goal."""
    factor = min(factor, len(brokers))
    racks = len(set(brokers.values())) if None not in brokers.values() else 1
    placed = place_striped(brokers, partitions, factor, mixed_by).tolist()

    assert {factor} == {len(set(replicas)) for replicas in placed}
    assert {min(factor, racks)} == {len({brokers[broker] for broker in replicas}) for replicas in placed}


@given(clusters(), PARTITIONS, st.integers(1, 12), NUMBERS)
def test_every_broker_has_its_share_to_the_one(brokers: Racks, partitions: int, factor: int, mixed_by: int) -> None:
    """Invariant C11 asks for replicas per broker within the replication factor; here it is one."""
    factor = min(factor, len(brokers))
    holds = Counter(place_striped(brokers, partitions, factor, mixed_by).ravel().tolist())
    sizes = Counter(brokers.values()) if None not in brokers.values() else dict.fromkeys(brokers, 1)
    share = dict(zip(sizes, shares_by_rack(list(sizes.values()), factor), strict=True))

    for broker, rack in brokers.items():
        assert abs(share[broker if rack is None else rack] * partitions - holds[broker]) < 1  # type: ignore[index]


@given(clusters(), PARTITIONS, st.integers(1, 12), NUMBERS)
def test_leaders_per_broker_differ_by_one_at_most(brokers: Racks, partitions: int, factor: int, mixed_by: int) -> None:
    """Invariant C11, whatever the sizes of racks."""
    factor = min(factor, len(brokers))
    leads = Counter(place_striped(brokers, partitions, factor, mixed_by)[:, 0].tolist())

    assert max(leads[broker] for broker in brokers) - min(leads[broker] for broker in brokers) <= 1


def test_followers_of_one_broker_are_spread_over_all_others() -> None:
    """StripedReplicaPlacer's second goal: when a broker goes, its leaders go to all others, evenly."""
    placed = place_striped(dict.fromkeys(range(20)), 20_000, 3, 7)
    followers = Counter(placed[placed[:, 0] == 4][:, 1:].ravel().tolist())

    assert 19 == len(followers)
    assert max(followers.values()) < 2 * min(followers.values())


def test_a_small_topic_is_spread_as_well() -> None:
    """Partitions that follow each other share no brokers where there are brokers enough."""
    placed = place_striped({broker: f"rack-{broker % 5}" for broker in range(100)}, 10, 3, 0)

    assert 30 == len(set(placed.ravel().tolist()))


def test_the_impossible_is_refused_as_by_the_formula() -> None:
    """Seed 003's words."""
    with pytest.raises(PlacementError, match="larger than available brokers: 1"):
        place_striped({1: None}, 1, 2, 0)
