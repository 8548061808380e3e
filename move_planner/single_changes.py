"""Single changes, the best one at a time, for the rest that is left where replicas are large compared with the ranges of brokers.

The broker farthest outside a range, as a part of its target, gives or takes the leadership or the replica that brings both brokers
nearest to their ranges over all resources. Leadership costs nothing and is tried first. Every change lowers the total distance, so
the loop ends. Swaps and chains of changes are not considered.
"""

import numpy as np
import numpy.typing as npt

from move_planner.plan_state import PlanState
from move_planner.ranges import Ranges
from move_planner.request import LoadArray
from move_planner.table import Rows

MAX_CHANGES = 50
"""Single changes in a large plan: each takes up to 0.1 s, and the gain of more is not worth their bytes."""

MAX_CANDIDATES = 2_000
"""Replicas considered for one change: those with a load nearest to the amount to move."""

MIN_GAIN = 1e-9
"""Smaller gains, as a part of a target, are rounding errors."""


def apply_single_changes(state: PlanState, ranges: Ranges, changes: int, *, may_disturb: bool) -> None:
    """Make single changes while one helps. `may_disturb`: a resource of a broker may get worse if others gain more."""
    stuck = np.zeros(state.broker_load.shape, dtype=np.bool_)
    scale = np.maximum(ranges.target, 1)
    for _ in range(changes):
        outside = ranges.outside(state.broker_load, state.open_to) / scale
        outside[stuck] = 0
        number, worst = np.unravel_index(int(outside.argmax()), outside.shape)
        if outside[number, worst] <= 0:
            return
        over = bool(state.broker_load[number, worst] > ranges.upper[number, worst])
        change = (int(number), int(worst), over)
        if _move_one_leader(state, ranges, change, may_disturb=may_disturb) or _move_one_replica(
            state, ranges, change, may_disturb=may_disturb
        ):
            stuck[:] = False
        else:
            stuck[number, worst] = True


def gains(
    state: PlanState, ranges: Ranges, givers: Rows, takers: Rows, loads: LoadArray, *, may_disturb: bool
) -> npt.NDArray[np.float64]:
    """Return by how much each change brings giver and taker nearer to their ranges, in parts of targets.

    Loads have shape (resources, changes). The gain is 0 for a change that brings a broker above a capacity and, without
    `may_disturb`, for one that takes any resource of either broker farther out of its range.
    """
    gain = np.zeros(len(givers))
    allowed = np.ones(len(givers), dtype=np.bool_)
    for number, load in enumerate(loads):
        lower, upper, held = ranges.lower[number], ranges.upper[number], state.broker_load[number]
        for brokers, added in ((givers, -load), (takers, load)):
            now, then = held[brokers], held[brokers] + added
            out_now = np.maximum(0, now - upper[brokers]) + np.maximum(0, lower[brokers] - now)
            over, under = np.maximum(0, then - upper[brokers]), np.maximum(0, lower[brokers] - then)
            gain += (out_now - over - under) / np.maximum(ranges.target[number, brokers], 1)
            # Each side by itself: a change from too much to too little is worse as well.
            worse = (over > np.maximum(0, now - upper[brokers])) | (under > np.maximum(0, lower[brokers] - now))
            allowed &= ~(worse & (not may_disturb)) & ((added <= 0) | (then <= ranges.capacity[number, brokers]))
    return np.where(allowed, gain, 0)


def _move_one_leader(state: PlanState, ranges: Ranges, change: tuple[int, int, bool], *, may_disturb: bool) -> bool:
    number, worst, over = change
    replicas = state.table.replicas
    if over:
        led = np.flatnonzero(state.free & (replicas[:, 0] == worst) & (state.leader_load[number] > 0))
        rows, slots = np.repeat(led, replicas.shape[1] - 1), np.tile(np.arange(1, replicas.shape[1]), len(led))
    else:
        rows, slots = np.nonzero((replicas == worst) & (state.free & (state.leader_load[number] > 0))[:, None])
    givers, takers = replicas[rows, 0], replicas[rows, slots]
    possible = (slots > 0) & state.open_to[givers] & state.open_to[takers]
    rows, slots, givers, takers = rows[possible], slots[possible], givers[possible], takers[possible]
    loads = state.leader_load[:, rows]
    best = _best(gains(state, ranges, givers, takers, loads, may_disturb=may_disturb), loads[number])
    if best is not None:
        state.lead(rows[[best]], slots[[best]])
    return best is not None


def _move_one_replica(state: PlanState, ranges: Ranges, change: tuple[int, int, bool], *, may_disturb: bool) -> bool:
    number, worst, over = change
    replicas = state.table.replicas
    among = (replicas == worst) if over else state.open_to[replicas] & (replicas != worst).all(axis=1)[:, None]
    rows, slots = np.nonzero(among & state.free[:, None])
    load = state.replica_load[number, rows] + state.leader_load[number, rows] * (slots == 0)
    wanted = max(
        int(state.broker_load[number, worst] - ranges.upper[number, worst]),
        int(ranges.lower[number, worst] - state.broker_load[number, worst]),
    )
    useful = np.flatnonzero(load > 0)
    nearest = useful[np.argsort(np.abs(load[useful] - wanted), kind="stable")[:MAX_CANDIDATES]]
    rows, slots = rows[nearest], slots[nearest]
    loads = state.loads(rows, slots)
    takers = np.flatnonzero(state.open_to) if over else np.array([worst])
    count = len(takers)
    rows, slots, loads = np.repeat(rows, count), np.repeat(slots, count), np.repeat(loads, count, axis=1)
    to = np.tile(takers, len(nearest))
    gain = gains(state, ranges, replicas[rows, slots], to, loads, may_disturb=may_disturb)
    costs = state.costs(rows, slots)
    affordable = np.inf if state.remaining_bytes is None else state.remaining_bytes
    helping = np.flatnonzero((gain > MIN_GAIN) & (costs <= affordable))
    helping = helping[state.fits(rows[helping], slots[helping], to[helping])]
    best = _best(gain[helping], costs[helping])
    if best is None:
        return False
    chosen = helping[[best]]
    state.move(rows[chosen], slots[chosen], to[chosen])
    return True


def _best(gain: npt.NDArray[np.float64], cost: LoadArray) -> int | None:
    """Return the index of the largest gain, among equals the cheapest; None when no change helps."""
    if not gain.size or gain.max() <= MIN_GAIN:
        return None
    return int(np.lexsort((cost, -gain))[0])
