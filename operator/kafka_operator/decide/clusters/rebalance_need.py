"""Need for an automatic rebalance: new brokers, brokers to remove, or unbalanced disk usage.

A broker is new as long as it is alive and not noted as one that has its part. One is to go when its pod would leave (scaling), or
when it has been offline for long and no pod is declared for it. Where no pods are declared, a broker that is gone cannot be distinguished from
one that restarts, so none is taken to be gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from kafka_operator.decide.kafka.layout import Layout, Sizes, size_of
from kafka_operator.decide.plans.goals import plan_for_goal
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.resources.auto_rebalance import AutoRebalance, RebalanceRecord
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.quantity import read_bytes
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.reassignment_terms import Goal
from reconciler.resources.metadata import read_time

SETTLE_S = 30.0
"""How long the set of live brokers must be stable before new ones count: several start one after another, for one Reassignment."""

LOST_AFTER_S = 1800.0
"""How long a broker without a declared pod must be offline before it counts as gone: Cruise Control's default delay before self-healing."""

MAX_BROKERS = 100
"""Brokers that one goal may name, as the CRD has it; the others come next."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the farthest broker is from the mean, in percent, and whether a plan would change that."""

    percent: int
    movable: bool


@dataclass(frozen=True, slots=True)
class CurrentState:
    """Current state of a cluster.

    `holders` hold replicas of topics that are not excluded; None if not read. `offline_s` are the seconds since brokers went offline.
    """

    alive: frozenset[int]
    settled: bool = False
    offline_s: Mapping[int, float] = field(default_factory=dict)
    holders: frozenset[int] | None = None
    spread: Spread | None = None
    can_measure: bool = False
    """Whether bytes may be counted now: that costs, and is done at intervals."""


@dataclass(frozen=True, slots=True)
class Need:
    """A Reassignment that is needed."""

    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()

    def goal(self, spec: AutoRebalance) -> dict[str, Any]:
        """Return `spec.goal`."""
        goal: dict[str, Any] = {}
        if self.added:
            goal["addBrokers"] = list(self.added)
        if self.removed:
            goal["removeBrokers"] = list(self.removed)
        if not goal:
            goal["rebalance"] = True
        if spec.excluded_topics:
            goal["excludedTopics"] = list(spec.excluded_topics)
        if spec.max_bytes_moved is not None:
            goal["maxBytesMoved"] = spec.max_bytes_moved
        return goal

    def __str__(self) -> str:
        parts = []
        if self.added:
            parts.append(f"moves replicas to new brokers {_listed(self.added)}")
        if self.removed:
            parts.append(f"decommissions brokers {_listed(self.removed)}")
        return " and ".join(parts) or "rebalances the brokers"


@dataclass(frozen=True, slots=True)
class ReadHolders:
    """See which brokers hold replicas."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Count the bytes of each broker."""


def find_need(
    cluster: Cluster, spec: AutoRebalance, record: RebalanceRecord, current: CurrentState
) -> Need | ReadHolders | None:
    """Return what brokers that came or went make necessary."""
    leaving = pods_that_leave(cluster)
    removed: list[int] = []
    unsure = set(record.brokers) - current.alive - _declared(cluster)
    if current.holders is None and (unsure or (spec.on_brokers_removed and leaving)):
        return ReadHolders()
    if spec.on_brokers_removed and current.holders is not None:
        suspects = leaving | lost_brokers(cluster, current)
        removed = sorted((suspects & current.holders) - set(record.declined))
    added = new_brokers(cluster, record, current) if spec.on_brokers_added and current.settled else []
    if not (added or removed):
        return None
    return Need(tuple(added[:MAX_BROKERS]), tuple(removed[:MAX_BROKERS]))


def new_brokers(cluster: Cluster, record: RebalanceRecord, current: CurrentState) -> list[int]:
    """Return the brokers that are alive and have no part yet, those excepted that are about to leave."""
    return sorted(current.alive - set(record.brokers) - pods_that_leave(cluster))


def find_imbalance(
    spec: AutoRebalance, record: RebalanceRecord, current: CurrentState, now: datetime
) -> Need | Measure | None:
    """Return whether bytes that lie unevenly make a Reassignment necessary."""
    wanted = spec.on_imbalance
    if wanted is None or not current.settled:
        return None
    if record.last_end_time is not None:
        since_s = (now - read_time(record.last_end_time)).total_seconds()
        if since_s < wanted.minimum_interval_s:
            return None
    if current.spread is None:
        return Measure() if current.can_measure else None
    uneven = current.spread.percent >= wanted.threshold_percent and current.spread.movable
    return Need() if uneven else None


