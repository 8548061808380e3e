"""Changes of partition states: construction, epochs, and checks of invariants C1 to C4.

Goals: leader epochs are determined in one place, by the cluster's `ModeRules`, in the same way for one partition and for 200,000.
Constraints: columns only. Elections are in `election` and `election_columns`; the deciding modules request changes.

    function          change                                                 next leader epoch
    change_leaders    leader and ISR as elected                              + 1; a first leader has epoch 0
    shrink_isr        members leave the ISR, the leader stays                + 1 if `isr_shrink_raises_leader_epoch`
    raise_epochs      only the leader epoch: brokers are sent the same       + 1
                      state again, and accept it as new
    change_states     leader, ISR and replicas of a few partitions           + 1
    change_isr        ISR requested by the leader                            unchanged: the leader would be fenced

The partition epoch grows with each change when it is applied (`next_partition_epoch`).

Worked example: partition 0 has leader 1, leader epoch 4 and the ISR 1, 2, 3. Broker 3 leaves: the ISR is 1, 2 with
leader epoch 5. Broker 1 leaves: 2 is elected with the ISR 2 and leader epoch 6. Broker 3 is back and has caught up, and leader 2
requests the ISR 2, 3: the leader epoch stays 6.

`check_states` checks the invariants when a change is applied, in production as in tests. A failed assertion is a defect of this program
and stops the controller. States written by other processes are checked when they are read (`shell.zookeeper.validation`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from controller_core.model import NO_BROKER, NO_EPOCH, NO_LEADER, BoolArray, Cluster, IntArray, Replicas, changes
from controller_core.model.columns import any_of, contained_in, keep_ids, pad, repeats
from controller_core.model.ids import INITIAL_LEADER_EPOCH
from controller_core.rules.election_columns import Elections

Epoch = TypeVar("Epoch", int, IntArray)

assert NO_EPOCH + 1 == INITIAL_LEADER_EPOCH, "the first leader epoch follows from that of a partition without a state"


@dataclass(frozen=True, slots=True)
class NewState:
    """New leader, ISR and replicas (None: unchanged) of one partition."""

    row: int
    leader: int
    isr: Replicas
    replicas: Replicas | None = None
    unclean: bool = False


def next_leader_epochs(cluster: Cluster, rows: IntArray) -> IntArray:
    """Return the next leader epochs: shape (rows,)."""
    epochs: IntArray = cluster.columns.leader_epoch[rows] + 1
    return epochs


def shrunk_leader_epochs(cluster: Cluster, rows: IntArray) -> IntArray:
    """Return the leader epochs after the controller removes members from ISRs: shape (rows,)."""
    if cluster.rules.isr_shrink_raises_leader_epoch:
        return next_leader_epochs(cluster, rows)
    epochs: IntArray = cluster.columns.leader_epoch[rows]
    return epochs


def next_partition_epoch(partition_epoch: Epoch) -> Epoch:
    """Return the partition epoch after a change, of one partition or of many."""
    return partition_epoch + 1


def change_leaders(
    cluster: Cluster, rows: IntArray, elections: Elections, written: BoolArray | None = None
) -> changes.PartitionStates | None:
    """Change partitions as elected, in the rows of `written` (None: where a leader was elected)."""
    chosen = elections.elected if written is None else written
    if not chosen.any():
        return None
    return changes.PartitionStates(
        rows[chosen],
        elections.leader[chosen],
        next_leader_epochs(cluster, rows[chosen]),
        elections.isr[chosen],
        changes.RequestsToBrokers.LEADER_AND_ISR,
        unclean=elections.unclean[chosen],
    )


def shrink_isr(cluster: Cluster, rows: IntArray, kept: BoolArray) -> changes.PartitionStates | None:
    """Remove members that are not kept from ISRs; `kept` has the shape of the rows' ISRs."""
    if not len(rows):
        return None
    columns = cluster.columns
    isr = keep_ids(columns.isr[rows], kept)
    epochs = shrunk_leader_epochs(cluster, rows)
    return changes.PartitionStates(rows, columns.leader[rows], epochs, isr, changes.RequestsToBrokers.LEADER_AND_ISR)


