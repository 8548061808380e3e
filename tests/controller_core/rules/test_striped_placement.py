"""Placement in KRaft mode as laws, for any racks, fenced brokers and seeds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.rules.placement import PlacementError
from controller_core.rules.striped_placement import StripedBroker, place_striped


@st.composite
def brokers(draw: st.DrawFn) -> list[StripedBroker]:
    """Brokers, at least one of them in service."""
    ids = draw(st.lists(st.integers(0, 200), min_size=1, max_size=10, unique=True))
    racks = draw(st.sampled_from([[None], ["rack-1", "rack-2"], ["a", "rack-2", "Ω", None]]))
    found = [StripedBroker(broker, draw(st.sampled_from(racks)), draw(st.booleans())) for broker in ids]
    return [StripedBroker(found[0].id, found[0].rack), *found[1:]]


@given(brokers(), st.integers(1, 30), st.integers(1, 5), st.integers(0, 1 << 60))
def test_replicas_are_distinct_and_the_first_is_in_service(
    found: list[StripedBroker], partitions: int, factor: int, seed: int
) -> None:
    """C3 and C11: constraints of StripedReplicaPlacer."""
    factor = min(factor, len(found))

    placed = place_striped(found, partitions, factor, seed=seed).tolist()

    in_service = {broker.id for broker in found if not broker.is_fenced}
    assert all(len(set(replicas)) == factor for replicas in placed)
    assert {replicas[0] for replicas in placed} <= in_service


@given(brokers(), st.integers(1, 30), st.integers(1, 5), st.integers(0, 1 << 60))
def test_replicas_are_in_different_racks_as_long_as_there_are_any(
    found: list[StripedBroker], partitions: int, factor: int, seed: int
) -> None:
    """The first goal of StripedReplicaPlacer."""
    racks = {broker.rack for broker in found}
    rack_of = {broker.id: broker.rack for broker in found}
    factor = min(factor, len(found))

    placed = place_striped(found, partitions, factor, seed=seed).tolist()

    assert all(len({rack_of[replica] for replica in replicas}) == min(factor, len(racks)) for replicas in placed)


@pytest.mark.parametrize(
    ("found", "factor", "code"),
    [
        ([StripedBroker(1)], 2, "INVALID_REPLICATION_FACTOR"),
        ([StripedBroker(1)], 0, "INVALID_REPLICATION_FACTOR"),
        ([StripedBroker(1, is_fenced=True)], 1, "INVALID_REPLICATION_FACTOR"),
    ],
)
def test_impossible_placements_are_refused(found: list[StripedBroker], factor: int, code: str) -> None:
    """As by StripedReplicaPlacer, in its order."""
    with pytest.raises(PlacementError) as refused:
        place_striped(found, 1, factor, seed=0)

    assert refused.value.code == code
