"""Replica placement with Kafka's formula (protocol notes, Z66; invariants C3 and C11)."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.rules.placement import (
    MAX_PARTITIONS,
    PlacementError,
    Racks,
    fixed_start_index,
    place_added,
    place_replicas,
)
from tests.controller_core.cases import clusters
from tests.twins.placement import place_replicas_plain

NUMBERS = st.integers(0, 1000)


@given(clusters(), st.integers(1, 60), st.integers(1, 12), st.tuples(NUMBERS, NUMBERS), st.integers(0, 40))
def test_columns_agree_with_the_plain_twin(
    brokers: Racks, partitions: int, factor: int, drawn: tuple[int, int], first: int
) -> None:
    """The fast code and its plain twin have the same results."""
    factor, (start, shift) = min(factor, len(brokers)), drawn

    expected = place_replicas_plain(brokers, partitions, factor, start, shift, start_partition_id=first)

    assert place_replicas(brokers, partitions, factor, start, shift, start_partition_id=first).tolist() == expected


@pytest.mark.shows("C3")
@given(clusters(), st.integers(1, 200), NUMBERS, NUMBERS)
def test_replicas_of_a_partition_are_on_distinct_brokers(
    brokers: Racks, partitions: int, start: int, shift: int
) -> None:
    """Invariant C3."""
    placed = place_replicas(brokers, partitions, len(brokers), start, shift)

    assert np.array_equal(np.sort(placed, axis=1), np.tile(sorted(brokers), (partitions, 1)))


@pytest.mark.shows("C11")
@given(clusters(), st.integers(1, 200), st.integers(1, 12), NUMBERS, NUMBERS)
def test_leaders_per_broker_differ_by_one_at_most(
    brokers: Racks, partitions: int, factor: int, start: int, shift: int
) -> None:
    """Invariant C11, first part."""
    placed = place_replicas(brokers, partitions, min(factor, len(brokers)), start, shift)
    leads = Counter(placed[:, 0].tolist())

    assert max(leads[broker] for broker in brokers) - min(leads[broker] for broker in brokers) <= 1


@pytest.mark.shows("C11")
@given(clusters(racks=False), st.integers(1, 200), st.integers(1, 12), NUMBERS, NUMBERS)
def test_replicas_per_broker_differ_by_the_replication_factor_at_most(
    brokers: Racks, partitions: int, factor: int, start: int, shift: int
) -> None:
    """Invariant C11, second part: without racks each position is a bijection per block of partitions."""
    factor = min(factor, len(brokers))
    placed = place_replicas(brokers, partitions, factor, start, shift)
    holds = Counter(placed.ravel().tolist())

    assert max(holds[broker] for broker in brokers) - min(holds[broker] for broker in brokers) <= factor


@given(clusters(racks=True), st.integers(1, 100), st.integers(1, 12), NUMBERS, NUMBERS)
def test_every_rack_has_a_replica_before_any_has_two(
    brokers: Racks, partitions: int, factor: int, start: int, shift: int
) -> None:
    """With at least as many replicas as racks, each rack has one; with fewer, none has two (AdminUtils, goal 3)."""
    factor = min(factor, len(brokers))
    racks = len(set(brokers.values()))
    placed = place_replicas(brokers, partitions, factor, start, shift)

    used = {len({brokers[broker] for broker in replicas}) for replicas in placed.tolist()}

    assert used == {min(factor, racks)}


def test_the_result_is_a_contiguous_int32_array() -> None:
    """The state is columns; broker ids are int32 in Kafka's protocol."""
    placed = place_replicas({1: None, 2: None}, 3, 2, 0, 0)

    assert ((3, 2), np.int32, True) == (placed.shape, placed.dtype, placed.flags.c_contiguous)


