"""Striped placement: an even start for benchmarks of plans, over brokers and racks. The product places by Kafka's own formula.

Goals, in this order: a partition's replicas in distinct racks (or, with fewer racks than replicas, in all of them); every broker
with its share of replicas to the one; every broker preferred leader of as many partitions, to the one; followers of one broker's
leaders spread over all others. Kafka's formula has the first with racks and the second without; KRaft's StripedReplicaPlacer
has the first and draws for the rest. Constraints: nothing is drawn here, one number comes in and mixes the stripes.

Algorithm. Brokers are placed on a strip, racks side by side in some order and a rack's brokers side by side. Each is as wide as its
share (`shares`), so the strip is as long as the replication factor. A comb whose teeth are 1 apart is laid on it: a
partition's replicas are at the teeth. A rack no wider than 1 has one tooth at most, one that is wider has one at least, and
combs laid at even distances give every broker its share. After as many combs as make every share whole, the stripe is full and the
next one begins, with racks and brokers in another order.

Worked example: 4 brokers, replication factor 2, one stripe in the order 0 1 2 3; each broker is half as wide as the comb's step.

    partition   teeth at    brokers
    0           0, 1        0, 2
    1           1/4, 5/4    0, 2
    2           1/2, 3/2    1, 3
    3           3/4, 7/4    1, 3

Broker j leads the comb at j * width, moved on by one comb each time these begin again: all are different.

`controller_core.rules.placement` has Kafka's own formula.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from controller_core.model import IntArray
from controller_core.rules.placement import Positions, Racks, alternate_racks, check_placement, has_racks, number_racks
from move_planner.preferred_leaders import balance_preferred_leaders
from move_planner.shares import shares_by_rack
from move_planner.table import Table

Mixed = npt.NDArray[np.uint64]

MAX_DIFFERENT_STRIPES = 512
"""Then the orders repeat: each pair of brokers has shared a stripe, and sorting more orders would take longer than placing."""

GOLDEN_RATIO = 0.618033988749895
"""Combs are laid this part of the stripe apart, so that partitions that follow each other share no brokers."""


def place_striped(brokers: Racks, partitions: int, replication_factor: int, mixed_by: int) -> IntArray:
    """Place partitions, of one topic or of many one after another: int32 of shape (partitions, replication_factor).

    `mixed_by` is any number from 0; the same number gives the same placement. Raises PlacementError as `place_replicas` does.
    """
    check_placement(brokers, partitions, replication_factor)
    circle = alternate_racks(brokers) if has_racks(brokers) else sorted(brokers)
    racks = (
        np.array(number_racks([brokers[broker] for broker in circle])) if has_racks(brokers) else np.arange(len(circle))
    )
    by_rack = shares_by_rack(np.bincount(racks).tolist(), replication_factor)
    shares = [by_rack[rack] for rack in racks.tolist()]
    length = math.lcm(len(circle), *{share.denominator for share in by_rack})
    whole, rest = divmod(partitions, length)
    # Brokers without racks may be in any order: as one rack.
    grouped = racks if has_racks(brokers) else np.zeros_like(racks)
    orders = mixed_orders(grouped, min(whole, MAX_DIFFERENT_STRIPES) + 1, mixed_by)
    even = len(set(by_rack)) == 1
    ids = np.array(circle, dtype=np.int32)
    last = comb(orders[-1:], _widths(shares, orders[-1].tolist(), rest), np.zeros(rest, dtype=np.intp))
    last = last.reshape(-1, replication_factor)
    if not whole:
        _even(last, len(circle))
        few: IntArray = ids[last]
        return few
    widths = np.array([int(share * length) for share in shares])
    leads = leading_teeth(len(circle), replication_factor) if even else np.zeros(length, dtype=np.intp)
    stripes = comb(orders[:-1], widths[orders[:-1]], leads)
    again = np.arange(whole) % len(stripes)
    if not even:
        places = np.concatenate([stripes[again].reshape(-1, replication_factor), last])
        _even(places, len(circle))
        placed: IntArray = ids[places]
        return placed
    _even(last, len(circle))
    placed = np.empty((partitions, replication_factor), dtype=np.int32)
    # Ids are put into the stripes that differ, before these are repeated: the rest is one copy.
    np.take(ids[stripes].reshape(len(stripes), -1), again, axis=0, out=placed[: whole * length].reshape(whole, -1))
    placed[whole * length :] = ids[last]
    return placed


def mixed_orders(racks: Positions, count: int, mixed_by: int) -> Positions:
    """Return orders of brokers, one a row, in which each rack's brokers are side by side."""
    rows = np.arange(count, dtype=np.uint64)[:, None] + np.uint64(mixed_by % 2**32) * np.uint64(2**20)
    places: Mixed = np.arange(len(racks), dtype=np.uint64)
    of_racks = _mix((rows * np.uint64(2**12) + places)[:, : int(racks.max()) + 1].astype(np.uint64))
    rank = np.argsort(np.argsort(of_racks, axis=1, kind="stable"), axis=1, kind="stable").astype(np.uint64)
    of_brokers = _mix((rows * np.uint64(2**12) + places + np.uint64(2**60)).astype(np.uint64))
    keys = (rank[:, racks] << np.uint64(44)) | (of_brokers >> np.uint64(20))
    return np.argsort(keys, axis=1, kind="stable")


