"""Copies that give every partition its replicas again, and how long they take.

    lose, remove    the plan of a Reassignment with `goal.removeBrokers` (`move_planner`): replicas go to the brokers that remain
    drain           the drained brokers return with empty disks, and copy all of their replicas; with their volumes, nothing

Replicas of a partition without a leader cannot be copied and stay where they are; brokers that were offline before keep their replicas.
The time is that of the broker that sends or receives the most bytes, at a constant rate. Kafka is not faster than that.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from controller_core.model import NO_BROKER, NO_LEADER, BoolArray, IntArray
from controller_core.model.columns import any_of
from controller_core.views.what_if.scenario import Action, Scenario
from controller_core.views.what_if.snapshot import Snapshot
from move_planner import PlanRequest, plan_moves
from move_planner.request import LoadArray
from move_planner.table import Rows, new_to

DEFAULT_BYTES_PER_SECOND = 50 * 1024 * 1024
"""Rate where none is given and no throttle is set: a common throttle of a move, less than half of a network of 1 Gbit/s."""

SECONDS_PER_HOUR = 3_600


class RateSource(StrEnum):
    """Origin of the rate."""

    GIVEN = "given"
    """The user gave it."""
    THROTTLE = "throttle"
    """The lowest replication throttle that is set on a broker."""
    DEFAULT = "default"
    """An assumption."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Bytes per second that each broker sends, and receives, for the copies."""

    bytes_per_second: int = DEFAULT_BYTES_PER_SECOND
    source: RateSource = RateSource.DEFAULT


@dataclass(frozen=True, slots=True, eq=False)
class Repair:
    """Replicas after the repair (n, width), copied replicas, and bytes by broker number; bytes are None if sizes are unknown.

    `left`: partitions that keep a replica on a broker that leaves, (n,): they have no leader, or too few brokers remain.
    """

    replicas: IntArray
    copied_replicas: int
    left: Rows
    received: LoadArray | None
    sent: LoadArray | None

    @property
    def copied_bytes(self) -> int | None:
        """Bytes of all copies."""
        return None if self.received is None else int(self.received.sum())

    def hours(self, rate: Rate) -> float | None:
        """Hours until the busiest broker has sent and received everything."""
        if self.received is None or self.sent is None:
            return None
        most = max(int(self.received.max(initial=0)), int(self.sent.max(initial=0)))
        return most / rate.bytes_per_second / SECONDS_PER_HOUR


def repair_of(snapshot: Snapshot, scenario: Scenario, leader: IntArray) -> Repair:
    """Return the repair; `leader` are the leaders after a loss or a drain, and the current ones for a removal.

    ValueError for a cluster beyond the limits of the planner.
    """
    columns, gone = snapshot.columns, snapshot.flags(scenario.brokers)
    leaving = gone[columns.target]
    has_leader = leader != NO_LEADER
    if scenario.action is Action.DRAIN:
        copied = leaving & has_leader[:, None]
        left = np.flatnonzero(any_of(leaving) & ~has_leader)
        return _repair(snapshot, columns.target, copied, left, leader)
    planned = _planned(snapshot, scenario, has_leader)
    copied = new_to(columns.target.astype(np.intp), planned.astype(np.intp), NO_BROKER)
    left = np.flatnonzero(any_of(gone[planned]))
    return _repair(snapshot, planned, copied, left, leader)


def _planned(snapshot: Snapshot, scenario: Scenario, has_leader: BoolArray) -> IntArray:
    """Return the replicas of the plan that empties the brokers which leave."""
    columns, leaving = snapshot.columns, frozenset(scenario.brokers)
    offline = {number for number, broker in enumerate(snapshot.brokers) if not broker.live} - leaving
    plan = plan_moves(
        PlanRequest(
            replicas=columns.target,
            brokers={number: broker.rack for number, broker in enumerate(snapshot.brokers) if broker.live},
            leaders=columns.leader,
            loads=columns.bytes,
            drained=leaving,
            excluded_brokers=frozenset(offline),
            excluded=~has_leader,
            level=False,
            racks=False,
        )
    )
    planned = columns.target.copy()
    planned[plan.rows] = plan.replicas
    return planned


def _repair(snapshot: Snapshot, replicas: IntArray, copied: BoolArray, left: Rows, leader: IntArray) -> Repair:
    counts = copied.sum(axis=1)
    size = snapshot.columns.bytes
    if size is None:
        return Repair(replicas, int(counts.sum()), left, None, None)
    received = snapshot.count(np.where(copied, replicas, NO_BROKER).astype(np.int32), size)
    sent = snapshot.count(np.where(counts > 0, leader, NO_LEADER).astype(np.int32), size * counts)
    return Repair(replicas, int(counts.sum()), left, received, sent)