@pytest.mark.parametrize(
    ("brokers", "partitions", "factor", "code", "message"),
    [
        (3, 1, 4, "INVALID_REPLICATION_FACTOR", "Replication factor: 4 larger than available brokers: 3."),
        (0, 1, 1, "INVALID_REPLICATION_FACTOR", "Replication factor: 1 larger than available brokers: 0."),
        (3, 1, 0, "INVALID_REPLICATION_FACTOR", "Replication factor must be larger than 0."),
        (3, 0, 1, "INVALID_PARTITIONS", "Number of partitions must be larger than 0."),
        (3, -1, -1, "INVALID_PARTITIONS", "Number of partitions must be larger than 0."),
    ],
)
def test_an_impossible_placement_is_refused_with_kafkas_message(
    brokers: int, partitions: int, factor: int, code: str, message: str
) -> None:
    """AdminUtils.assignReplicasToBrokers: "Replication factor: 4 larger than available brokers: 3."."""
    with pytest.raises(PlacementError) as refused:
        place_replicas(dict.fromkeys(range(brokers)), partitions, factor, 0, 0)

    assert (code, message) == (refused.value.code, str(refused.value))


def test_racks_on_some_brokers_only_are_refused() -> None:
    """AdminUtils: placement is rack-aware as soon as one broker has a rack; then all need one."""
    with pytest.raises(PlacementError, match="Not all brokers have rack information for replica rack aware assignment"):
        place_replicas({1: "a", 2: None}, 1, 1, 0, 0)


def test_more_partitions_than_the_limit_are_refused_before_memory_is_allocated() -> None:
    """The size of a request is limited."""
    with pytest.raises(PlacementError, match=f"request at most {MAX_PARTITIONS}"):
        place_replicas({1: None}, MAX_PARTITIONS + 1, 1, 0, 0)


@given(clusters(), st.integers(1, 30), st.integers(1, 30), st.integers(1, 5), st.integers(0, 2000))
def test_added_partitions_continue_a_topic_that_started_at_the_same_index(
    brokers: Racks, current: int, added: int, factor: int, first_replica: int
) -> None:
    """AdminZkClient.createNewPartitionsAssignment: one number, from partition 0's first replica, is index and shift."""
    factor = min(factor, len(brokers))
    start = fixed_start_index(brokers, first_replica)

    expected = place_replicas_plain(brokers, added, factor, start, start, start_partition_id=current)

    replicas = [first_replica, *range(3000, 3000 + factor - 1)]
    assert place_added(brokers, replicas, current, added).tolist() == expected


@given(clusters(), st.integers(1, 30), st.integers(1, 30), NUMBERS)
def test_added_partitions_keep_leaders_balanced(brokers: Racks, current: int, added: int, start: int) -> None:
    """Invariant C11 for a topic that is created and then grows on the same brokers, without racks."""
    brokers = dict.fromkeys(brokers)
    begun = place_replicas(brokers, current, 1, start, 0)
    grown = place_added(brokers, begun[0].tolist(), current, added)
    leads = Counter([*begun[:, 0].tolist(), *grown[:, 0].tolist()])

    assert max(leads[broker] for broker in brokers) - min(leads[broker] for broker in brokers) <= 1


@pytest.mark.parametrize(("first_replica", "index"), [(1, 0), (3, 1), (4, 2), (5, 2), (6, 0)])
def test_the_start_is_the_first_replica_or_the_next_broker_by_id(first_replica: int, index: int) -> None:
    """AdminZkClient.createNewPartitionsAssignment; a first replica above all brokers starts at the first broker."""
    assert index == fixed_start_index({1: None, 3: None, 5: None}, first_replica)


def test_random_numbers_are_reduced_by_the_number_of_brokers_and_never_overflow() -> None:
    """Callers may generate any numbers; only the remainders matter (three brokers: modulo 3 and 2)."""
    brokers: Racks = {1: "a", 2: "b", 3: "c"}

    expected = place_replicas(brokers, 9, 3, start_index=2, replica_shift=1)

    drawn = place_replicas(brokers, 9, 3, start_index=2 + 3 * 10**18, replica_shift=1 + 2 * 10**18)
    assert np.array_equal(expected, drawn)
