"""The planner's table: replicas by broker number, loads by broker, racks; what a move may be, and doing it.

Brokers are numbered by id, and one more number, the last, stands for "none" in padding: arrays by broker have an entry for it
that is always empty, so that columns can be looked up without a mask. Leaves out every choice.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.ids import NOBODY
from move_planner.request import LoadArray, PlanRequest

Rows = npt.NDArray[np.intp]
"""Numbers of rows, slots or brokers."""


@dataclass(slots=True, eq=False)
class Table:
    """A cluster on the way from the present assignment to the planned one.

    `replicas` holds broker numbers, `nobody` for padding. `stays`, `rack` and `held` are by broker number, with one entry more.
    """

    ids: IntArray
    replicas: Rows
    load: LoadArray
    leader: Rows
    stays: BoolArray
    rack: Rows
    held: LoadArray
    racks: int
    """Racks of brokers that stay; 0 when racks do not count."""

    @property
    def nobody(self) -> int:
        """The number that stands for no broker."""
        return len(self.ids)

    def factors(self) -> Rows:
        """Return the number of replicas of each partition."""
        counted: Rows = (self.replicas != self.nobody).sum(axis=1)
        return counted

    def racks_of(self, replicas: Rows) -> Rows:
        """Count the racks of brokers that stay, for each row of broker numbers."""
        found = np.sort(np.where(self.stays[replicas], self.rack[replicas], -1), axis=1)
        new = np.ones(found.shape, dtype=np.bool_)
        new[:, 1:] = found[:, 1:] != found[:, :-1]
        counted: Rows = (new & (found >= 0)).sum(axis=1)
        return counted

    def fits(self, rows: Rows, slots: Rows, brokers: Rows, *, keep_racks: bool = True) -> BoolArray:
        """Tell for each (row, slot, broker) whether the broker may take the slot over: it stays, is new to it, racks are kept.

        Racks are kept when the broker brings a rack that the other replicas lack, or they are in as many as can be.
        """
        now = self.replicas[rows]
        fits: BoolArray = self.stays[brokers] & (now != brokers[:, None]).all(axis=1)
        if self.racks and keep_racks:
            now[np.arange(len(rows)), slots] = self.nobody
            others = np.where(self.stays[now], self.rack[now], -1)
            brings = (others != self.rack[brokers][:, None]).all(axis=1)
            fits &= brings
            # Only where there are more replicas than racks may a rack be used again.
            crowded = np.flatnonzero(~brings & ((now != self.nobody).sum(axis=1) >= self.racks))
            fits[crowded] = (
                self.stays[brokers[crowded]]
                & (self.replicas[rows[crowded]] != brokers[crowded, None]).all(axis=1)
                & (self.racks_of(now[crowded]) >= self.racks)
            )
        return fits

    def move(self, rows: Rows, slots: Rows, brokers: Rows) -> None:
        """Give slots to brokers; each row at most once."""
        np.subtract.at(self.held, self.replicas[rows, slots], self.load[rows])
        self.held[self.nobody] = 0
        self.replicas[rows, slots] = brokers
        np.add.at(self.held, brokers, self.load[rows])

    def recount(self) -> None:
        """Sum the loads of brokers up again, after `replicas` was changed otherwise."""
        slots = self.replicas.shape[1]
        sums = np.zeros(self.nobody + 1, dtype=np.int64)
        np.add.at(sums, self.replicas.ravel(), np.repeat(self.load, slots))
        sums[self.nobody] = 0
        self.held = sums

    def ids_of(self, replicas: Rows) -> IntArray:
        """Turn broker numbers into padded ids."""
        return np.append(self.ids, np.int32(NOBODY))[replicas]


def table_of(request: PlanRequest) -> Table:
    """Lay a request out as a table; brokers in the columns alone are there, and do not stay."""
    loads = request.checked_loads()
    found = np.unique(request.replicas)
    ids = np.union1d(found[found != NOBODY], np.array(sorted(request.brokers), dtype=np.int32)).astype(np.int32)
    stays = np.array(
        [int(broker) in request.brokers and int(broker) not in request.drained for broker in ids] + [False]
    )
    names = [request.brokers.get(int(broker)) for broker in ids]
    staying = [name for name, kept in zip(names, stays, strict=False) if kept]
    rack_aware = bool(staying) and None not in staying
    numbers = {name: number for number, name in enumerate(sorted({name for name in staying if name is not None}))}
    # Brokers that leave, and everybody when racks do not count, are in no rack.
    rack = [numbers.get(name, -1) if name is not None and rack_aware else -1 for name in names]
    table = Table(
        ids=ids,
        replicas=_numbers(ids, request.replicas),
        load=loads,
        leader=_numbers(ids, request.replicas[:, 0] if request.leaders is None else request.leaders),
        stays=stays,
        rack=np.array([*rack, -1], dtype=np.intp),
        held=np.zeros(len(ids) + 1, dtype=np.int64),
        racks=len(numbers) if rack_aware else 0,
    )
    table.recount()
    return table


def _numbers(ids: IntArray, brokers: IntArray) -> Rows:
    """Turn ids into broker numbers; ids that are unknown, such as -1, into the number of nobody."""
    numbers = np.searchsorted(ids, brokers)
    known = np.append(ids, np.int32(NOBODY))[numbers] == brokers
    return np.where(known & (np.asarray(brokers) != NOBODY), numbers, len(ids)).astype(np.intp)
