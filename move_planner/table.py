"""Replicas by broker number, racks, and the rules for a valid move.

Brokers are numbered by id. One additional number, the last, means "no broker" in padding: arrays by broker have an entry for it that
is always empty, so that columns can be indexed without a mask.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller_core.model import NO_BROKER, BoolArray, IntArray
from move_planner.request import LoadArray, MeasuredRequest

Rows = npt.NDArray[np.intp]
"""Numbers of rows, slots or brokers."""


@dataclass(slots=True, eq=False)
class Table:
    """A cluster between the current assignment and the planned one.

    `replicas` has broker numbers, `no_broker` as padding. `stays` and `rack` are by broker number, with one additional entry.
    """

    ids: IntArray
    replicas: Rows
    load: LoadArray
    leader: Rows
    stays: BoolArray
    rack: Rows
    racks: int
    """Racks of brokers that stay; 0 when racks are ignored."""

    @property
    def no_broker(self) -> int:
        """The number for "no broker"."""
        return len(self.ids)

    def factors(self) -> Rows:
        """Return the number of replicas of each partition."""
        counted: Rows = (self.replicas != self.no_broker).sum(axis=1)
        return counted

    def racks_of(self, replicas: Rows) -> Rows:
        """Count the racks of brokers that stay, for each row of broker numbers."""
        found = np.sort(np.where(self.stays[replicas], self.rack[replicas], -1), axis=1)
        new = np.ones(found.shape, dtype=np.bool_)
        new[:, 1:] = found[:, 1:] != found[:, :-1]
        counted: Rows = (new & (found >= 0)).sum(axis=1)
        return counted

    def fits(self, rows: Rows, slots: Rows, brokers: Rows, *, keep_racks: bool = True) -> BoolArray:
        """Return for each (row, slot, broker) whether the broker may take over the slot: it stays, is new to it, racks are kept.

        Racks are kept when the broker adds a rack that the other replicas lack, or they are in as many racks as possible.
        """
        now = self.replicas[rows]
        fits: BoolArray = self.stays[brokers] & (now != brokers[:, None]).all(axis=1)
        if self.racks and keep_racks:
            now[np.arange(len(rows)), slots] = self.no_broker
            others = np.where(self.stays[now], self.rack[now], -1)
            brings = (others != self.rack[brokers][:, None]).all(axis=1)
            fits &= brings
            # A rack may be used twice only where there are more replicas than racks.
            crowded = np.flatnonzero(~brings & ((now != self.no_broker).sum(axis=1) >= self.racks))
            fits[crowded] = (
                self.stays[brokers[crowded]]
                & (self.replicas[rows[crowded]] != brokers[crowded, None]).all(axis=1)
                & (self.racks_of(now[crowded]) >= self.racks)
            )
        return fits

    def ids_of(self, replicas: Rows) -> IntArray:
        """Convert broker numbers to padded ids."""
        return np.append(self.ids, np.int32(NO_BROKER))[replicas]


def table_of(request: MeasuredRequest) -> Table:
    """Return the table of a request; brokers that occur only in the columns do not stay."""
    found = np.unique(request.replicas)
    ids = np.union1d(found[found != NO_BROKER], np.array(sorted(request.brokers), dtype=np.int32)).astype(np.int32)
    stays = np.array(
        [int(broker) in request.brokers and int(broker) not in request.drained for broker in ids] + [False]
    )
    names = [request.brokers.get(int(broker)) for broker in ids]
    staying = [name for name, kept in zip(names, stays, strict=False) if kept]
    rack_aware = bool(staying) and None not in staying
    numbers = {name: number for number, name in enumerate(sorted({name for name in staying if name is not None}))}
    # Brokers that leave have no rack; no broker has one when racks are ignored.
    rack = [numbers.get(name, -1) if name is not None and rack_aware else -1 for name in names]
    return Table(
        ids=ids,
        replicas=_numbers(ids, request.replicas),
        load=request.bytes,
        leader=_numbers(ids, request.replicas[:, 0] if request.leaders is None else request.leaders),
        stays=stays,
        rack=np.array([*rack, -1], dtype=np.intp),
        racks=len(numbers) if rack_aware else 0,
    )


def new_to(before: Rows, after: Rows, no_broker: int) -> BoolArray:
    """Return for each replica of `after` whether its partition had none on that broker before; shapes are the same."""
    here = (after[:, :, None] == before[:, None, :]).any(axis=2)
    new: BoolArray = ~here & (after != no_broker)
    return new


def doubled(table: Table, replicas: Rows) -> BoolArray:
    """Return for each replica whether an earlier one of its partition is in the same rack, both on brokers that stay."""
    rack = np.where(table.stays[replicas], table.rack[replicas], -1)
    found: BoolArray = np.zeros(replicas.shape, dtype=np.bool_)
    for slot in range(1, replicas.shape[1]):
        found[:, slot] = (rack[:, slot, None] == rack[:, :slot]).any(axis=1) & (rack[:, slot] >= 0)
    return found


def _numbers(ids: IntArray, brokers: IntArray) -> Rows:
    """Convert ids to broker numbers; unknown ids, such as -1, become the number for "no broker"."""
    numbers = np.searchsorted(ids, brokers)
    known = np.append(ids, np.int32(NO_BROKER))[numbers] == brokers
    return np.where(known & (np.asarray(brokers) != NO_BROKER), numbers, len(ids)).astype(np.intp)
