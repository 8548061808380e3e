"""What a plan does not reach, in words: to what, why, and what to do about it."""

from collections.abc import Iterator

import numpy as np

from move_planner.books import Books
from move_planner.ranges import Ranges
from move_planner.request import MeasuredRequest
from move_planner.result import Unreached

BUDGET_USED_UP = 0.95
"""A budget of which this part is spent is what was in the way: what is left is less than most replicas."""

BUDGET = "the budget is used up: raise it, or make another plan when this one is carried out"


def shortfalls(request: MeasuredRequest, books: Books, ranges: Ranges, *, cut: bool = False) -> tuple[Unreached, ...]:
    """Return what the planned books lack; `cut` if a budget left steps out."""
    spent = cut or (
        books.budget is not None and books.budget - int(books.copied().sum()) <= books.budget * (1 - BUDGET_USED_UP)
    )
    return (
        *_drained(books, ranges, spent=spent),
        *(_factor(request, books, spent=spent) if request.replication_factor is not None else ()),
        *(_racks(request, books, spent=spent) if request.racks else ()),
        *(_outside(request, books, ranges, spent=spent) if request.level else ()),
    )


def _drained(books: Books, ranges: Ranges, *, spent: bool) -> Iterator[Unreached]:
    table = books.table
    staying = int(table.stays.sum())
    full = (books.held >= ranges.capacity).any(axis=0) & books.open_to
    for number in np.flatnonzero(~table.stays[:-1]).tolist():
        holding = (table.replicas == number).any(axis=1)
        if not holding.any():
            continue
        broker = int(table.ids[number])
        if spent:
            why = BUDGET
        elif full.any():
            why = "brokers are at their capacities; add brokers or raise them"
        elif (table.factors()[holding & books.free] > staying).any():
            why = f"there are too few brokers to drain to: {staying} stay; add brokers or lower the replication factor"
        else:
            why = "they are excluded, or too large for what capacities, racks and the number of brokers leave"
        yield Unreached(broker, f"broker {broker} still holds {int(holding.sum())} replicas: {why}")


def _factor(request: MeasuredRequest, books: Books, *, spent: bool) -> Iterator[Unreached]:
    wanted, staying = request.replication_factor, int(books.table.stays.sum())
    others = int((books.table.factors() != wanted).sum())
    if others:
        why = (
            BUDGET
            if spent and wanted is not None and wanted <= staying
            else f"only {staying} brokers stay; add brokers"
        )
        yield Unreached(None, f"{others} partitions do not have replication factor {wanted}: {why}")


def _racks(request: MeasuredRequest, books: Books, *, spent: bool) -> Iterator[Unreached]:
    table = books.table
    staying = [broker for broker in request.brokers if broker not in request.drained]
    without = [broker for broker in staying if request.brokers[broker] is None]
    if without and len(without) < len(staying):
        told = f"racks do not count: {len(without)} brokers have none, the first is broker {without[0]}"
        yield Unreached(without[0], told)
    if not table.racks:
        return
    factors = table.factors()
    crowded = int((factors > table.racks).sum())
    if crowded:
        told = f"{crowded} partitions have more replicas than there are racks, {table.racks}: add a rack"
        yield Unreached(None, told)
    doubles = int((table.racks_of(table.replicas) < np.minimum(table.racks, factors)).sum())
    if doubles:
        why = (
            BUDGET if spent else "they are excluded, or no broker of another rack can take a replica; add brokers there"
        )
        yield Unreached(None, f"{doubles} partitions are in fewer racks than they could be: {why}")


def _outside(request: MeasuredRequest, books: Books, ranges: Ranges, *, spent: bool) -> Iterator[Unreached]:
    table = books.table
    outside = ranges.outside(books.held, books.open_to)
    for number, resource in enumerate(request.resources):
        mean = ranges.target[number, books.open_to].mean() if books.open_to.any() else 0.0
        apart = np.abs(ranges.target[number] - mean) > resource.tolerance * mean + resource.unit
        for place in np.flatnonzero(books.open_to & (apart | (outside[number] > 0))).tolist():
            broker, held = int(table.ids[place]), int(books.held[number, place])
            if apart[place] and len(request.resources) == 1:
                part = ranges.target[number, place]
                told = (
                    f"cannot be near the mean of {mean:.0f}: racks are of different sizes, and its part is {part:.0f}"
                )
                yield Unreached(broker, f"broker {broker} {told}")
            if not outside[number, place]:
                continue
            lower, upper = int(ranges.lower[number, place]), int(ranges.upper[number, place])
            largest = int(books.each[number, (table.replicas == place).any(axis=1)].max(initial=0))
            if spent:
                why = BUDGET
            elif largest > upper - lower:
                why = f"it has a partition of {largest}, larger than the room in the range; split that partition's topic further"
            else:
                why = "no replica or leader that may move brings it nearer; exclude less, add brokers, or split its hottest topics further"
            told = f"broker {broker} has {held} of {resource.name}, outside {lower} to {upper}"
            if held > ranges.capacity[number, place]:
                told += f", and above its capacity of {ranges.capacity[number, place]}"
            yield Unreached(broker, f"{told}: {why}")
