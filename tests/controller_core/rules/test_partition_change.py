"""Leader, ISR and epochs of changed partitions: each function compared with one partition after another."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model import Cluster
from controller_core.model.changes import PartitionStates, RequestsToBrokers
from controller_core.model.columns import pad, unpad
from controller_core.model.mode_rules import ZOOKEEPER_RULES, ModeRules
from controller_core.rules.election_columns import elect_offline
from controller_core.rules.partition_change import (
    NewState,
    change_isr,
    change_leaders,
    change_states,
    check_states,
    next_partition_epoch,
    raise_epochs,
    shrink_isr,
)
from tests.controller_core.cases import MAX_BROKER, PartitionCase, ids, partition_cases

LAZY_RULES = replace(ZOOKEEPER_RULES, isr_shrink_raises_leader_epoch=False, empty_isr_allowed=True)
RULES = st.sampled_from([ZOOKEEPER_RULES, LAZY_RULES])
CASES = st.lists(partition_cases(), min_size=1, max_size=20)
Row = tuple[int, int, tuple[int, ...]]


def cluster_of(cases: Sequence[PartitionCase], rules: ModeRules = ZOOKEEPER_RULES) -> Cluster:
    """Build a cluster with these partitions; the leader epoch of each is its row, the partition epoch is 7."""
    cluster = Cluster(1000, 1, rules)
    topic = cluster.add_topic("orders", None)
    rows = np.arange(len(cases), dtype=np.int32)
    cluster.columns.record_ids(np.array([MAX_BROKER], dtype=np.int32))
    topic.rows = cluster.columns.add(topic.index, rows, pad([case.assignment for case in cases]))
    leaders = np.array([case.leader for case in cases], dtype=np.int32)
    cluster.columns.set_states(rows, leaders, rows, pad([case.isr for case in cases]), rows * 0 + 7, 1)
    return cluster


def rows_of(change: PartitionStates | None) -> dict[int, Row]:
    """Return a change by row: leader, leader epoch and ISR."""
    if change is None:
        return {}
    columns = zip(change.rows.tolist(), change.leader.tolist(), change.leader_epoch.tolist(), change.isr, strict=True)
    return {row: (leader, epoch, unpad(isr)) for row, leader, epoch, isr in columns}


@given(CASES, st.sets(ids()), RULES)
def test_a_new_leader_has_the_next_leader_epoch(cases: list[PartitionCase], live: set[int], rules: ModeRules) -> None:
    """C4, with any rules."""
    cluster = cluster_of(cases, rules)
    rows = np.arange(len(cases), dtype=np.int32)
    replicas, isr = cluster.columns.replicas[rows], cluster.columns.isr[rows]
    elections = elect_offline(replicas, isr, cluster.columns.flags(live), np.zeros(len(rows), dtype=np.bool_))
    expected = {
        row: (int(elections.leader[row]), row + 1, unpad(elections.isr[row]))
        for row in rows.tolist()
        if elections.elected[row]
    }

    change = change_leaders(cluster, rows, elections)

    assert rows_of(change) == expected
    if change is not None:
        check_states(cluster, change)


@given(CASES, st.sets(ids()), RULES)
def test_a_smaller_isr_raises_the_leader_epoch_depending_on_the_rules(
    cases: list[PartitionCase], gone: set[int], rules: ModeRules
) -> None:
    """ZooKeeper mode: always. KRaft: not since metadata.version 3.6 (PartitionChangeBuilder)."""
    cluster = cluster_of(cases, rules)
    rows = np.arange(len(cases), dtype=np.int32)
    expected = {
        row: (case.leader, row + (rules is ZOOKEEPER_RULES), tuple(broker for broker in case.isr if broker not in gone))
        for row, case in enumerate(cases)
    }

    change = shrink_isr(cluster, rows, ~np.isin(cluster.columns.isr[rows], list(gone)))

    assert rows_of(change) == expected


@given(CASES)
def test_the_same_state_is_sent_again_with_the_next_leader_epoch(cases: list[PartitionCase]) -> None:
    """Brokers ignore a LeaderAndIsr with an epoch that they know."""
    expected = {row: (case.leader, row + 1, tuple(case.isr)) for row, case in enumerate(cases)}

    assert rows_of(raise_epochs(cluster_of(cases), range(len(cases)))) == expected


@given(CASES)
def test_an_isr_requested_by_its_leader_keeps_the_leader_epoch(cases: list[PartitionCase]) -> None:
    """KIP-497: the leader would be fenced otherwise."""
    wanted = [tuple(reversed(case.assignment)) for case in cases]
    expected = {row: (case.leader, row, wanted[row]) for row, case in enumerate(cases)}

    change = change_isr(cluster_of(cases), range(len(cases)), wanted, [False] * len(cases))

    assert rows_of(change) == expected
    assert change is not None
    assert change.requests is RequestsToBrokers.METADATA_ONLY


def test_the_end_of_a_move_is_written_with_its_replicas() -> None:
    """C9: leader, ISR and replicas change together, with the next leader epoch."""
    cluster = cluster_of([PartitionCase([1, 2, 3], [1, 2, 3], 1, set(), set(), unclean_allowed=False)])

    change = change_states(cluster, [NewState(0, 2, (2, 3), replicas=(2, 3))])

    assert change is not None
    assert change.replicas is not None
    assert (rows_of(change), change.replicas.tolist()) == ({0: (2, 1, (2, 3))}, [[2, 3]])


def test_nothing_to_change_is_no_change() -> None:
    """A decision without changes writes nothing."""
    cluster, none = cluster_of([]), np.zeros(0, dtype=np.int32)
    isr = cluster.columns.isr[none]

    changes = [
        shrink_isr(cluster, none, isr >= 0),
        raise_epochs(cluster, []),
        change_states(cluster, []),
        change_isr(cluster, [], [], []),
    ]

    assert changes == [None] * 4


def test_partition_epochs_grow_by_one() -> None:
    """One partition or many."""
    assert (next_partition_epoch(4), next_partition_epoch(np.array([0, 7])).tolist()) == (5, [1, 8])


@pytest.mark.parametrize(("rules", "is_sound"), [(ZOOKEEPER_RULES, False), (LAZY_RULES, True)])
def test_invariants_are_checked_by_the_clusters_rules(rules: ModeRules, is_sound: bool) -> None:
    """C2 and C4: an empty ISR, and a leader epoch that stays with its leader."""
    cluster = cluster_of([PartitionCase([1, 2], [1], -1, set(), set(), unclean_allowed=False)], rules)
    row, kept = np.zeros(1, dtype=np.int32), np.zeros((1, cluster.columns.width), dtype=np.bool_)
    change = shrink_isr(cluster, row, kept)
    assert change is not None

    found = None
    try:
        check_states(cluster, change)
    except AssertionError as error:
        found = str(error)[:2]

    assert found == (None if is_sound else "C2")
