"""The plain twin of `placement_striped`: one comb after another, in exact fractions, for reading and for tests.

Leaves out checks, and which of its replicas a partition prefers: replicas come sorted.
"""

import math
from fractions import Fraction

import numpy as np

from controller_core.cluster.placement import Racks, has_racks, numbers_of, rack_alternated
from controller_core.cluster.placement_striped import MAX_DIFFERENT_STRIPES, mixed_orders
from move_planner.shares import shares_by_rack


def place_striped_plain(brokers: Racks, partitions: int, replication_factor: int, mixed_by: int) -> list[list[int]]:
    """Return what `place_striped` returns, as sorted lists and in each stripe from the strip's start to its end."""
    circle = rack_alternated(brokers) if has_racks(brokers) else sorted(brokers)
    racks = numbers_of([brokers[broker] for broker in circle])
    sizes = [racks.count(rack) for rack in range(max(racks) + 1)] if has_racks(brokers) else [1] * len(circle)
    by_rack = shares_by_rack(sizes, replication_factor)
    share = {broker: by_rack[racks[place] if has_racks(brokers) else place] for place, broker in enumerate(circle)}
    length = math.lcm(len(circle), *(one.denominator for one in by_rack))
    whole, rest = divmod(partitions, length)
    orders = mixed_orders(np.array(racks), min(whole, MAX_DIFFERENT_STRIPES) + 1, mixed_by).tolist()
    lengths = [length] * whole + [rest]
    placed = []
    for stripe, combs in enumerate(lengths):
        order = orders[-1] if stripe == whole else orders[stripe % (len(orders) - 1)]
        strip: list[int] = []
        reached = Fraction(0)
        for place in order:
            reached += share[circle[place]]
            strip += [circle[place]] * (math.floor(reached * combs) - len(strip))
        placed += [sorted(strip[at::combs]) for at in range(combs)]
    return placed
