"""Leaders and replicas in sync after brokers have left, by the rules of the controller.

    action    rule                                                         in sync afterwards
    lose      elect_offline, unclean elections excluded                    the ISR without the lost brokers
    drain     elect_shutdown                                               the ISR without the drained brokers
    remove    the leader stays if it keeps its replica, else the first     all live replicas of a partition that moved
              live replica of the plan (elect_reassigned)                  (KIP-455: a move ends when they are in sync)

A partition that is offline before stays offline: its leader has failed for another reason. Eligible leader replicas (KIP-966), which
Metadata does not contain, may lead some partitions that count as offline here.
"""

from dataclasses import dataclass

import numpy as np

from controller_core.model import NO_BROKER, NO_LEADER, BoolArray, IntArray
from controller_core.model.columns import any_of
from controller_core.model.partition_health import under_min_isr
from controller_core.rules.election_columns import elect_offline, elect_shutdown
from controller_core.views.what_if.scenario import Action, Scenario
from controller_core.views.what_if.snapshot import Snapshot
from move_planner.request import LoadArray


@dataclass(frozen=True, slots=True, eq=False)
class Outage:
    """Partitions before and after, in rows; `leader` (n,) and `replicas` (n, width) are those after.

    A partition without a leader is offline and does not count as under min.insync.replicas. Of the offline partitions,
    `needs_unclean` have a live replica that is not in sync, and `no_replica_left` have none at all.
    """

    leader: IntArray
    replicas: IntArray
    live: BoolArray
    offline_before: BoolArray
    offline: BoolArray
    under_min_isr_before: BoolArray
    under_min_isr: BoolArray
    needs_unclean: BoolArray
    no_replica_left: BoolArray


def outage_of(snapshot: Snapshot, scenario: Scenario, planned: IntArray) -> Outage:
    """Return the state after brokers have left; `planned` are the replicas of the plan, of which only a removal is the result."""
    columns, live = snapshot.columns, snapshot.live
    gone = snapshot.flags(scenario.brokers)
    remaining = live & ~gone
    in_sync = remaining[columns.isr].sum(axis=1)
    if scenario.action is Action.REMOVE:
        leader, replicas = _leaders_of_plan(snapshot, planned, live), planned
        moved = (planned != columns.target).any(axis=1) & (leader != NO_LEADER)
        in_sync = np.where(moved, live[planned].sum(axis=1), live[columns.isr].sum(axis=1))
        available = live
    else:
        leader, replicas = _leaders_without(snapshot, scenario, gone, remaining), columns.replicas
        available = remaining
    offline = leader == NO_LEADER
    has_live_replica = any_of(available[replicas])
    return Outage(
        leader=leader,
        replicas=replicas,
        live=remaining,
        offline_before=columns.leader == NO_LEADER,
        offline=offline,
        under_min_isr_before=_under(columns.leader, (columns.isr != NO_BROKER).sum(axis=1), columns.min_isr),
        under_min_isr=_under(leader, in_sync, columns.min_isr),
        needs_unclean=offline & has_live_replica,
        no_replica_left=offline & ~has_live_replica,
    )


def _leaders_without(snapshot: Snapshot, scenario: Scenario, gone: BoolArray, remaining: BoolArray) -> IntArray:
    """Elect leaders for the partitions that brokers lead which fail or shut down."""
    columns = snapshot.columns
    rows = np.flatnonzero(gone[columns.leader])
    replicas, isr = columns.replicas[rows], columns.isr[rows]
    if scenario.action is Action.DRAIN:
        elected = elect_shutdown(replicas, isr, snapshot.live, gone)
    else:
        elected = elect_offline(replicas, isr, remaining, np.zeros(len(rows), dtype=np.bool_))
    leader = columns.leader.copy()
    leader[rows] = elected.leader
    return leader


def _leaders_of_plan(snapshot: Snapshot, planned: IntArray, live: BoolArray) -> IntArray:
    """Return the leaders at the end of the moves: then all planned replicas of a partition with a leader are in sync."""
    leader = snapshot.columns.leader.copy()
    rows = np.flatnonzero((leader != NO_LEADER) & ~any_of(planned == leader[:, None]))
    target = planned[rows]
    leader[rows] = elect_offline(target, target, live, np.zeros(len(rows), dtype=np.bool_)).leader
    return leader


def _under(leader: IntArray, in_sync: LoadArray, min_isr: IntArray) -> BoolArray:
    flags: BoolArray = under_min_isr(in_sync, min_isr) & (leader != NO_LEADER)
    return flags
