"""Levelling of one resource by moving replicas, those with the most of it per byte first.

Brokers above their range give the surplus. Brokers below it take what they lack, first from brokers above their target, then from
any broker above the lower end of its range. Other resources limit both sides. The module single_changes handles replicas that are
too large for this.
"""

import numpy as np
import numpy.typing as npt

from controller_core.model import BoolArray
from move_planner.bulk_placement import place_in_bulk
from move_planner.grouping import admitted, sums_by_group
from move_planner.plan_state import PlanState
from move_planner.ranges import Ranges, may_give, may_take
from move_planner.request import LoadArray
from move_planner.table import Rows

MAX_PASSES = 16
"""Passes of one kind; each handles most of the rest."""

MAX_FAILED_PASSES = 2
"""Passes without any move before the rest is left as it is."""

FILL_DEPTHS = (0.0, 0.02, 0.1, 0.5)
"""How far brokers below their range are filled, as parts of its width: farther only where replicas are large."""

COST_STEP = 0.02
"""Replicas whose bytes per unit of the resource differ by less than this are ordered by their disturbance of other resources."""

COPIED_ANYWAY = 0.5
"""Factor on the disturbance of a replica that is copied anyway."""

MIXING = 2_654_435_761
"""Knuth's multiplier: the order of rows times any power of it has no pattern."""

OVERSAMPLING = 4
"""Candidates considered, as a multiple of the amount to move: most of the cheapest ones can be placed."""


def level_resource(state: PlanState, ranges: Ranges, number: int, slack: LoadArray, margin: LoadArray) -> None:
    """Bring one resource into its ranges as far as moves can; `slack` as in `leadership_moves`.

    Brokers outside their range are brought `margin` (by broker) beyond its end, to leave headroom for the other resources.
    """
    lower, upper = ranges.lower[number] + margin, ranges.upper[number] - margin
    middle = np.maximum(np.rint(ranges.target[number]).astype(np.int64), lower)
    for ceiling in (lower, upper):
        _exchange(state, ranges, number, slack, (upper, ceiling), shedding=True)
    ceilings = [lower + np.rint((upper - lower) * part).astype(np.int64) for part in FILL_DEPTHS]
    for floor, ceiling in ((middle, lower), *((lower, ceiling) for ceiling in ceilings)):
        _exchange(state, ranges, number, slack, (floor, ceiling), shedding=False)


def _exchange(
    state: PlanState,
    ranges: Ranges,
    number: int,
    slack: LoadArray,
    ends: tuple[LoadArray, LoadArray],
    *,
    shedding: bool,
) -> None:
    """Move replicas from brokers above a floor to brokers below a ceiling: all that givers have above it, or all that takers lack."""
    floor, ceiling = ends
    tried, failed = ~state.free, 0
    for _ in range(MAX_PASSES):
        state.passes += 1
        held = state.broker_load[number]
        over, under = held > ranges.upper[number], held < ranges.lower[number]
        give = np.where(state.open_to & (over if shedding else ~under), np.maximum(0, held - floor), 0)
        takers = state.open_to & (held < ceiling) & (shedding | under)
        if not give.any() or not takers.any():
            return
        headroom = np.where(takers, may_take(state, ranges, slack), 0)
        headroom[number] = np.where(takers, ceiling - held, 0)
        wanted = None if shedding else int((ceiling - held)[takers].sum())
        rows, slots = _pick(state, ranges, number, (give, wanted), slack, tried, headroom.max(axis=1))
        if not rows.size:
            return
        placed = place_in_bulk(state, ranges, rows, slots, number, headroom)
        tried[rows[~placed]] = True
        failed = 0 if placed.any() else failed + 1
        if failed == MAX_FAILED_PASSES:
            return


