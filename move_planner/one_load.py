"""Plans over one load: a measured request with one resource, whose leaders are evened by count, and which a budget cuts short.

The budget is no limit while the plan is made: a plan with a budget is the first part of the same plan without one. Leaders are
evened among what is left then.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from controller_core.model.columns import IntArray
from move_planner.books import held_of
from move_planner.leaders import even_leaders
from move_planner.ordering import one_giver_after_another, ordered, within_budget
from move_planner.planning import figures, planned
from move_planner.request import LoadArray, MeasuredRequest, Racks, Resource
from move_planner.result import Plan, Reason
from move_planner.shortfalls import shortfalls
from move_planner.table import new_to


@dataclass(frozen=True, slots=True, eq=False)
class PlanRequest:
    """A question to the planner about one load; fields as in `MeasuredRequest`.

    `loads`: bytes of one replica by partition; without it every replica counts one.
    """

    replicas: IntArray
    brokers: Racks
    leaders: IntArray | None = None
    loads: LoadArray | None = None
    drained: AbstractSet[int] = frozenset()
    replication_factor: int | None = None
    budget_bytes: int | None = None
    level: bool = True
    racks: bool = True

    def measured(self) -> MeasuredRequest:
        """Return the same as a request with one resource, without the budget."""
        partitions = len(self.replicas)
        loads = np.ones(partitions, dtype=np.int64) if self.loads is None else np.asarray(self.loads, dtype=np.int64)
        loaded = loads[loads > 0]
        # A broker is even with the others within one replica of the usual size, where that is more than the tolerance.
        usual = max(1, int(np.median(loaded))) if len(loaded) else 1
        return MeasuredRequest(
            replicas=self.replicas,
            brokers=self.brokers,
            bytes=loads,
            resources=(Resource("load", loads, np.zeros(partitions, dtype=np.int64), unit=usual),),
            drained=self.drained,
            leaders=self.replicas[:, 0] if self.leaders is None else self.leaders,
            replication_factor=self.replication_factor,
            level=self.level,
            racks=self.racks,
        )


def plan_moves(request: PlanRequest) -> Plan:
    """Plan moves for a request. Raises ValueError for a request that contradicts itself, and for nothing else."""
    if request.budget_bytes is not None and request.budget_bytes < 0:
        raise ValueError(f"a budget of {request.budget_bytes} bytes is negative")
    measured = request.measured()
    books, ranges, bound = planned(measured)
    table, before = books.table, books.before
    held = held_of(before, books.each, books.led, books.nobody)
    rows, copied, reasons = steps = ordered(books, held, ranges)
    order = one_giver_after_another(books, held, ranges, steps)
    rows, copied, reasons = rows[order], copied[order], reasons[order]
    kept = within_budget(copied, request.budget_bytes)
    table.replicas[rows[kept:]] = before[rows[kept:]]
    moved = np.zeros(len(before), dtype=np.bool_)
    moved[rows[:kept]] = True
    even_leaders(table, moved)
    if not request.level:
        table.replicas[~moved] = before[~moved]
    books.held = held_of(table.replicas, books.each, books.led, books.nobody)
    reordered = np.flatnonzero(~moved & (table.replicas != before).any(axis=1))
    changed = np.concatenate([rows[:kept], reordered])
    return Plan(
        rows=changed,
        replicas=table.ids_of(table.replicas[changed]),
        bytes=np.concatenate([copied[:kept], np.zeros(len(reordered), dtype=np.int64)]),
        reasons=np.concatenate([reasons[:kept], np.full(len(reordered), Reason.LEADERS.value)]).astype(np.int8),
        copied_bytes=int(copied[:kept].sum()),
        copied_replicas=int(new_to(before, table.replicas, books.nobody).sum()),
        lower_bound_bytes=bound,
        ids=table.ids,
        drained=~table.stays[:-1],
        resources=figures(measured, books, ranges, held),
        unreached=shortfalls(measured, books, ranges, cut=kept < len(copied)),
        cut_steps=len(copied) - kept,
        cut_bytes=int(copied[kept:].sum()),
    )
