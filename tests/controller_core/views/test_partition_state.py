"""Partition states by Kafka's names."""

import pytest

from controller_core.views.partition_state import PartitionState, partition_state


@pytest.mark.parametrize(
    ("has_leader_and_isr", "leader_is_live", "state"),
    [
        (False, False, PartitionState.NEW),
        (True, True, PartitionState.ONLINE),
        (True, False, PartitionState.OFFLINE),
    ],
)
def test_a_partitions_state_follows_from_its_leader(
    has_leader_and_isr: bool, leader_is_live: bool, state: PartitionState
) -> None:
    """PartitionStateMachine.initializePartitionState."""
    assert partition_state(has_leader_and_isr=has_leader_and_isr, leader_is_live=leader_is_live) == state


def test_states_have_kafkas_names() -> None:
    """The names are those of Kafka's state-change log."""
    assert [state.label for state in PartitionState] == ["NewPartition", "OnlinePartition", "OfflinePartition"]
