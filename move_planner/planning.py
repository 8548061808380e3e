"""The phases of planning in their order, and the plan from the resulting state."""

from dataclasses import replace

import numpy as np

from controller_core.model import BoolArray
from move_planner.bound import lower_bound_bytes
from move_planner.leadership_moves import move_leadership
from move_planner.ordering import ordered
from move_planner.plan_state import PlanState, broker_loads, initial_state
from move_planner.ranges import Ranges, ranges_of
from move_planner.request import MAX_TOTAL_LOAD, LoadArray, MeasuredRequest
from move_planner.required_moves import make_required_moves
from move_planner.resource_levelling import level_resource
from move_planner.result import Plan, ResourceFigures
from move_planner.shortfalls import shortfalls
from move_planner.single_changes import MAX_CHANGES, apply_single_changes
from move_planner.table import new_to

ROUNDS = ((1e3, 0.0), (0.5, 0.25), (0.25, 0.25), (0.1, 0.25), (0.1, 0.25), (0.1, 0.25), (0.0, 0.1), (0.0, 0.0))
"""Rounds, each with two parts of a range's width: how far a resource may be disturbed for another one (at first without limit, since
it is levelled later), and how far beyond the end of its range a broker is brought, to leave headroom for the other resources."""

FEW_REPLICAS = 1_000
"""Up to this size single changes take milliseconds and give better plans than bulk changes."""

MAX_CHANGES_OF_FEW = 500
"""Single changes in a plan of few replicas: half of the replicas."""

MARGIN_OF_DEAREST = 0.1
"""The part of that margin for the most expensive resource: its headroom for others costs bytes."""

LEADER_SLACK = (0.0, 0.5, 0.25, 0.1, 0.0)
"""The allowed disturbance for resources that depend on leadership: a broker with many cold leaders first takes hot ones, then gives
cold ones."""

ROUNDS_IGNORING_LEADERS = 5
"""Rounds in which resources that depend on leadership neither limit nor cause replica moves: leadership moves are free."""

SAMPLE = 0.05
"""The part of a resource by whose bytes resources are ordered: about what a slightly uneven cluster moves."""


def plan_measured(request: MeasuredRequest) -> Plan:
    """Plan for a request. Raises ValueError only for a request that contradicts itself."""
    state, ranges, bound = planned(request)
    held = broker_loads(state.before, state.replica_load, state.leader_load, state.no_broker)
    rows, copied, reasons = ordered(state, held, ranges)
    return Plan(
        rows=rows,
        replicas=state.table.ids_of(state.table.replicas[rows]),
        bytes=copied,
        reasons=reasons,
        copied_bytes=int(copied.sum()),
        copied_replicas=int(new_to(state.before[rows], state.table.replicas[rows], state.no_broker).sum()),
        lower_bound_bytes=bound,
        ids=state.table.ids,
        drained=~state.table.stays[:-1],
        resources=figures(request, state, ranges, held),
        unreached=shortfalls(request, state, ranges),
    )


def planned(request: MeasuredRequest) -> tuple[PlanState, Ranges, int]:
    """Return the planned state, the ranges, and the lower bound of copied bytes."""
    state = initial_state(request)
    ranges = ranges_of(state, request)
    bound = lower_bound_bytes(state, ranges, level=request.level, racks=request.racks)
    if state.open_to.any():
        state = _planned(state, ranges, request)
    return state, ranges, bound


def order_of(state: PlanState) -> list[int]:
    """Return the numbers of resources, those that cost the fewest bytes to level first."""
    costs = []
    for number in range(len(state.replica_load)):
        rows = np.flatnonzero(state.free & (state.replica_load[number] > 0))
        load, size = state.replica_load[number, rows], state.bytes[rows].astype(np.float64)
        order = np.argsort(size / np.maximum(load, 1), kind="stable")
        along = np.cumsum(load[order], dtype=np.float64)
        enough = int(np.searchsorted(along, SAMPLE * along[-1])) + 1 if rows.size else 0
        costs.append((float(size[order[:enough]].sum()), number))
    return [number for _, number in sorted(costs)]


def _planned(state: PlanState, ranges: Ranges, request: MeasuredRequest) -> PlanState:
    """Return the planned state: with disturbance of other resources, or without it if that ends worse than its ranges allow."""
    order = order_of(state)
    make_required_moves(state, ranges, order, factor=request.replication_factor, racks=request.racks)
    state.recount()
    if not request.level:
        return state
    first = replace(
        state, table=replace(state.table, replicas=state.table.replicas.copy()), broker_load=state.broker_load.copy()
    )
    before = state.broker_load.copy()
    _level(state, ranges, order, may_disturb=True)
    if not _worse(state, ranges, before):
        return state
    _level(first, ranges, order, may_disturb=False)
    return first


def _level(state: PlanState, ranges: Ranges, order: list[int], *, may_disturb: bool) -> None:
    nothing = np.zeros_like(state.broker_load)
    if state.table.replicas.size <= FEW_REPLICAS:
        apply_single_changes(state, ranges, MAX_CHANGES_OF_FEW, may_disturb=may_disturb)
        state.recount()
        return
    width = (ranges.upper - ranges.lower).astype(np.float64)
    led: BoolArray = np.asarray(state.leader_load.any(axis=1), dtype=np.bool_)
    for attempt, (part, inwards) in enumerate(ROUNDS):
        slack: LoadArray = np.rint(width * (part if may_disturb else 0.0)).astype(np.int64)
        for leeway in LEADER_SLACK if may_disturb else (0.0,):
            if not ranges.outside(state.broker_load, state.open_to).any():
                return
            move_leadership(state, ranges, np.rint(width * leeway).astype(np.int64))
        if not ranges.outside(state.broker_load, state.open_to).any():
            return
        free = may_disturb and attempt < ROUNDS_IGNORING_LEADERS
        slack[led] = np.where(free, MAX_TOTAL_LOAD, slack[led])
        for number in order:
            if not (free and led[number]):
                # A single resource needs no headroom for others.
                deep = (
                    inwards * (MARGIN_OF_DEAREST if number == order[-1] else 1.0)
                    if may_disturb and len(order) > 1
                    else 0.0
                )
                level_resource(state, ranges, number, slack, np.rint(width[number] * deep).astype(np.int64))
                state.recount()
    move_leadership(state, ranges, nothing)
    apply_single_changes(state, ranges, MAX_CHANGES, may_disturb=False)
    state.recount()


def _worse(state: PlanState, ranges: Ranges, before: LoadArray) -> bool:
    """Return whether any resource of a broker is outside its range and worse than before."""
    over = state.broker_load > np.maximum(before, ranges.upper)
    under = state.broker_load < np.minimum(before, ranges.lower)
    worse: BoolArray = (over | under) & state.open_to
    return bool(worse.any())


def figures(
    request: MeasuredRequest, state: PlanState, ranges: Ranges, before: LoadArray
) -> tuple[ResourceFigures, ...]:
    """Return the load of each broker before and after the plan, with its range, by resource."""
    fixed = state.fixed[:-1]
    return tuple(
        ResourceFigures(
            name=resource.name,
            target=np.where(fixed, before[number, :-1], ranges.target[number, :-1]),
            lower=np.where(fixed, before[number, :-1], ranges.lower[number, :-1]),
            upper=np.where(fixed, before[number, :-1], ranges.upper[number, :-1]),
            before=before[number, :-1],
            after=state.broker_load[number, :-1].copy(),
        )
        for number, resource in enumerate(request.resources)
    )