def raise_epochs(cluster: Cluster, rows: Sequence[int]) -> changes.PartitionStates | None:
    """Raise only the leader epochs: brokers accept a state only with a higher one."""
    if not rows:
        return None
    columns, raised = cluster.columns, np.array(rows, dtype=np.int32)
    epochs = next_leader_epochs(cluster, raised)
    return changes.PartitionStates(
        raised, columns.leader[raised], epochs, columns.isr[raised], changes.RequestsToBrokers.LEADER_AND_ISR
    )


def change_states(cluster: Cluster, states: Sequence[NewState]) -> changes.PartitionStates | None:
    """Change the states of a few partitions. Either all of them have new replicas or none has."""
    if not states:
        return None
    replicas = [state.replicas for state in states if state.replicas is not None]
    assert len(replicas) in {0, len(states)}, "either all rows of a change have new replicas or none has"
    rows = np.array([state.row for state in states], dtype=np.int32)
    return changes.PartitionStates(
        rows,
        np.array([state.leader for state in states], dtype=np.int32),
        next_leader_epochs(cluster, rows),
        pad([state.isr for state in states]),
        changes.RequestsToBrokers.LEADER_AND_ISR,
        replicas=pad(replicas) if replicas else None,
        unclean=np.array([state.unclean for state in states], dtype=np.bool_),
    )


def change_isr(
    cluster: Cluster, rows: Sequence[int], isr: Sequence[Replicas], recovering: Sequence[bool]
) -> changes.PartitionStates | None:
    """Change ISRs as requested by leaders, and whether these leaders recover from an unclean election (KIP-704)."""
    if not rows:
        return None
    columns, changed = cluster.columns, np.array(rows, dtype=np.int32)
    return changes.PartitionStates(
        changed,
        columns.leader[changed],
        columns.leader_epoch[changed],
        pad(isr),
        changes.RequestsToBrokers.METADATA_ONLY,
        recovering=np.array(recovering, dtype=np.bool_),
    )


def check_states(cluster: Cluster, change: changes.PartitionStates) -> None:
    """Check C1 to C4 by the cluster's rules before a change is applied; over columns this is cheap."""
    columns, rules, rows = cluster.columns, cluster.rules, change.rows
    replicas = columns.replicas[rows] if change.replicas is None else change.replicas
    led = change.leader != NO_LEADER
    in_isr = any_of(change.isr == change.leader[:, None])
    assert bool((in_isr | ~led).all()), "C1: a leader outside its ISR"
    in_sync = change.isr != NO_BROKER
    assert bool((contained_in(change.isr, replicas) == in_sync).all()), "C2: an ISR outside its replicas"
    assert rules.empty_isr_allowed or bool(any_of(in_sync).all()), "C2: an empty ISR"
    assert not repeats(change.isr).any(), "C3: a replica twice in an ISR"
    assert not repeats(replicas).any(), "C3: a replica twice among the replicas"
    stays, grows = change.leader_epoch == columns.leader_epoch[rows], change.leader_epoch > columns.leader_epoch[rows]
    # The leader that requested its ISR keeps its epoch; brokers accept a LeaderAndIsr only with a higher one.
    if change.requests is changes.RequestsToBrokers.METADATA_ONLY:
        assert bool(stays.all()), "C4: a leader epoch that is not sent to its leader"
    elif rules.isr_shrink_raises_leader_epoch and not rules.move_ends_with_its_isr:
        assert bool(grows.all()), "C4: a leader epoch that does not grow"
    else:
        same_leader = change.leader == columns.leader[rows]
        assert bool((grows | (stays & same_leader)).all()), "C4: a new leader with an old leader epoch"
    if change.elr is not None:
        eligible = change.elr != NO_BROKER
        assert not contained_in(change.elr, change.isr).any(), "C20: an eligible replica in the ISR"
        assert bool((contained_in(change.elr, replicas) == eligible).all()), (
            "C20: an eligible replica outside the replicas"
        )
