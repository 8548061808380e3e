"""Make a plan: the phases in their order, and the answer out of the table.

Leaves out each phase's own thought.
"""

import numpy as np

from move_planner.factor import doubled, drop_replicas, make_room
from move_planner.leaders import even_leaders, leads_of
from move_planner.levelling import fill, shed
from move_planner.ordering import new_to, ordered, within_budget
from move_planner.placing import must_place
from move_planner.polishing import polish
from move_planner.request import LoadArray, PlanRequest
from move_planner.result import BrokerFigures, Plan, Reason
from move_planner.shortfalls import shortfalls
from move_planner.table import Rows, Table, table_of
from move_planner.targets import Targets, doubled_bytes, forced_bytes, lower_bound_bytes, targets_of

FEW_REPLICAS = 1_000
"""Up to here single moves, the best each, take milliseconds and are better than moves by the thousand."""


def plan_moves(request: PlanRequest) -> Plan:
    """Plan moves for a request. Raises ValueError for a request that contradicts itself, and for nothing else."""
    table = table_of(request)
    make_room(table, request.replication_factor or 0)
    factors = final_factors(table, request.replication_factor)
    targets = targets_of(table, factors)
    least = lower_bound_bytes(table, targets, factors) if request.level else forced_bytes(table, factors)
    bound = max(least, doubled_bytes(table, factors)) if request.racks else least
    before, held = table.replicas.copy(), table.held.copy()
    if table.stays.any():
        move_all(table, targets, factors, request)
    rows, copied, reasons = ordered(table, before, held, targets)
    kept = within_budget(copied, request.budget_bytes)
    table.replicas[rows[kept:]] = before[rows[kept:]]
    table.recount()
    moved = np.zeros(len(before), dtype=np.bool_)
    moved[rows[:kept]] = True
    even_leaders(table, moved)
    if not request.level:
        table.replicas[~moved] = before[~moved]
    reordered = np.flatnonzero(~moved & (table.replicas != before).any(axis=1))
    rows = np.concatenate([rows[:kept], reordered])
    return Plan(
        rows=rows,
        replicas=table.ids_of(table.replicas[rows]),
        bytes=np.concatenate([copied[:kept], np.zeros(len(reordered), dtype=np.int64)]),
        reasons=np.concatenate([reasons[:kept], np.full(len(reordered), Reason.LEADERS.value)]).astype(np.int8),
        copied_bytes=int(copied[:kept].sum()),
        copied_replicas=int(new_to(before, table.replicas, table.nobody).sum()),
        lower_bound_bytes=bound,
        cut_steps=len(copied) - kept,
        cut_bytes=int(copied[kept:].sum()),
        brokers=_figures(table, targets, before, held),
        unreached=shortfalls(request, table, targets, cut=kept < len(copied)),
    )


def final_factors(table: Table, wanted: int | None) -> Rows:
    """Return the number of replicas that each partition is to have: what is wanted, but no more than brokers that stay."""
    present = table.factors()
    asked = present if wanted is None else np.where(present > 0, wanted, present)
    return np.minimum(asked, max(1, int(table.stays.sum())))


def move_all(table: Table, targets: Targets, factors: Rows, request: PlanRequest) -> None:
    """Change the table into what it is to become; replicas are dropped only where a replication factor is wanted."""
    if request.replication_factor is not None:
        drop_replicas(table, targets, request.replication_factor)
    for slot in range(table.replicas.shape[1]):
        holder = table.replicas[:, slot]
        rows = np.flatnonzero((holder != table.nobody) & ~table.stays[holder])
        must_place(table, targets, rows, np.full(len(rows), slot), keep_racks=False)
    for _ in range(table.replicas.shape[1]):
        rows = np.flatnonzero(table.factors() < factors)
        must_place(table, targets, rows, table.factors()[rows], keep_racks=False)
    if request.racks:
        repair_racks(table, targets)
    if not request.level:
        return
    if table.replicas.size > FEW_REPLICAS:
        shed(table, targets)
        fill(table, targets)
    polish(table, targets)


def repair_racks(table: Table, targets: Targets) -> None:
    """Move second replicas in a rack to racks that have none, where there are such."""
    if not table.racks:
        return
    for _ in range(table.replicas.shape[1]):
        possible = np.minimum(table.racks, table.factors())
        rows = np.flatnonzero(table.racks_of(table.replicas) < possible)
        second = doubled(table, table.replicas[rows])
        rows, second = rows[second.any(axis=1)], second[second.any(axis=1)]
        if not rows.size:
            return
        # The last one: the further right, the less likely it leads.
        slots = second.shape[1] - 1 - second[:, ::-1].argmax(axis=1)
        must_place(table, targets, rows, slots, keep_racks=True)


def _figures(table: Table, targets: Targets, before: Rows, held: LoadArray) -> BrokerFigures:
    return BrokerFigures(
        ids=table.ids,
        drained=~table.stays[:-1],
        target=targets.target[:-1],
        lower=targets.lower[:-1],
        upper=targets.upper[:-1],
        load_before=held[:-1],
        load_after=table.held[:-1],
        leads_before=leads_of(before, table.nobody)[:-1],
        leads_after=leads_of(table.replicas, table.nobody)[:-1],
    )
