"""Proposal: the moves, and the load of each broker before and after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from balance_analytics.moves.partition_loads import PartitionLoads
from balance_analytics.moves.planner_request import PlannerSettings, request_of
from controller_core.model.columns import unpad
from kafka_operator.resources.reassignment import Assignment, Partition
from move_planner import Plan, plan_measured
from move_planner.result import Reason
from reconciler.decide.listed import first_few

MAX_UNREACHED = 20
"""Goals that cannot be reached are listed up to this number; the others are counted."""


@dataclass(frozen=True, slots=True)
class BrokerBeforeAfter:
    """One broker: its load before and after, and its target range, by resource in the order of `Proposal.resources`."""

    broker: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SkewBeforeAfter:
    """One resource: the ratio of the highest broker to the mean, before and after, of brokers that are not drained."""

    resource: str
    max_over_mean_before: float
    max_over_mean_after: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """Moves in their order of execution, those that change only leaders first; `base` has the same partitions with their current replicas.

    `kept_unknown` is the number of partitions that are not moved as their load is unknown. `lower_bound_bytes`: see
    `move_planner.bound`.
    """

    moves: tuple[Assignment, ...]
    base: tuple[Assignment, ...]
    leaders_only: int
    copied_bytes: int
    lower_bound_bytes: int
    resources: tuple[str, ...]
    brokers: tuple[BrokerBeforeAfter, ...]
    skew: tuple[SkewBeforeAfter, ...]
    unreached: tuple[str, ...]
    kept_unknown: int

    def figures(self) -> dict[str, Any]:
        """Return everything except the moves, for JSON."""
        return {
            "partitions": len(self.moves),
            "leadersOnly": self.leaders_only,
            "bytesToMove": self.copied_bytes,
            "lowerBoundBytes": self.lower_bound_bytes,
            "loads": "disk: bytes at the window's end; rates: bytes/s, bytes in as p95 of the hours, bytes out as their mean",
            "resources": list(self.resources),
            "skew": [
                {"resource": skew.resource, "before": skew.max_over_mean_before, "after": skew.max_over_mean_after}
                for skew in self.skew
            ],
            "brokers": [
                {"id": broker.broker}
                | {
                    name: {"before": before, "after": after, "lower": lower, "upper": upper}
                    for name, before, after, lower, upper in zip(
                        self.resources, broker.before, broker.after, broker.lower, broker.upper, strict=True
                    )
                }
                for broker in self.brokers
            ],
            "unreached": list(self.unreached),
            "partitionsOfUnknownLoad": self.kept_unknown,
        }


def propose(loads: PartitionLoads, settings: PlannerSettings) -> Proposal:
    """Plan moves for measured loads. Raises ValueError if loads and settings contradict each other."""
    plan = plan_measured(request_of(loads, settings))
    names = [Partition(loads.topic_of(row), int(loads.partition[row])) for row in plan.rows.tolist()]
    return Proposal(
        moves=tuple(Assignment(name, unpad(new)) for name, new in zip(names, plan.replicas, strict=True)),
        base=tuple(Assignment(name, unpad(old)) for name, old in zip(names, loads.replicas[plan.rows], strict=True)),
        leaders_only=int((plan.reasons == Reason.LEADERS.value).sum()),
        copied_bytes=plan.copied_bytes,
        lower_bound_bytes=plan.lower_bound_bytes,
        resources=tuple(resource.name for resource in plan.resources),
        brokers=_brokers(plan),
        skew=_skew(plan),
        unreached=first_few([item.why for item in plan.unreached], MAX_UNREACHED),
        kept_unknown=int((~loads.known).sum()),
    )


def _brokers(plan: Plan) -> tuple[BrokerBeforeAfter, ...]:
    def of(name: str) -> list[tuple[int, ...]]:
        columns = np.array([getattr(resource, name) for resource in plan.resources]).astype(np.int64)
        return [tuple(map(int, column)) for column in columns.T]

    rows = zip(plan.ids.tolist(), of("before"), of("after"), of("lower"), of("upper"), strict=True)
    return tuple(BrokerBeforeAfter(*row) for row in rows)


def _skew(plan: Plan) -> tuple[SkewBeforeAfter, ...]:
    """Compute skew over the brokers that are not drained, as the study does."""
    remaining = ~plan.drained
    found = []
    for resource in plan.resources:
        mean_before, mean_after = (
            max(float(load[remaining].mean()) if remaining.any() else 0.0, 1e-9)
            for load in (resource.before, resource.after)
        )
        highest = [float(load[remaining].max(initial=0)) for load in (resource.before, resource.after)]
        idle = not resource.before.any()
        found.append(
            SkewBeforeAfter(
                resource.name,
                1.0 if idle else highest[0] / mean_before,
                1.0 if idle else highest[1] / mean_after,
            )
        )
    return tuple(found)
