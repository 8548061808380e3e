"""What a plan over several resources does not reach, in words: to what, why, and what to do about it.

Leaves out everything that was reached.
"""

from collections.abc import Iterator

import numpy as np

from move_planner.measured.books import Books
from move_planner.measured.ranges import Ranges
from move_planner.measured.request import MeasuredRequest
from move_planner.result import Unreached

BUDGET_USED_UP = 0.95
"""A budget of which this part is spent is what stood in the way: what is left is less than most replicas."""


def shortfalls(request: MeasuredRequest, books: Books, ranges: Ranges) -> tuple[Unreached, ...]:
    """Look the planned books over."""
    spent = books.budget is not None and books.budget - int(books.copied().sum()) <= books.budget * (1 - BUDGET_USED_UP)
    why = (
        "the budget is used up: raise it, or make another plan when this one is carried out"
        if spent
        else "no replica or leader that may move brings it nearer; exclude less, add brokers, or split its hottest topics further"
    )
    return (*_drained(books, ranges), *_racks(books), *_outside(request, books, ranges, why))


def _drained(books: Books, ranges: Ranges) -> Iterator[Unreached]:
    table = books.table
    counts = np.bincount(table.replicas.ravel(), minlength=books.nobody + 1)
    full = (books.held >= ranges.capacity).any(axis=0) & books.open_to
    for number in np.flatnonzero(~table.stays[:-1] & (counts[:-1] > 0)).tolist():
        broker = int(table.ids[number])
        why = (
            "brokers are at their capacities; add brokers or raise them"
            if full.any()
            else "they are excluded, beyond the budget, or too large for what capacities, racks and the number of brokers leave"
        )
        yield Unreached(broker, f"broker {broker} still holds {counts[number]} replicas: {why}")


def _racks(books: Books) -> Iterator[Unreached]:
    table = books.table
    if not table.racks:
        return
    doubled = int((table.racks_of(table.replicas) < np.minimum(table.racks, table.factors())).sum())
    if doubled:
        yield Unreached(
            None,
            f"{doubled} partitions are in fewer racks than they could be: they are excluded, beyond the budget, "
            "or no broker of another rack has room",
        )


def _outside(request: MeasuredRequest, books: Books, ranges: Ranges, why: str) -> Iterator[Unreached]:
    outside = ranges.outside(books.held, books.open_to)
    for number, resource in enumerate(request.resources):
        for place in np.flatnonzero(outside[number]).tolist():
            broker, held = int(books.table.ids[place]), int(books.held[number, place])
            ends = f"{ranges.lower[number, place]} to {ranges.upper[number, place]}"
            said = f"broker {broker} has {held} of {resource.name}, outside {ends}"
            if held > ranges.capacity[number, place]:
                said += f", and above its capacity of {ranges.capacity[number, place]}"
            yield Unreached(broker, f"{said}: {why}")
