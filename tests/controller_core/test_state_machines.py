"""States of partitions and replicas (protocol notes, Z60 and Z61)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.cluster import partition_machine, replica_machine
from controller_core.cluster.partition_machine import PartitionState
from controller_core.cluster.replica_machine import ReplicaState
from controller_core.cluster.state_check import ALLOWED, Illegal

PARTITION_TABLE = """
    New          NonExistent
    Online       New Online Offline
    Offline      New Online Offline
    NonExistent  Offline
"""

REPLICA_TABLE = """
    New                 NonExistent
    Online              New Online Offline DeletionIneligible
    Offline             New Online Offline DeletionIneligible
    DeletionStarted     Offline
    DeletionSuccessful  DeletionStarted
    DeletionIneligible  Offline DeletionStarted
    NonExistent         DeletionSuccessful
"""


def legal_pairs(table: str) -> set[tuple[str, str]]:
    """Read a table of targets and their predecessors as pairs (current, target)."""
    rows = [line.split() for line in table.strip().splitlines()]
    return {(current, target) for target, *predecessors in rows for current in predecessors}


def short(label: str, kind: str) -> str:
    """Take the kind out of a state's label."""
    return label.replace(kind, "")


@pytest.mark.parametrize("target", PartitionState)
@pytest.mark.parametrize("current", PartitionState)
def test_a_partition_moves_along_the_table_alone(current: PartitionState, target: PartitionState) -> None:
    """Kafka 3.9's PartitionState.validPreviousStates."""
    pair = (short(current.label, "Partition"), short(target.label, "Partition"))

    assert (pair in legal_pairs(PARTITION_TABLE)) == (partition_machine.check_transition(current, target) is ALLOWED)


@pytest.mark.parametrize("target", ReplicaState)
@pytest.mark.parametrize("current", ReplicaState)
def test_a_replica_moves_along_the_table_alone(current: ReplicaState, target: ReplicaState) -> None:
    """Kafka 3.9's ReplicaState.validPreviousStates."""
    pair = (short(current.label, "Replica"), short(target.label, "Replica"))

    assert (pair in legal_pairs(REPLICA_TABLE)) == (replica_machine.check_transition(current, target) is ALLOWED)


def test_an_illegal_move_says_what_would_be_legal() -> None:
    """Illegal moves are refused; errors tell what happened, to what, and what to do."""
    refused = partition_machine.check_transition(PartitionState.NEW, PartitionState.NON_EXISTENT)

    assert Illegal("NewPartition", "NonExistentPartition", ("OfflinePartition",)) == refused
    assert (
        "cannot go from NewPartition to NonExistentPartition: only OfflinePartition may come before" == refused.message
    )


@given(st.lists(st.sampled_from(PartitionState)), st.sampled_from(PartitionState))
def test_partitions_in_columns_are_checked_as_one_by_one(states: list[PartitionState], target: PartitionState) -> None:
    """The check over columns agrees with the check of one state."""
    expected = [partition_machine.check_transition(state, target) is ALLOWED for state in states]

    assert expected == partition_machine.legal_rows(np.array(states, dtype=np.int8), target).tolist()


@given(st.lists(st.sampled_from(ReplicaState)), st.sampled_from(ReplicaState))
def test_replicas_in_columns_are_checked_as_one_by_one(states: list[ReplicaState], target: ReplicaState) -> None:
    """The check over columns agrees with the check of one state."""
    expected = [replica_machine.check_transition(state, target) is ALLOWED for state in states]

    assert expected == replica_machine.legal_rows(np.array(states, dtype=np.int8), target).tolist()


@pytest.mark.parametrize(
    ("has_state", "leader_is_live", "state"),
    [
        (False, False, PartitionState.NEW),
        (True, True, PartitionState.ONLINE),
        (True, False, PartitionState.OFFLINE),
    ],
)
def test_a_new_controller_reads_a_partitions_state_off_its_leader(
    has_state: bool, leader_is_live: bool, state: PartitionState
) -> None:
    """PartitionStateMachine.initializePartitionState."""
    assert state == partition_machine.initial_state(has_leader_and_isr=has_state, leader_is_live=leader_is_live)


def test_a_new_controller_takes_replicas_on_dead_brokers_as_not_deletable_and_may_then_move_them_offline() -> None:
    """ReplicaStateMachine.initializeReplicaState, and the start-up that follows it."""
    found = replica_machine.initial_state(is_live=False)

    assert ReplicaState.DELETION_INELIGIBLE == found
    assert replica_machine.check_transition(found, ReplicaState.OFFLINE) is ALLOWED
    assert ReplicaState.ONLINE == replica_machine.initial_state(is_live=True)


def test_states_have_kafkas_names() -> None:
    """The state-change log speaks Kafka's language (observability)."""
    assert "NonExistentPartition" == PartitionState.NON_EXISTENT.label
    assert "ReplicaDeletionIneligible" == ReplicaState.DELETION_INELIGIBLE.label
    assert "NonExistentReplica" == ReplicaState.NON_EXISTENT.label
