"""Racks: brokers and leaders of each, and partitions whose replicas are in fewer racks than before.

Racks count only when every live broker has one, as for the planner.
"""

from dataclasses import dataclass

import numpy as np

from controller_core.model import BoolArray, IntArray
from controller_core.views.what_if.snapshot import Snapshot
from move_planner.request import LoadArray


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Racks in which each partition has live replicas, shape (n,): before, after, and after the repair."""

    before: LoadArray
    after: LoadArray
    repaired: LoadArray

    @property
    def fewer(self) -> BoolArray:
        """Partitions in fewer racks than before."""
        flags: BoolArray = self.after < self.before
        return flags

    @property
    def fewer_after_repair(self) -> BoolArray:
        """Partitions in fewer racks than before, also after the repair."""
        flags: BoolArray = self.repaired < self.before
        return flags


def without_rack(snapshot: Snapshot) -> list[int]:
    """Return the ids of live brokers without a rack."""
    return [broker.id for broker in snapshot.brokers if broker.live and broker.rack is None]


def rack_names(snapshot: Snapshot) -> list[str]:
    """Return the racks of all brokers, ascending."""
    return sorted({broker.rack for broker in snapshot.brokers if broker.rack is not None})


def spread_of(
    snapshot: Snapshot, live: BoolArray, replicas: IntArray, repaired: IntArray, live_after_repair: BoolArray
) -> Spread:
    """Count the racks of replicas on live brokers."""
    numbers = {rack: number for number, rack in enumerate(rack_names(snapshot))}
    rack = np.array([-1 if broker.rack is None else numbers[broker.rack] for broker in snapshot.brokers] + [-1])
    return Spread(
        before=_racks(snapshot.columns.replicas, rack, snapshot.live),
        after=_racks(replicas, rack, live),
        repaired=_racks(repaired, rack, live_after_repair),
    )


def _racks(replicas: IntArray, rack: LoadArray, live: BoolArray) -> LoadArray:
    """Return for each row how many racks its live replicas are in.

    >>> replicas, live = np.array([[0, 1], [0, 2]], dtype=np.int32), np.array([True, True, True, False])
    >>> _racks(replicas, np.array([0, 0, 1, -1]), live).tolist()
    [1, 2]
    """
    counted: LoadArray = np.zeros(len(replicas), dtype=np.int64)
    seen: list[LoadArray] = []
    for slot in replicas.T:
        here = np.where(live[slot], rack[slot], -1)
        new = here >= 0
        for other in seen:
            new &= here != other
        seen.append(here)
        counted += new
    return counted