def noted(cluster: Cluster, spec: AutoRebalance, record: RebalanceRecord, current: CurrentState) -> RebalanceRecord:
    """Return what is to be noted of brokers and bytes, whether or not a Reassignment is needed.

    A broker that is gone and holds nothing is forgotten, and new if it comes back; removals that are not wanted any more may be
    wanted again.
    """
    brokers, declined = set(record.brokers), set(record.declined)
    if not spec.on_brokers_added:
        brokers |= current.alive - pods_that_leave(cluster)
    if current.holders is not None:
        brokers -= brokers - current.alive - current.holders - _declared(cluster)
        declined &= pods_that_leave(cluster) | (lost_brokers(cluster, current) & current.holders)
    elif not pods_that_leave(cluster) and not lost_brokers(cluster, current):
        declined = set()
    spread = record.spread_percent if current.spread is None else current.spread.percent
    return replace(record, brokers=tuple(sorted(brokers)), declined=tuple(sorted(declined)), spread_percent=spread)


def pods_that_leave(cluster: Cluster) -> AbstractSet[int]:
    """Return the brokers whose pods are not declared any more and are kept as long as they hold replicas."""
    group, maintained = cluster.brokers, cluster.status.broker_replicas
    if group is None or group.replicas is None or maintained is None:
        return frozenset()
    return frozenset(range(group.first_id + group.replicas, group.first_id + maintained))


def lost_brokers(cluster: Cluster, current: CurrentState) -> AbstractSet[int]:
    """Return the brokers that have been offline for long and have no pod declared, where pods are declared at all."""
    if cluster.brokers is None or cluster.brokers.replicas is None:
        return frozenset()
    long_offline = {broker for broker, offline_s in current.offline_s.items() if offline_s >= LOST_AFTER_S}
    return long_offline - current.alive - _declared(cluster)


def _declared(cluster: Cluster) -> AbstractSet[int]:
    group = cluster.brokers
    if group is None or group.replicas is None:
        return frozenset()
    return frozenset(range(group.first_id, group.first_id + group.replicas))


def holders_of(layout: Layout, excluded: Collection[str]) -> frozenset[int]:
    """Return the brokers that hold replicas of topics that are not excluded."""
    return frozenset(
        broker
        for name, topic in layout.topics.items()
        if name not in excluded
        for partition in topic.partitions
        for broker in partition.replicas
    )


def spread_of(spec: AutoRebalance, layout: Layout, sizes: Sizes | None) -> Spread:
    """Return how unevenly bytes lie on the brokers that are alive; without sizes every replica counts one.

    The planner itself is asked whether it could do anything about it: a Reassignment that moves nothing is not worth an approval.
    """
    held = dict.fromkeys(layout.racks, 0)
    for name, topic in layout.topics.items():
        if name in spec.excluded_topics:
            continue
        for partition in topic.partitions:
            size = 1 if sizes is None else size_of(Partition(name, partition.index), sizes)
            for broker in partition.replicas:
                if broker in held:
                    held[broker] += size
    percent = farthest_percent(list(held.values()))
    threshold = 0 if spec.on_imbalance is None else spec.on_imbalance.threshold_percent
    if percent < threshold:
        return Spread(percent, movable=False)
    limit = None if spec.max_bytes_moved is None else read_bytes(spec.max_bytes_moved)
    goal = Goal(rebalance=True, excluded_topics=spec.excluded_topics, max_bytes_moved=limit)
    found = plan_for_goal(goal, layout, sizes)
    return Spread(percent, not isinstance(found, PlanProblem) and found.copied > 0)


def farthest_percent(held: list[int]) -> int:
    """Return how far the farthest number is from the mean, in percent of the mean, rounded down.

    >>> [farthest_percent([100, 100]), farthest_percent([150, 100, 50]), farthest_percent([0, 0]), farthest_percent([])]
    [0, 50, 0, 0]
    """
    total, count = sum(held), len(held)
    if not total:
        return 0
    return max(100 * abs(number * count - total) // total for number in held)


def _listed(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers))
