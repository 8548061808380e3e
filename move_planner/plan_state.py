"""State of the planner: loads of each resource by broker, the effect of a change on them, and the changes that are allowed.

Brokers are numbers as in `table`, with one additional number for "no broker"; arrays by resource and broker have shape (resources,
brokers + 1). A partition with one replica is led by that replica wherever it is, so all its load counts as `replica_load`.
"""

from dataclasses import dataclass

import numpy as np

from controller_core.model import BoolArray
from move_planner.request import LoadArray, MeasuredRequest
from move_planner.table import Rows, Table, new_to, table_of


@dataclass(slots=True, eq=False)
class PlanState:
    """A cluster between its original assignment and the planned one, with loads by resource.

    `replica_load`, `leader_load`: (resources, partitions), as in a request. `broker_load`: (resources, brokers). `open_to`: brokers that
    may take replicas and leadership; `free`: partitions that may change.
    """

    table: Table
    replica_load: LoadArray
    leader_load: LoadArray
    open_to: BoolArray
    fixed: BoolArray
    """Excluded brokers."""
    free: BoolArray
    before: Rows
    factors: Rows
    """Target number of replicas of each partition: the requested one, limited by the number of brokers that stay."""
    leaders: Rows | None
    """Current leaders, if the request has them."""
    broker_load: LoadArray
    budget: int | None
    """Bytes that may be copied; None for no limit."""
    remaining_bytes: int | None
    """Unused part of the budget. A replica that returns to its first broker is credited when bytes are recounted."""
    passes: int = 0
    """Passes of picking replicas so far."""

    @property
    def no_broker(self) -> int:
        """The number for "no broker"."""
        return self.table.no_broker

    @property
    def bytes(self) -> LoadArray:
        """Bytes to copy for one replica of each partition."""
        return self.table.load

    def loads(self, rows: Rows, slots: Rows) -> LoadArray:
        """Return the loads of the replicas in these slots: shape (resources, len(rows))."""
        found: LoadArray = self.replica_load[:, rows] + self.leader_load[:, rows] * (slots == 0)
        return found

    def costs(self, rows: Rows, slots: Rows) -> LoadArray:
        """Return the bytes that moving each replica adds: 0 where it has already moved."""
        holders = self.table.replicas[rows, slots]
        here = (self.before[rows] == holders[:, None]).any(axis=1)
        found: LoadArray = np.where(here, self.bytes[rows], 0)
        return found

    def fits(self, rows: Rows, slots: Rows, brokers: Rows, *, keep_racks: bool = True) -> BoolArray:
        """Return for each (row, slot, broker) whether the broker may take over the slot."""
        possible: BoolArray = self.free[rows] & self.open_to[brokers]
        chosen = np.flatnonzero(possible)
        possible[chosen] = self.table.fits(rows[chosen], slots[chosen], brokers[chosen], keep_racks=keep_racks)
        return possible

    def move(self, rows: Rows, slots: Rows, brokers: Rows) -> None:
        """Give slots to brokers; each row at most once."""
        loads = self.loads(rows, slots)
        givers = self.table.replicas[rows, slots]
        if self.remaining_bytes is not None:
            self.remaining_bytes -= int(self.costs(rows, slots).sum())
        self._shift(givers, brokers, loads)
        self.table.replicas[rows, slots] = brokers

    def lead(self, rows: Rows, slots: Rows) -> None:
        """Swap the replica in a slot with the leader; each row at most once."""
        replicas = self.table.replicas
        givers, takers = replicas[rows, 0], replicas[rows, slots]
        self._shift(givers, takers, self.leader_load[:, rows])
        replicas[rows, 0], replicas[rows, slots] = takers, givers

    def leads(self, rows: Rows, slots: Rows) -> BoolArray:
        """Return which replicas lead: the current leader where the request has it, else the preferred one."""
        leader = self.table.replicas[rows, 0] if self.leaders is None else self.leaders[rows]
        found: BoolArray = np.equal(leader, self.table.replicas[rows, slots])
        return found

    def recount(self) -> None:
        """Recount the bytes that may still be copied: replicas that returned to their first broker cost nothing."""
        if self.budget is not None:
            self.remaining_bytes = self.budget - int(self.copied().sum())

    def copied(self) -> LoadArray:
        """Return the bytes that each partition copies, from the original assignment to the current one."""
        changed = np.flatnonzero((self.before != self.table.replicas).any(axis=1))
        found = np.zeros(len(self.before), dtype=np.int64)
        new = new_to(self.before[changed], self.table.replicas[changed], self.no_broker)
        found[changed] = self.bytes[changed] * new.sum(axis=1)
        return found

    def _shift(self, givers: Rows, takers: Rows, loads: LoadArray) -> None:
        for number, load in enumerate(loads):
            # add.at, because bincount has float weights, which are exact only up to 2**53.
            np.subtract.at(self.broker_load[number], givers, load)
            np.add.at(self.broker_load[number], takers, load)
        self.broker_load[:, self.no_broker] = 0


def initial_state(request: MeasuredRequest) -> PlanState:
    """Return the state of a request before any change."""
    request.check()
    table = table_of(request)
    widen(table, request.replication_factor or 0)
    fixed = np.append(np.isin(table.ids, list(request.excluded_brokers)), False)
    # An excluded broker keeps its replicas even if it is not among the brokers that may hold replicas.
    table.stays |= fixed
    excluded = np.zeros(len(table.replicas), dtype=np.bool_) if request.excluded is None else request.excluded
    current = table.factors()
    free = ~excluded & (current > 0)
    asked = current if request.replication_factor is None else request.replication_factor
    factors = np.where(free, np.minimum(asked, max(1, int(table.stays.sum()))), current)
    single = np.maximum(current, factors) <= 1
    replica_load = np.array(
        [resource.replica_load + np.where(single, resource.leader_load, 0) for resource in request.resources],
        dtype=np.int64,
    )
    leader_load = np.array(
        [np.where(single, 0, resource.leader_load) for resource in request.resources], dtype=np.int64
    )
    return PlanState(
        table=table,
        replica_load=replica_load,
        leader_load=leader_load,
        open_to=table.stays & ~fixed,
        fixed=fixed,
        free=free,
        before=table.replicas.copy(),
        factors=factors,
        leaders=None if request.leaders is None else table.leader,
        broker_load=broker_loads(table.replicas, replica_load, leader_load, table.no_broker),
        budget=request.budget_bytes,
        remaining_bytes=request.budget_bytes,
    )


def broker_loads(replicas: Rows, replica_load: LoadArray, leader_load: LoadArray, no_broker: int) -> LoadArray:
    """Sum up loads by resource and broker number."""
    loads = np.zeros((len(replica_load), no_broker + 1), dtype=np.int64)
    for number in range(len(replica_load)):
        for slot in range(replicas.shape[1]):
            np.add.at(
                loads[number], replicas[:, slot], replica_load[number] + (leader_load[number] if slot == 0 else 0)
            )
    loads[:, no_broker] = 0
    return loads


def widen(table: Table, factor: int) -> None:
    """Widen the table to `factor` slots."""
    missing = factor - table.replicas.shape[1]
    if missing > 0:
        table.replicas = np.pad(table.replicas, ((0, 0), (0, missing)), constant_values=table.no_broker)
