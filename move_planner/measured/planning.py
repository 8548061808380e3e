"""Make a plan for measured load: the phases in their order, and the answer out of the books.

Leaves out each phase's own thought.
"""

from dataclasses import replace

import numpy as np

from controller_core.model.columns import BoolArray
from move_planner.measured.books import Books, books_of
from move_planner.measured.bound import lower_bound_bytes
from move_planner.measured.copying import level_resource
from move_planner.measured.finishing import MAX_CHANGES, finish
from move_planner.measured.forced import place_forced
from move_planner.measured.leading import pass_leaders_on
from move_planner.measured.ranges import Ranges, ranges_of
from move_planner.measured.request import MeasuredRequest
from move_planner.measured.result import MeasuredPlan, ResourceFigures
from move_planner.measured.shortfalls import shortfalls
from move_planner.measured.steps import ordered
from move_planner.ordering import new_to
from move_planner.request import MAX_TOTAL_LOAD, LoadArray

PATIENCE = ((1e3, 0.0), (0.5, 0.25), (0.25, 0.25), (0.1, 0.25), (0.1, 0.25), (0.1, 0.25), (0.0, 0.1), (0.0, 0.0))
"""Rounds, each with two parts of a range's width: how far a resource may be disturbed for another one's sake, at first as far as may
be, since its own turn comes; and how far beyond the end of its range a broker is brought, so that the others' turns have room."""

FEW_REPLICAS = 1_000
"""Up to here single changes, the best each, take milliseconds and are better than changes by the thousand."""

MAX_CHANGES_OF_FEW = 500
"""Single changes of a plan of few replicas: half of them."""

DEAREST = 0.1
"""The part of that margin for the resource that costs most: what it gains for others is paid in bytes."""

LEEWAY = (0.0, 0.5, 0.25, 0.1, 0.0)
"""The same for what leaders bear: a broker with many cold leaders first takes hot ones, then gives cold ones."""

FREE_TURNS = 5
"""Rounds in which what leaders bear neither stands in the way of moves nor is reason for one: passing them on is free."""

SAMPLE = 0.05
"""The part of a resource for whose bytes resources are put in order: about what a cluster that is a little uneven moves."""


def plan_measured(request: MeasuredRequest) -> MeasuredPlan:
    """Plan for a request. Raises ValueError for a request that contradicts itself, and for nothing else."""
    books = books_of(request)
    ranges = ranges_of(books, request)
    bound = lower_bound_bytes(books, ranges)
    held = books.held.copy()
    if books.open_to.any():
        books = _planned(books, ranges)
    rows, copied, reasons = ordered(books, held, ranges)
    return MeasuredPlan(
        rows=rows,
        replicas=books.table.ids_of(books.table.replicas[rows]),
        bytes=copied,
        reasons=reasons,
        copied_bytes=int(copied.sum()),
        copied_replicas=int(new_to(books.before[rows], books.table.replicas[rows], books.nobody).sum()),
        lower_bound_bytes=bound,
        ids=books.table.ids,
        drained=~books.table.stays[:-1],
        resources=_figures(request, books, ranges, held),
        unreached=shortfalls(request, books, ranges),
    )


def order_of(books: Books) -> list[int]:
    """Return the numbers of resources, those that cost fewest bytes to level first."""
    costs = []
    for number in range(len(books.each)):
        rows = np.flatnonzero(books.free & (books.each[number] > 0))
        load, size = books.each[number, rows], books.bytes[rows].astype(np.float64)
        order = np.argsort(size / np.maximum(load, 1), kind="stable")
        along = np.cumsum(load[order], dtype=np.float64)
        enough = int(np.searchsorted(along, SAMPLE * along[-1])) + 1 if rows.size else 0
        costs.append((float(size[order[:enough]].sum()), number))
    return [number for _, number in sorted(costs)]


def _planned(books: Books, ranges: Ranges) -> Books:
    """Return the books as they shall be: those of the first attempt that makes nothing worse than its range allows."""
    order = order_of(books)
    place_forced(books, ranges, order)
    _recount(books)
    first = replace(books, table=replace(books.table, replicas=books.table.replicas.copy()), held=books.held.copy())
    before = books.held.copy()
    _level(books, ranges, order, patient=True)
    if not _worse(books, ranges, before):
        return books
    _level(first, ranges, order, patient=False)
    return first


def _level(books: Books, ranges: Ranges, order: list[int], *, patient: bool) -> None:
    nothing = np.zeros_like(books.held)
    if books.table.replicas.size <= FEW_REPLICAS:
        finish(books, ranges, MAX_CHANGES_OF_FEW, patient=patient)
        _recount(books)
        return
    width = (ranges.upper - ranges.lower).astype(np.float64)
    led: BoolArray = np.asarray(books.led.any(axis=1), dtype=np.bool_)
    for turn, (part, inwards) in enumerate(PATIENCE):
        slack: LoadArray = np.rint(width * (part if patient else 0.0)).astype(np.int64)
        for leeway in LEEWAY if patient else (0.0,):
            if not ranges.outside(books.held, books.open_to).any():
                return
            pass_leaders_on(books, ranges, np.rint(width * leeway).astype(np.int64))
        if not ranges.outside(books.held, books.open_to).any():
            return
        free = patient and turn < FREE_TURNS
        slack[led] = np.where(free, MAX_TOTAL_LOAD, slack[led])
        for number in order:
            if not (free and led[number]):
                deep = inwards * (DEAREST if number == order[-1] else 1.0) if patient else 0.0
                level_resource(books, ranges, number, slack, np.rint(width[number] * deep).astype(np.int64))
                _recount(books)
    pass_leaders_on(books, ranges, nothing)
    finish(books, ranges, MAX_CHANGES, patient=False)
    _recount(books)


def _recount(books: Books) -> None:
    """Count the bytes anew that may still be copied: what returned to where it was costs nothing."""
    if books.budget is not None:
        books.purse = books.budget - int(books.copied().sum())


def _worse(books: Books, ranges: Ranges, before: LoadArray) -> bool:
    """Tell whether anything is outside its range, and worse than it was."""
    over = books.held > np.maximum(before, ranges.upper)
    under = books.held < np.minimum(before, ranges.lower)
    worse: BoolArray = (over | under) & books.open_to
    return bool(worse.any())


def _figures(request: MeasuredRequest, books: Books, ranges: Ranges, before: LoadArray) -> tuple[ResourceFigures, ...]:
    fixed = books.fixed[:-1]
    return tuple(
        ResourceFigures(
            name=resource.name,
            target=np.where(fixed, before[number, :-1], ranges.target[number, :-1]),
            lower=np.where(fixed, before[number, :-1], ranges.lower[number, :-1]),
            upper=np.where(fixed, before[number, :-1], ranges.upper[number, :-1]),
            before=before[number, :-1],
            after=books.held[number, :-1].copy(),
        )
        for number, resource in enumerate(request.resources)
    )