def _pick(
    state: PlanState,
    ranges: Ranges,
    number: int,
    amounts: tuple[LoadArray, int | None],
    slack: LoadArray,
    tried: BoolArray,
    largest: LoadArray,
) -> tuple[Rows, Rows]:
    """Pick replicas (rows, slots), each row once, until each giver's amount or the wanted total is reached."""
    give, wanted = amounts
    replicas = state.table.replicas
    rows, slots = np.nonzero((give > 0)[replicas] & ~tried[:, None])
    rows, slots = _cheapest_candidates(state, number, rows, slots, amounts, largest[number])
    loads = state.loads(rows, slots)
    fitting = (loads <= largest[:, None]).all(axis=0)
    rows, slots, loads = rows[fitting], slots[fitting], loads[:, fitting]
    order = _cheapest_first(state, number, rows, slots, loads)
    rows, slots, loads = rows[order], slots[order], loads[:, order]
    givers = replicas[rows, slots]
    giving = may_give(state, ranges, slack)
    giving[number] = np.maximum(0, state.broker_load[number] - ranges.lower[number])
    chosen = admitted(givers, loads, giving)
    by_giver = chosen[np.argsort(givers[chosen], kind="stable")]
    preceding = sums_by_group(givers[by_giver], loads[number, by_giver]) - loads[number, by_giver]
    chosen = np.sort(by_giver[preceding < give[givers[by_giver]]])
    _, first = np.unique(rows[chosen], return_index=True)
    chosen = chosen[np.sort(first)]
    if wanted is not None:
        chosen = chosen[: np.searchsorted(np.cumsum(loads[number, chosen]), wanted) + 1]
    return rows[chosen], slots[chosen]


def _cheapest_candidates(
    state: PlanState, number: int, rows: Rows, slots: Rows, amounts: tuple[LoadArray, int | None], largest: int
) -> tuple[Rows, Rows]:
    """Drop replicas that have more than enough cheaper ones before them in this pass."""
    give, wanted = amounts
    load = state.replica_load[number, rows] + state.leader_load[number, rows] * (slots == 0)
    useful = np.flatnonzero((load > 0) & (load <= largest))
    rows, slots, load = rows[useful], slots[useful], load[useful]
    cost = _cost(state, number, rows, slots)
    if wanted is not None:
        order = np.lexsort((_tie_break(state, rows), cost))
        order = order[: int(np.searchsorted(np.cumsum(load[order]), OVERSAMPLING * wanted)) + 1]
        return rows[order], slots[order]
    givers = state.table.replicas[rows, slots]
    order = np.lexsort((_tie_break(state, rows), cost, givers))
    preceding = sums_by_group(givers[order], load[order]) - load[order]
    order = order[preceding < OVERSAMPLING * give[givers[order]]]
    return rows[order], slots[order]


def _cheapest_first(state: PlanState, number: int, rows: Rows, slots: Rows, loads: LoadArray) -> Rows:
    """Order replicas: fewest bytes for the resource, then least disturbance, followers before leaders, by row.

    A replica that is copied anyway costs nothing, but moving it to another broker may undo its first move: so this only halves
    its disturbance.
    """
    load = loads[number].astype(np.float64)
    step = np.floor(np.log(_cost(state, number, rows, slots)) / COST_STEP).astype(np.int32)
    total = np.maximum(state.broker_load.sum(axis=1), 1)[:, None]
    disturbing = (loads / total).sum(axis=0) / load * np.where(state.costs(rows, slots) > 0, 1.0, COPIED_ANYWAY)
    found: Rows = np.lexsort((_tie_break(state, rows), state.leads(rows, slots), disturbing, step))
    return found


def _tie_break(state: PlanState, rows: Rows) -> Rows:
    """Return sort keys for replicas with the same cost and disturbance.

    With one resource all have the same. Adjacent rows are often on the same brokers then, so the order has no pattern and differs
    in each pass.
    """
    if len(state.replica_load) > 1:
        return rows
    found: Rows = (rows + 1) * pow(MIXING, state.passes, 2**32) % 2**32
    return found


def _cost(state: PlanState, number: int, rows: Rows, slots: Rows) -> npt.NDArray[np.float64]:
    """Return bytes per unit of the resource."""
    load = state.replica_load[number, rows] + state.leader_load[number, rows] * (slots == 0)
    found: npt.NDArray[np.float64] = np.maximum(state.bytes[rows], 1) / load
    return found
