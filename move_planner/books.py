"""The planner's books: who holds what of each resource, what a change does to it, and what may change at all.

Brokers are numbers as in `table`, with one more for nobody; arrays by resource and broker have shape (resources,
brokers + 1). A partition of one replica is led by it wherever it goes, so all its load counts as `each`. Leaves out choices.
"""

from dataclasses import dataclass

import numpy as np

from controller_core.model.columns import BoolArray
from move_planner.request import LoadArray, MeasuredRequest
from move_planner.table import Rows, Table, new_to, table_of


@dataclass(slots=True, eq=False)
class Books:
    """A cluster on the way from its present assignment to the planned one, with loads by resource.

    `each`, `led`: (resources, partitions). `open_to`: brokers that may take and lead; `free`: partitions that may change.
    """

    table: Table
    each: LoadArray
    led: LoadArray
    open_to: BoolArray
    fixed: BoolArray
    """Brokers that are excluded."""
    free: BoolArray
    before: Rows
    factors: Rows
    """The number of replicas that each partition is to have: what is asked for, but no more than brokers that stay."""
    leaders: Rows | None
    """Present leaders, where the request has them."""
    held: LoadArray
    budget: int | None
    """Bytes that may be copied; None for no limit."""
    purse: int | None
    """What of them is left; what returns to where it was is paid back when bytes are counted anew."""
    passes: int = 0
    """Passes of picking replicas so far."""

    @property
    def nobody(self) -> int:
        """The number that stands for no broker."""
        return self.table.nobody

    @property
    def bytes(self) -> LoadArray:
        """What copying one replica of each partition costs."""
        return self.table.load

    def loads(self, rows: Rows, slots: Rows) -> LoadArray:
        """Return what the replicas in these slots cost their brokers: shape (resources, len(rows))."""
        found: LoadArray = self.each[:, rows] + self.led[:, rows] * (slots == 0)
        return found

    def costs(self, rows: Rows, slots: Rows) -> LoadArray:
        """Return the bytes that moving each replica copies: nothing where it is on its way anyway."""
        holders = self.table.replicas[rows, slots]
        here = (self.before[rows] == holders[:, None]).any(axis=1)
        found: LoadArray = np.where(here, self.bytes[rows], 0)
        return found

    def fits(self, rows: Rows, slots: Rows, brokers: Rows, *, keep_racks: bool = True) -> BoolArray:
        """Tell for each (row, slot, broker) whether the broker may take the slot over."""
        possible: BoolArray = self.free[rows] & self.open_to[brokers]
        chosen = np.flatnonzero(possible)
        possible[chosen] = self.table.fits(rows[chosen], slots[chosen], brokers[chosen], keep_racks=keep_racks)
        return possible

    def move(self, rows: Rows, slots: Rows, brokers: Rows) -> None:
        """Give slots to brokers; each row at most once."""
        loads = self.loads(rows, slots)
        givers = self.table.replicas[rows, slots]
        if self.purse is not None:
            self.purse -= int(self.costs(rows, slots).sum())
        self._shift(givers, brokers, loads)
        self.table.replicas[rows, slots] = brokers

    def lead(self, rows: Rows, slots: Rows) -> None:
        """Let the replica in a slot and the leader change places; each row at most once."""
        replicas = self.table.replicas
        givers, takers = replicas[rows, 0], replicas[rows, slots]
        self._shift(givers, takers, self.led[:, rows])
        replicas[rows, 0], replicas[rows, slots] = takers, givers

    def leads(self, rows: Rows, slots: Rows) -> BoolArray:
        """Return which replicas lead: the present leader where the request has it, else the preferred one."""
        leader = self.table.replicas[rows, 0] if self.leaders is None else self.leaders[rows]
        found: BoolArray = np.equal(leader, self.table.replicas[rows, slots])
        return found

    def recount(self) -> None:
        """Count the bytes again that may still be copied: what returned to where it was costs nothing."""
        if self.budget is not None:
            self.purse = self.budget - int(self.copied().sum())

    def copied(self) -> LoadArray:
        """Return the bytes that each partition copies, from before to now."""
        changed = np.flatnonzero((self.before != self.table.replicas).any(axis=1))
        found = np.zeros(len(self.before), dtype=np.int64)
        new = new_to(self.before[changed], self.table.replicas[changed], self.nobody)
        found[changed] = self.bytes[changed] * new.sum(axis=1)
        return found

    def _shift(self, givers: Rows, takers: Rows, loads: LoadArray) -> None:
        for number, load in enumerate(loads):
            # add.at, since the weights of bincount are floats, which are exact up to 2**53 alone.
            np.subtract.at(self.held[number], givers, load)
            np.add.at(self.held[number], takers, load)
        self.held[:, self.nobody] = 0


def books_of(request: MeasuredRequest) -> Books:
    """Lay a request out as books, with nothing changed yet."""
    request.check()
    table = table_of(request)
    make_room(table, request.replication_factor or 0)
    fixed = np.append(np.isin(table.ids, list(request.excluded_brokers)), False)
    # An excluded broker that is not among those that may hold replicas keeps what it has all the same.
    table.stays |= fixed
    excluded = np.zeros(len(table.replicas), dtype=np.bool_) if request.excluded is None else request.excluded
    present = table.factors()
    free = ~excluded & (present > 0)
    asked = present if request.replication_factor is None else request.replication_factor
    factors = np.where(free, np.minimum(asked, max(1, int(table.stays.sum()))), present)
    single = np.maximum(present, factors) <= 1
    each = np.array([one.each + np.where(single, one.led, 0) for one in request.resources], dtype=np.int64)
    led = np.array([np.where(single, 0, one.led) for one in request.resources], dtype=np.int64)
    return Books(
        table=table,
        each=each,
        led=led,
        open_to=table.stays & ~fixed,
        fixed=fixed,
        free=free,
        before=table.replicas.copy(),
        factors=factors,
        leaders=None if request.leaders is None else table.leader,
        held=held_of(table.replicas, each, led, table.nobody),
        budget=request.budget_bytes,
        purse=request.budget_bytes,
    )


def held_of(replicas: Rows, each: LoadArray, led: LoadArray, nobody: int) -> LoadArray:
    """Sum loads up by resource and broker number."""
    held = np.zeros((len(each), nobody + 1), dtype=np.int64)
    for number in range(len(each)):
        for slot in range(replicas.shape[1]):
            np.add.at(held[number], replicas[:, slot], each[number] + (led[number] if slot == 0 else 0))
    held[:, nobody] = 0
    return held


def make_room(table: Table, factor: int) -> None:
    """Widen the table to `factor` slots."""
    missing = factor - table.replicas.shape[1]
    if missing > 0:
        table.replicas = np.pad(table.replicas, ((0, 0), (0, missing)), constant_values=table.nobody)
