"""Partition states in columns: one numpy array for each field, one row for each partition.

Goals: an election over 200,000 partitions touches a few arrays and no Python object (objects are 10 to 150
times slower). Constraints: replica lists have different lengths, topics are created and deleted.

Replicas and ISR are two-dimensional, in Kafka's order, padded on the right with -1; the width grows to the longest list
so far. Columns that few partitions need (eligible leader replicas, directories) do not exist before their first value. Rows of deleted
topics are blanked, so that no query finds them, and reused. A row number is valid only within one
scheduled event of its topic (`shell.scheduler`): code that awaits keeps names instead.

Names and ids of topics are in `cluster.Cluster`.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from controller_core.model.ids import MAX_BROKER_ID, NO_BROKER, NO_EPOCH, NO_LEADER

IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

INITIAL_ROWS = 1024
"""Rows allocated initially; doubled when full."""
INITIAL_WIDTH = 4
"""Replica slots allocated initially: replication factor 3 and one replica being added."""
MANY_LISTS = 1_000
"""From this number on lists are padded without a list for each row: a fifth of the time for 200,000; fewer are faster one by one."""
FREE = -1
"""Topic index of a row that no partition uses."""


def pad(lists: Sequence[Sequence[int]], width: int = 0) -> IntArray:
    """Convert lists of broker ids into an array padded with -1: shape (lists, longest or width).

    >>> pad([(1, 2), (3,)]).tolist()
    [[1, 2], [3, -1]]
    """
    width = max(width, max(map(len, lists), default=0), 1)
    if len(lists) < MANY_LISTS:
        return np.array([[*ids, *[NO_BROKER] * (width - len(ids))] for ids in lists], dtype=np.int32).reshape(-1, width)
    lengths = np.fromiter(map(len, lists), dtype=np.intp, count=len(lists))
    padded = np.full((len(lists), width), NO_BROKER, dtype=np.int32)
    every_id = np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=int(lengths.sum()))
    padded[np.arange(width) < lengths[:, None]] = every_id
    return padded


def widen(ids: IntArray, width: int) -> IntArray:
    """Pad an array of ids to at least a width."""
    if ids.shape[1] >= width:
        return ids
    # For the ten partitions of a new topic, np.pad takes ten times as long.
    wide = np.full((len(ids), width), NO_BROKER, dtype=np.int32)
    wide[:, : ids.shape[1]] = ids
    return wide


def unpad(ids: IntArray) -> tuple[int, ...]:
    """Convert one padded row of ids into a tuple.

    >>> unpad(pad([(1, 2), (3,)])[1])
    (3,)
    """
    return tuple(int(replica) for replica in ids if replica != NO_BROKER)


class PartitionColumns:
    """Table of partitions. All arrays have the same number of rows; unused rows are blank."""

    def __init__(self) -> None:
        self.topic: IntArray = np.full(INITIAL_ROWS, FREE, dtype=np.int32)
        self.partition: IntArray = np.zeros(INITIAL_ROWS, dtype=np.int32)
        self.leader: IntArray = np.full(INITIAL_ROWS, NO_LEADER, dtype=np.int32)
        self.leader_epoch: IntArray = np.full(INITIAL_ROWS, NO_EPOCH, dtype=np.int32)
        self.partition_epoch: IntArray = np.full(INITIAL_ROWS, NO_EPOCH, dtype=np.int32)
        self.controller_epoch: IntArray = np.full(INITIAL_ROWS, NO_EPOCH, dtype=np.int32)
        self.recovering: BoolArray = np.zeros(INITIAL_ROWS, dtype=np.bool_)
        self.replicas: IntArray = np.full((INITIAL_ROWS, INITIAL_WIDTH), NO_BROKER, dtype=np.int32)
        self.isr: IntArray = np.full((INITIAL_ROWS, INITIAL_WIDTH), NO_BROKER, dtype=np.int32)
        self.elr: IntArray | None = None
        """Eligible leader replicas (KIP-966), padded like the ISR; None while no partition has any."""
        self.last_known_elr: IntArray | None = None
        """The last leader of partitions without one (KIP-966), padded like the ISR; None while no partition has any."""
        self.directories: IntArray | None = None
        """Directory of each replica, as a number of `Cluster.directory_ids`; None in ZooKeeper mode."""
        self._end = 0
        self._free: list[int] = []
        self._highest_id = 0

    @property
    def width(self) -> int:
        """Slots in the replica and ISR columns."""
        return int(self.replicas.shape[1])

    @property
    def end(self) -> int:
        """One more than the last row ever used."""
        return self._end

    def add(self, topic_index: int | IntArray, partitions: IntArray, replicas: IntArray) -> IntArray:
        """Add partitions of a topic, or of several, without a state (NewPartition). Returns their rows."""
        rows = self._allocate(len(partitions))
        self.topic[rows] = topic_index
        self.partition[rows] = partitions
        self.set_replicas(rows, replicas)
        return rows

    def remove(self, rows: IntArray) -> None:
        """Blank rows and keep them for reuse."""
        self.topic[rows] = FREE
        self.leader[rows] = NO_LEADER
        for column in (self.leader_epoch, self.partition_epoch, self.controller_epoch):
            column[rows] = NO_EPOCH
        self.recovering[rows] = False
        self.replicas[rows] = NO_BROKER
        self.isr[rows] = NO_BROKER
        for optional in (self.elr, self.last_known_elr, self.directories):
            if optional is not None:
                optional[rows] = NO_BROKER
        self._free.extend(rows.tolist())

    def set_replicas(self, rows: IntArray, replicas: IntArray) -> None:
        """Set replica lists: shape (rows, any width)."""
        self.record_ids(replicas)
        self._fit(replicas.shape[1])
        self.replicas[rows] = widen(replicas, self.width)

    def set_states(
        self,
        rows: IntArray,
        leader: IntArray,
        leader_epoch: IntArray,
        isr: IntArray,
        partition_epoch: IntArray,
        controller_epoch: IntArray | int,
        recovering: BoolArray | bool = False,
    ) -> None:
        """Set leader, epochs, ISR and recovery state: shapes (rows,), ISR (rows, any width)."""
        # A manually written state may name a leader that is in no list; flags are still looked up for it.
        self.record_ids(leader)
        self.record_ids(isr)
        self._fit(isr.shape[1])
        self.leader[rows] = leader
        self.leader_epoch[rows] = leader_epoch
        self.isr[rows] = widen(isr, self.width)
        self.partition_epoch[rows] = partition_epoch
        self.controller_epoch[rows] = controller_epoch
        self.recovering[rows] = recovering

    def set_elr(self, rows: IntArray, elr: IntArray, last_known_elr: IntArray) -> None:
        """Set eligible leader replicas and last known leaders: shapes (rows, any width)."""
        self.elr = self._set_optional(self.elr, rows, elr)
        self.last_known_elr = self._set_optional(self.last_known_elr, rows, last_known_elr)

    def set_directories(self, rows: IntArray, directories: IntArray) -> None:
        """Set the directories of all replicas: shape (rows, any width), in the order of the replicas."""
        self.directories = self._set_optional(self.directories, rows, directories)

    def elr_in(self, rows: IntArray) -> IntArray:
        """Return the eligible leader replicas of rows: shape (rows, at least 1)."""
        return _optional_in(self.elr, rows)

    def last_known_elr_in(self, rows: IntArray) -> IntArray:
        """Return the last known leaders of rows: shape (rows, at least 1)."""
        return _optional_in(self.last_known_elr, rows)

    def _set_optional(self, column: IntArray | None, rows: IntArray, ids: IntArray) -> IntArray | None:
        if column is None:
            if not (ids != NO_BROKER).any():
                return None
            column = np.full((len(self.topic), 1), NO_BROKER, dtype=np.int32)
        column = widen(column, ids.shape[1])
        column[rows] = widen(ids, column.shape[1])
        return column

    def flags(self, ids: Iterable[int]) -> BoolArray:
        """Return a set of brokers that a whole column can index: `flags[column]`, False for padding."""
        # One element more than the highest id: index -1 (padding, no leader) reads the False at the end.
        members = np.zeros(self._highest_id + 2, dtype=np.bool_)
        members[[broker_id for broker_id in ids if 0 <= broker_id <= self._highest_id]] = True
        return members

    def used(self) -> IntArray:
        """All rows in use."""
        return _rows(self.topic[: self._end] != FREE)

    def new(self) -> IntArray:
        """Rows of partitions that never had a leader (NewPartition)."""
        return _rows((self.partition_epoch[: self._end] == NO_EPOCH) & (self.topic[: self._end] != FREE))

    def led_by(self, brokers: BoolArray) -> IntArray:
        """Rows whose leader is among the brokers."""
        return _rows_with(self.leader[: self._end, None], brokers)

    def without_live_leader(self, live: BoolArray) -> IntArray:
        """Rows of partitions that have a state and no live leader (OfflinePartition)."""
        has_state = self.partition_epoch[: self._end] != NO_EPOCH
        return _rows(has_state & ~live[self.leader[: self._end]])

    def with_in_elr(self, brokers: BoolArray) -> IntArray:
        """Rows that have any of the brokers among their eligible leader replicas."""
        if self.elr is None:
            return _rows(np.zeros(0, dtype=np.bool_))
        return _rows_with(self.elr[: self._end], brokers)

    def with_in_isr(self, brokers: BoolArray) -> IntArray:
        """Rows that have any of the brokers in their ISR."""
        return _rows_with(self.isr[: self._end], brokers)

    def hosted_by(self, brokers: BoolArray) -> IntArray:
        """Rows that have any of the brokers among their replicas."""
        return _rows_with(self.replicas[: self._end], brokers)

    def replicas_of(self, row: int) -> tuple[int, ...]:
        """One partition's replicas, preferred first."""
        return unpad(self.replicas[row])

    def isr_of(self, row: int) -> tuple[int, ...]:
        """One partition's in-sync replicas."""
        return unpad(self.isr[row])

    def _allocate(self, count: int) -> IntArray:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        first, self._end = self._end, self._end + count - len(reused)
        while self._end > len(self.topic):
            self._grow()
        return np.array([*sorted(reused), *range(first, self._end)], dtype=np.int32)

    def _grow(self) -> None:
        more = len(self.topic)
        self.topic = np.pad(self.topic, (0, more), constant_values=FREE)
        self.partition = np.pad(self.partition, (0, more))
        self.leader = np.pad(self.leader, (0, more), constant_values=NO_LEADER)
        self.leader_epoch = np.pad(self.leader_epoch, (0, more), constant_values=NO_EPOCH)
        self.partition_epoch = np.pad(self.partition_epoch, (0, more), constant_values=NO_EPOCH)
        self.controller_epoch = np.pad(self.controller_epoch, (0, more), constant_values=NO_EPOCH)
        self.recovering = np.pad(self.recovering, (0, more))
        self.replicas = np.pad(self.replicas, ((0, more), (0, 0)), constant_values=NO_BROKER)
        self.isr = np.pad(self.isr, ((0, more), (0, 0)), constant_values=NO_BROKER)
        self.elr = _lengthen(self.elr, more)
        self.last_known_elr = _lengthen(self.last_known_elr, more)
        self.directories = _lengthen(self.directories, more)

    def _fit(self, width: int) -> None:
        if width > self.width:
            self.isr = widen(self.isr, width)
            self.replicas = widen(self.replicas, width)

    def record_ids(self, ids: IntArray) -> None:
        """Record broker ids, so that flags include them. Raises ValueError for ids above MAX_BROKER_ID."""
        highest = int(ids.max(initial=0))
        if highest > MAX_BROKER_ID:
            raise ValueError(f"broker id {highest} is above the maximum of {MAX_BROKER_ID}")
        self._highest_id = max(self._highest_id, highest)


