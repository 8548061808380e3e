"""Make a plan: the phases in their order, and the answer out of the books."""

from dataclasses import replace

import numpy as np

from controller_core.model.columns import BoolArray
from move_planner.books import Books, books_of, held_of
from move_planner.bound import lower_bound_bytes
from move_planner.copying import level_resource
from move_planner.finishing import MAX_CHANGES, finish
from move_planner.forced import place_forced
from move_planner.leading import pass_leaders_on
from move_planner.ordering import ordered
from move_planner.ranges import Ranges, ranges_of
from move_planner.request import MAX_TOTAL_LOAD, LoadArray, MeasuredRequest
from move_planner.result import Plan, ResourceFigures
from move_planner.shortfalls import shortfalls
from move_planner.table import new_to

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


def plan_measured(request: MeasuredRequest) -> Plan:
    """Plan for a request. Raises ValueError for a request that contradicts itself, and for nothing else."""
    books, ranges, bound = planned(request)
    held = held_of(books.before, books.each, books.led, books.nobody)
    rows, copied, reasons = ordered(books, held, ranges)
    return Plan(
        rows=rows,
        replicas=books.table.ids_of(books.table.replicas[rows]),
        bytes=copied,
        reasons=reasons,
        copied_bytes=int(copied.sum()),
        copied_replicas=int(new_to(books.before[rows], books.table.replicas[rows], books.nobody).sum()),
        lower_bound_bytes=bound,
        ids=books.table.ids,
        drained=~books.table.stays[:-1],
        resources=figures(request, books, ranges, held),
        unreached=shortfalls(request, books, ranges),
    )


def planned(request: MeasuredRequest) -> tuple[Books, Ranges, int]:
    """Return the books as they are to be, the ranges, and the fewest bytes that any plan must copy."""
    books = books_of(request)
    ranges = ranges_of(books, request)
    bound = lower_bound_bytes(books, ranges, level=request.level, racks=request.racks)
    if books.open_to.any():
        books = _planned(books, ranges, request)
    return books, ranges, bound


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


def _planned(books: Books, ranges: Ranges, request: MeasuredRequest) -> Books:
    """Return the books as they shall be: those of the first attempt that makes nothing worse than its range allows."""
    order = order_of(books)
    place_forced(books, ranges, order, factor=request.replication_factor, racks=request.racks)
    books.recount()
    if not request.level:
        return books
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
        books.recount()
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
                # A single resource leaves room for no other one.
                deep = inwards * (DEAREST if number == order[-1] else 1.0) if patient and len(order) > 1 else 0.0
                level_resource(books, ranges, number, slack, np.rint(width[number] * deep).astype(np.int64))
                books.recount()
    pass_leaders_on(books, ranges, nothing)
    finish(books, ranges, MAX_CHANGES, patient=False)
    books.recount()


def _worse(books: Books, ranges: Ranges, before: LoadArray) -> bool:
    """Tell whether anything is outside its range, and worse than it was."""
    over = books.held > np.maximum(before, ranges.upper)
    under = books.held < np.minimum(before, ranges.lower)
    worse: BoolArray = (over | under) & books.open_to
    return bool(worse.any())


def figures(request: MeasuredRequest, books: Books, ranges: Ranges, before: LoadArray) -> tuple[ResourceFigures, ...]:
    """Return what each broker has of each resource before and after, beside its range."""
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