def _mix(numbers: Mixed) -> Mixed:
    """Turn numbers into others without a pattern, the same each time (the finalizer of SplitMix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _widths(shares: Sequence[Fraction], order: Sequence[int], length: int) -> Positions:
    """Return whole widths on a strip of `length` combs, in the order: each the share's floor or ceiling."""
    edges = [0]
    reached = Fraction(0)
    for place in order:
        reached += shares[place]
        edges.append(math.floor(reached * length))
    return np.diff(np.array(edges))[None, :]


def comb(orders: Positions, widths: Positions, leads: Positions) -> Positions:
    """Lay all combs on each strip: shape (strips, combs, teeth); `leads` is the first tooth of each comb.

    Combs are in an order in which neighbours are far apart.
    """
    length = len(leads)
    if not length:
        return np.empty((len(orders), 0, 0), dtype=np.intp)
    teeth = int(widths[0].sum()) // length
    strips = np.repeat(orders.ravel(), widths.ravel()).reshape(len(orders), teeth * length)
    at = np.arange(length) * _step(length) % length
    tooth = (leads[at][:, None] + np.arange(teeth)) % teeth
    laid: Positions = strips[:, at[:, None] + tooth * length]
    return laid


def _step(length: int) -> int:
    """Return a step near the golden part of a length that visits every place.

    >>> [_step(length) for length in (1, 2, 10, 100)]
    [1, 1, 7, 61]
    """
    step = max(1, int(length * GOLDEN_RATIO))
    while math.gcd(step, length) != 1:
        step += 1
    return step


def leading_teeth(brokers: int, replication_factor: int) -> Positions:
    """Return by comb the tooth whose broker leads, where all brokers are equally wide: each leads one comb.

    >>> leading_teeth(4, 2).tolist()
    [0, 1, 0, 1]
    """
    broker = np.arange(brokers)
    at = broker * replication_factor + broker // (brokers // math.gcd(brokers, replication_factor))
    leads = np.empty(brokers, dtype=np.intp)
    leads[at % brokers] = at // brokers
    return leads


def _even(places: Positions, brokers: int) -> None:
    """Even leaders to the one, in place."""
    stays = np.append(np.ones(brokers, dtype=np.bool_), False)
    rack = np.full(brokers + 1, -1, dtype=np.intp)
    no_leaders = np.full(len(places), brokers, dtype=np.intp)
    loads = np.ones(len(places), dtype=np.int64)
    table = Table(np.arange(brokers, dtype=np.int32), places, loads, no_leaders, stays, rack, 0)
    balance_preferred_leaders(table, np.zeros(len(places), dtype=np.bool_), tolerance=0.0)