def unpad_all(ids: IntArray) -> list[list[int]]:
    """Convert padded rows of ids into lists, all at once: reading single elements of an array is ten times slower.

    >>> unpad_all(pad([(1, 2), (3,)]))
    [[1, 2], [3]]
    """
    return [[replica for replica in row if replica != NO_BROKER] for row in ids.tolist()]


def positions_of(some: Collection[int], rows: IntArray) -> list[int]:
    """Return the positions in `rows` of the rows that are in `some`, which is small and mostly empty: then no row is read.

    >>> positions_of({7, 9}, np.array([9, 8, 7], dtype=np.int32))
    [0, 2]
    """
    if not some:
        return []
    positions: list[int] = np.flatnonzero(np.isin(rows, list(some))).tolist()
    return positions


def keep_ids(ids: IntArray, kept: BoolArray) -> IntArray:
    """Keep some ids of each row, in their order, moved together to the left.

    >>> ids = pad([(1, 2, 3), (4, 5)])
    >>> keep_ids(ids, ids != 1).tolist()
    [[2, 3, -1], [4, 5, -1]]
    """
    closed = np.full(ids.shape, NO_BROKER, dtype=np.int32)
    count = np.zeros(len(ids), dtype=np.intp)
    for slot, keeps in enumerate((kept & (ids != NO_BROKER)).T):
        rows = np.flatnonzero(keeps)
        closed[rows, count[rows]] = ids[rows, slot]
        count += keeps
    return closed


