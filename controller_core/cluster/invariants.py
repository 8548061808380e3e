"""Invariants C1 to C4 of partition states before they are applied, checked in production as in tests.

An assertion that fails is a defect of this program, and worth a stop of the controller. Leaves out what others wrote: that is
judged when it is read (`shell.zookeeper.soundness`).
"""

import numpy as np

from controller_core.model.changes import Announcement, PartitionStates
from controller_core.model.cluster import Cluster
from controller_core.model.columns import BoolArray, IntArray, any_of
from controller_core.model.ids import NO_LEADER, NOBODY


def check_states(cluster: Cluster, change: PartitionStates) -> None:
    """Check C1 to C4 by the cluster's rules before they are made true: cheap over columns, and worth a stop of the controller."""
    columns, rules, rows = cluster.columns, cluster.rules, change.rows
    replicas = columns.replicas[rows] if change.replicas is None else change.replicas
    led = change.leader != NO_LEADER
    in_isr = (change.isr == change.leader[:, None]).any(axis=1)
    assert bool((in_isr | ~led).all()), "C1: a leader outside its ISR"
    in_sync = change.isr != NOBODY
    assert bool((among(change.isr, replicas) == in_sync).all()), "C2: an ISR outside its replicas"
    assert rules.empty_isr_allowed or bool(any_of(in_sync).all()), "C2: an ISR without anybody"
    assert not _any_twice(change.isr), "C3: a replica twice in an ISR"
    assert not _any_twice(replicas), "C3: a replica twice among the replicas"
    stays, grows = change.leader_epoch == columns.leader_epoch[rows], change.leader_epoch > columns.leader_epoch[rows]
    # The leader that asked for its ISR keeps its epoch; whoever is told to lead or follow needs a higher one to listen.
    if change.announcement is Announcement.METADATA:
        assert bool(stays.all()), "C4: a leader epoch that its leader does not know"
    elif rules.isr_shrink_raises_leader_epoch or change.replicas is not None:
        assert bool(grows.all()), "C4: a leader epoch that does not grow"
    else:
        same_leader = change.leader == columns.leader[rows]
        assert bool((grows | (stays & same_leader)).all()), "C4: a new leader under an old leader epoch"


def _any_twice(ids: IntArray) -> bool:
    ordered = np.sort(ids, axis=1)
    return bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NOBODY)).any())


def among(inner: IntArray, outer: IntArray) -> BoolArray:
    """Tell which ids of each row are among the ids of that row: slot by slot, so that wide rows cost no memory."""
    found = np.zeros(inner.shape, dtype=np.bool_)
    for slot in outer.T:
        found |= inner == slot[:, None]
    members: BoolArray = found & (inner != NOBODY)
    return members
