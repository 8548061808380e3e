"""Plans over one load: measured plans with one resource, with preferred leaders balanced by count, cut short by a budget.

The budget does not limit the planning: a plan with a budget is the first part of the same plan without one. Preferred leaders are
balanced within that part.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from controller_core.model import BoolArray, IntArray
from move_planner.ordering import order_by_giver, ordered, within_budget
from move_planner.plan_state import broker_loads
from move_planner.planning import figures, planned
from move_planner.preferred_leaders import balance_preferred_leaders
from move_planner.request import LoadArray, MeasuredRequest, Racks, Resource
from move_planner.result import Plan, Reason
from move_planner.shortfalls import shortfalls
from move_planner.table import new_to


@dataclass(frozen=True, slots=True, eq=False)
class PlanRequest:
    """A request for a plan over one load; fields as in `MeasuredRequest`.

    `loads`: bytes of one replica by partition; without it every replica counts as 1.
    A partition that moves may get another preferred leader, also on an excluded broker.
    """

    replicas: IntArray
    brokers: Racks
    leaders: IntArray | None = None
    loads: LoadArray | None = None
    drained: AbstractSet[int] = frozenset()
    excluded_brokers: AbstractSet[int] = frozenset()
    excluded: BoolArray | None = None
    replication_factor: int | None = None
    budget_bytes: int | None = None
    level: bool = True
    racks: bool = True

    def measured(self) -> MeasuredRequest:
        """Return the equivalent request with one resource, without the budget."""
        partitions = len(self.replicas)
        loads = np.ones(partitions, dtype=np.int64) if self.loads is None else np.asarray(self.loads, dtype=np.int64)
        loaded = loads[loads > 0]
        # The range is at least one replica of the median size wide, if that is more than the tolerance.
        usual = max(1, int(np.median(loaded))) if len(loaded) else 1
        return MeasuredRequest(
            replicas=self.replicas,
            brokers=self.brokers,
            bytes=loads,
            resources=(Resource("load", loads, np.zeros(partitions, dtype=np.int64), unit=usual),),
            drained=self.drained,
            excluded_brokers=self.excluded_brokers,
            excluded=self.excluded,
            leaders=self.replicas[:, 0] if self.leaders is None else self.leaders,
            replication_factor=self.replication_factor,
            level=self.level,
            racks=self.racks,
        )


def plan_moves(request: PlanRequest) -> Plan:
    """Plan moves for a request. Raises ValueError only for a request that contradicts itself."""
    if request.budget_bytes is not None and request.budget_bytes < 0:
        raise ValueError(f"a budget of {request.budget_bytes} bytes is negative")
    measured = request.measured()
    state, ranges, bound = planned(measured)
    table, before = state.table, state.before
    held = broker_loads(before, state.replica_load, state.leader_load, state.no_broker)
    rows, copied, reasons = steps = ordered(state, held, ranges)
    order = order_by_giver(state, held, ranges, steps)
    rows, copied, reasons = rows[order], copied[order], reasons[order]
    kept = within_budget(copied, request.budget_bytes)
    table.replicas[rows[kept:]] = before[rows[kept:]]
    moved = np.zeros(len(before), dtype=np.bool_)
    moved[rows[:kept]] = True
    balance_preferred_leaders(table, moved)
    if not request.level:
        table.replicas[~moved] = before[~moved]
    state.broker_load = broker_loads(table.replicas, state.replica_load, state.leader_load, state.no_broker)
    reordered = np.flatnonzero(~moved & (table.replicas != before).any(axis=1))
    changed = np.concatenate([rows[:kept], reordered])
    return Plan(
        rows=changed,
        replicas=table.ids_of(table.replicas[changed]),
        bytes=np.concatenate([copied[:kept], np.zeros(len(reordered), dtype=np.int64)]),
        reasons=np.concatenate([reasons[:kept], np.full(len(reordered), Reason.LEADERS.value)]).astype(np.int8),
        copied_bytes=int(copied[:kept].sum()),
        copied_replicas=int(new_to(before, table.replicas, state.no_broker).sum()),
        lower_bound_bytes=bound,
        ids=table.ids,
        drained=~table.stays[:-1],
        resources=figures(measured, state, ranges, held),
        unreached=shortfalls(measured, state, ranges, cut=kept < len(copied)),
        cut_steps=len(copied) - kept,
        cut_bytes=int(copied[kept:].sum()),
    )