def differ(one: IntArray, other: IntArray) -> BoolArray:
    """Return the rows whose lists differ, whatever their padding: shape (rows,).

    >>> differ(pad([(1, 2), (3,)]), pad([(2, 1), (3,)])).tolist()
    [True, False]
    """
    width = max(one.shape[1], other.shape[1])
    return any_of(widen(one, width) != widen(other, width))


def repeats(ids: IntArray) -> BoolArray:
    """Return the rows in which an id is twice: shape (rows,).

    >>> repeats(pad([(1, 2, 1), (3,)])).tolist()
    [True, False]
    """
    # Each slot with those before it: sorting short rows takes several times as long.
    found = np.zeros(len(ids), dtype=np.bool_)
    for slot in range(1, ids.shape[1]):
        found |= any_of(ids[:, :slot] == ids[:, slot, None]) & (ids[:, slot] != NO_BROKER)
    return found


def contained_in(inner: IntArray, outer: IntArray) -> BoolArray:
    """Return which ids of each row of `inner` are in that row of `outer`: slot by slot, so that wide rows need no memory."""
    found = np.zeros(inner.shape, dtype=np.bool_)
    for slot in outer.T:
        found |= inner == slot[:, None]
    members: BoolArray = found & (inner != NO_BROKER)
    return members


