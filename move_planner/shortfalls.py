"""Messages about the goals that a plan does not reach: what is missing, why, and what to do."""

from collections.abc import Iterator

import numpy as np

from move_planner.plan_state import PlanState
from move_planner.ranges import Ranges
from move_planner.request import MeasuredRequest
from move_planner.result import Unreached

BUDGET_USED_UP = 0.95
"""From this used part on, the budget counts as the reason: the rest is smaller than most replicas."""

BUDGET = "the budget is used up: raise it, or make another plan after this one is done"


def shortfalls(
    request: MeasuredRequest, state: PlanState, ranges: Ranges, *, cut: bool = False
) -> tuple[Unreached, ...]:
    """Return the unreached goals of a planned state; `cut`: the budget cut off steps."""
    spent = cut or (
        state.budget is not None and state.budget - int(state.copied().sum()) <= state.budget * (1 - BUDGET_USED_UP)
    )
    return (
        *_drained(state, ranges, spent=spent),
        *(_factor(request, state, spent=spent) if request.replication_factor is not None else ()),
        *(_racks(request, state, spent=spent) if request.racks else ()),
        *(_outside(request, state, ranges, spent=spent) if request.level else ()),
    )


def _drained(state: PlanState, ranges: Ranges, *, spent: bool) -> Iterator[Unreached]:
    table = state.table
    staying = int(table.stays.sum())
    full = (state.broker_load >= ranges.capacity).any(axis=0) & state.open_to
    for number in np.flatnonzero(~table.stays[:-1]).tolist():
        holding = (table.replicas == number).any(axis=1)
        if not holding.any():
            continue
        broker = int(table.ids[number])
        if spent:
            why = BUDGET
        elif full.any():
            why = "brokers are at their capacities; add brokers or raise the capacities"
        elif (table.factors()[holding & state.free] > staying).any():
            why = f"there are too few brokers to drain to: {staying} stay; add brokers or lower the replication factor"
        else:
            why = "the replicas are excluded, or too large for the free capacities, the racks and the number of brokers"
        yield Unreached(broker, f"broker {broker} still holds {int(holding.sum())} replicas: {why}")


def _factor(request: MeasuredRequest, state: PlanState, *, spent: bool) -> Iterator[Unreached]:
    wanted, staying = request.replication_factor, int(state.table.stays.sum())
    others = int((state.table.factors() != wanted).sum())
    if others:
        why = (
            BUDGET
            if spent and wanted is not None and wanted <= staying
            else f"only {staying} brokers stay; add brokers"
        )
        yield Unreached(None, f"{others} partitions do not have replication factor {wanted}: {why}")


def _racks(request: MeasuredRequest, state: PlanState, *, spent: bool) -> Iterator[Unreached]:
    table = state.table
    staying = [broker for broker in request.brokers if broker not in request.drained]
    without = [broker for broker in staying if request.brokers[broker] is None]
    if without and len(without) < len(staying):
        message = f"racks are ignored: {len(without)} brokers have none, the first is broker {without[0]}"
        yield Unreached(without[0], message)
    if not table.racks:
        return
    factors = table.factors()
    crowded = int((factors > table.racks).sum())
    if crowded:
        message = f"{crowded} partitions have more replicas than there are racks, {table.racks}: add a rack"
        yield Unreached(None, message)
    doubles = int((table.racks_of(table.replicas) < np.minimum(table.racks, factors)).sum())
    if doubles:
        why = (
            BUDGET
            if spent
            else "the partitions are excluded, or no broker of another rack can take a replica; add brokers there"
        )
        yield Unreached(None, f"{doubles} partitions are in fewer racks than possible: {why}")


def _outside(request: MeasuredRequest, state: PlanState, ranges: Ranges, *, spent: bool) -> Iterator[Unreached]:
    table = state.table
    outside = ranges.outside(state.broker_load, state.open_to)
    for number, resource in enumerate(request.resources):
        mean = ranges.target[number, state.open_to].mean() if state.open_to.any() else 0.0
        apart = np.abs(ranges.target[number] - mean) > resource.tolerance * mean + resource.unit
        for place in np.flatnonzero(state.open_to & (apart | (outside[number] > 0))).tolist():
            broker, held = int(table.ids[place]), int(state.broker_load[number, place])
            if apart[place] and len(request.resources) == 1:
                part = ranges.target[number, place]
                message = (
                    f"cannot be near the mean of {mean:.0f}: racks are of different sizes, and its target is {part:.0f}"
                )
                yield Unreached(broker, f"broker {broker} {message}")
            if not outside[number, place]:
                continue
            lower, upper = int(ranges.lower[number, place]), int(ranges.upper[number, place])
            largest = int(state.replica_load[number, (table.replicas == place).any(axis=1)].max(initial=0))
            if spent:
                why = BUDGET
            elif largest > upper - lower:
                why = f"it has a partition of {largest}, larger than the range; add partitions to that topic"
            else:
                why = "no allowed move brings it nearer; exclude less, add brokers, or add partitions to its hottest topics"
            message = f"broker {broker} has {held} of {resource.name}, outside {lower} to {upper}"
            if held > ranges.capacity[number, place]:
                message += f", and above its capacity of {ranges.capacity[number, place]}"
            yield Unreached(broker, f"{message}: {why}")
