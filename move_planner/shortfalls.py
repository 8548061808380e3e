"""What a plan does not reach, in words: to what, why, and what to do about it.

Leaves out everything that was reached.
"""

from collections.abc import Iterator

import numpy as np

from move_planner.polishing import outside_by
from move_planner.request import PlanRequest
from move_planner.result import Unreached
from move_planner.table import Table
from move_planner.targets import TOLERANCE, Targets

BUDGET = "the budget is used up: raise it, or make another plan when this one is carried out"


def shortfalls(request: PlanRequest, table: Table, targets: Targets, *, cut: bool) -> tuple[Unreached, ...]:
    """Look the planned table over; `cut` says that the budget left steps out."""
    return (
        *_of_brokers_that_leave(table, cut=cut),
        *_of_factor(request, table, cut=cut),
        *(_of_racks(request, table, cut=cut) if request.racks else ()),
        *(_of_load(table, targets, cut=cut) if request.level else ()),
    )


def _of_brokers_that_leave(table: Table, *, cut: bool) -> Iterator[Unreached]:
    staying = int(table.stays.sum())
    counts = np.bincount(table.replicas.ravel(), minlength=table.nobody + 1)
    for number in np.flatnonzero(~table.stays[:-1] & (counts[:-1] > 0)).tolist():
        broker = int(table.ids[number])
        why = (
            BUDGET
            if cut
            else f"there are too few brokers to drain to: {staying} stay; add brokers or lower the replication factor"
        )
        yield Unreached(broker, f"broker {broker} still holds {counts[number]} replicas: {why}")


def _of_factor(request: PlanRequest, table: Table, *, cut: bool) -> Iterator[Unreached]:
    wanted = request.replication_factor
    others = 0 if wanted is None else int((table.factors() != wanted).sum())
    if others:
        enough = wanted is not None and wanted <= table.stays.sum()
        why = BUDGET if cut and enough else f"only {int(table.stays.sum())} brokers stay; add brokers"
        yield Unreached(None, f"{others} partitions do not have replication factor {wanted}: {why}")


def _of_racks(request: PlanRequest, table: Table, *, cut: bool) -> Iterator[Unreached]:
    staying = [broker for broker in request.brokers if broker not in request.drained]
    without = [broker for broker in staying if request.brokers[broker] is None]
    if without and len(without) < len(staying):
        yield Unreached(
            without[0], f"racks do not count: {len(without)} brokers have none, the first is broker {without[0]}"
        )
    if not table.racks:
        return
    factors = table.factors()
    crowded = int((factors > table.racks).sum())
    if crowded:
        yield Unreached(
            None, f"{crowded} partitions have more replicas than there are racks, {table.racks}: add a rack"
        )
    doubled = int((table.racks_of(table.replicas) < np.minimum(table.racks, factors)).sum())
    if doubled:
        why = BUDGET if cut else "no broker of another rack can take a replica; add brokers there"
        yield Unreached(None, f"{doubled} partitions are in fewer racks than they could be: {why}")


def _of_load(table: Table, targets: Targets, *, cut: bool) -> Iterator[Unreached]:
    staying = np.flatnonzero(table.stays)
    mean = targets.target[staying].mean() if staying.size else 0.0
    for number in staying.tolist():
        broker, held = int(table.ids[number]), int(table.held[number])
        target = targets.target[number]
        if abs(target - mean) > TOLERANCE * mean + targets.replica:
            told = f"broker {broker} cannot be near the mean of {mean:.0f}: racks are of different sizes, and its part is {target:.0f}"
            yield Unreached(broker, told)
        if outside_by(table.held[[number]], targets.lower[[number]], targets.upper[[number]])[0]:
            largest = int(table.load[(table.replicas == number).any(axis=1)].max(initial=0))
            if cut:
                why = BUDGET
            elif largest > targets.upper[number] - targets.lower[number]:
                why = f"it has a partition of {largest}, larger than the room in the range; split that partition's topic further"
            else:
                why = "no single replica that may move brings it nearer"
            ends = f"{targets.lower[number]} to {targets.upper[number]}"
            yield Unreached(broker, f"broker {broker} holds {held}, outside {ends}: {why}")
