"""Snapshot of a cluster for a what-if: partitions in columns, and brokers by number.

Brokers are numbered by id, so that arrays by broker stay small for large ids. Padding and "no leader" keep their value, -1: arrays of
flags have one entry more than there are brokers, False, which an index of -1 reads.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from controller_core.model import NO_BROKER, NO_LEADER, BoolArray, IntArray
from move_planner.request import LoadArray

UNKNOWN_MIN_ISR = 0
"""Represents an unknown min.insync.replicas: no partition is under it."""


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One broker. `capacity_bytes` and `free_bytes` are those of all its disks, None where they are unknown."""

    id: int
    rack: str | None = None
    live: bool = True
    capacity_bytes: int | None = None
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Partitions of a cluster with the ids of brokers: columns of shape (n,), lists of shape (n, width) padded with -1.

    `replicas`: of a partition that is being reassigned, those of before and after; `target`: those that remain.
    `leader`: -1 for none. `min_isr`: UNKNOWN_MIN_ISR where it is unknown. `bytes`: size of one replica; None if sizes are unknown.
    """

    topics: Sequence[str]
    topic: IntArray
    partition: IntArray
    replicas: IntArray
    target: IntArray
    isr: IntArray
    leader: IntArray
    min_isr: IntArray
    bytes: LoadArray | None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A cluster at one moment; in `columns` the brokers are numbers, the positions in `brokers`.

    A leader that is not live counts as none, and members of the ISR that are not live as out of sync.
    """

    columns: Columns
    brokers: tuple[BrokerState, ...]

    @property
    def live(self) -> BoolArray:
        """Flags of live brokers by number, False for -1."""
        return self.flags(number for number, broker in enumerate(self.brokers) if broker.live)

    def flags(self, numbers: Iterable[int]) -> BoolArray:
        """Return a set of brokers that a column can index, False for -1."""
        found = np.zeros(len(self.brokers) + 1, dtype=np.bool_)
        found[list(numbers)] = True
        return found

    def count(self, numbers: IntArray, weights: LoadArray | None = None) -> LoadArray:
        """Count how often each broker occurs in a column or in lists, or sum up the weights of the rows in which it occurs."""
        if weights is not None and numbers.ndim > 1:
            weights = np.broadcast_to(weights[:, None], numbers.shape)
        sums: LoadArray = np.zeros(len(self.brokers) + 1, dtype=np.int64)
        np.add.at(sums, numbers, 1 if weights is None else weights)
        return sums[:-1]


def snapshot_of(columns: Columns, brokers: Iterable[BrokerState]) -> Snapshot:
    """Return a snapshot; brokers that occur only in the columns are added as offline, without a rack."""
    known = {broker.id: broker for broker in brokers}
    found = np.unique(np.concatenate([columns.replicas.ravel(), columns.isr.ravel(), columns.leader]))
    offline = [BrokerState(broker, live=False) for broker in found.tolist() if broker != NO_BROKER]
    states = {broker.id: broker for broker in offline} | known
    ordered = tuple(states[broker] for broker in sorted(states))
    ids = np.array([broker.id for broker in ordered], dtype=np.int64)
    numbered = Snapshot(columns, ordered)
    live = numbered.live
    leader, isr = _numbers(ids, columns.leader), _numbers(ids, columns.isr)
    return Snapshot(
        Columns(
            topics=columns.topics,
            topic=columns.topic,
            partition=columns.partition,
            replicas=_numbers(ids, columns.replicas),
            target=_numbers(ids, columns.target),
            isr=np.where(live[isr], isr, NO_BROKER).astype(np.int32),
            leader=np.where(live[leader], leader, NO_LEADER).astype(np.int32),
            min_isr=columns.min_isr,
            bytes=columns.bytes,
        ),
        ordered,
    )


def _numbers(ids: LoadArray, brokers: IntArray) -> IntArray:
    """Convert ids to numbers; -1 stays."""
    if not len(ids):
        return np.full(brokers.shape, NO_BROKER, dtype=np.int32)
    numbers = np.searchsorted(ids, brokers)
    return np.where(brokers == NO_BROKER, NO_BROKER, numbers).astype(np.int32)