def any_of(flags: BoolArray) -> BoolArray:
    """Return for each row whether any flag is set: shape (rows, slots) to (rows,)."""
    # Slot by slot: numpy reduces short rows one at a time, which takes ten times as long.
    found: BoolArray = np.zeros(len(flags), dtype=np.bool_)
    for slot in flags.T:
        found |= slot
    return found


def _rows_with(lists: IntArray, brokers: BoolArray) -> IntArray:
    """Return the rows of the lists that have any of the flagged brokers: shape (n,), increasing."""
    members = np.flatnonzero(brokers)
    if len(members) == 1:
        # Comparing is four times as fast as looking up each element. Each row once, also if a list was written with a broker twice.
        rows = np.flatnonzero(lists.reshape(-1) == int(members[0])) // lists.shape[1]
        is_first = np.ones(len(rows), dtype=np.bool_)
        np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
        found: IntArray = rows[is_first].astype(np.int32)
        return found
    return _rows(any_of(brokers[lists]))


def _lengthen(column: IntArray | None, more: int) -> IntArray | None:
    return None if column is None else np.pad(column, ((0, more), (0, 0)), constant_values=NO_BROKER)


def _optional_in(column: IntArray | None, rows: IntArray) -> IntArray:
    return np.full((len(rows), 1), NO_BROKER, dtype=np.int32) if column is None else column[rows]


def _rows(mask: BoolArray) -> IntArray:
    return np.flatnonzero(mask).astype(np.int32)
