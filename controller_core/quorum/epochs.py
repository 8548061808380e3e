"""Positions in the log and the leader-epoch cache: which epoch wrote which offsets.

The cache answers where an epoch ends, by which leader and follower find the point at which their logs diverge (KIP-101, KIP-595). On disk
it is Kafka's `leader-epoch-checkpoint`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering

from controller_core.quorum.batches import Batch

NO_EPOCH = 0
"""Epoch of an empty log; the first leader has epoch 1 or higher."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Position:
    """An end offset and the epoch of the record before it: the id of a snapshot, or the length of a log.

    A log is longer than another one if its last epoch is higher, or equal with a higher offset.

    >>> Position(3, epoch=2) > Position(9, epoch=1)
    True
    """

    offset: int
    epoch: int

    def __lt__(self, other: "Position") -> bool:
        return (self.epoch, self.offset) < (other.epoch, other.offset)


BOOTSTRAP_SNAPSHOT = Position(0, NO_EPOCH)
"""Id of the snapshot that formatting writes. It is not replicated: the first leader appends its control records to the log."""


@dataclass(frozen=True, slots=True)
class EpochStart:
    """First offset of an epoch."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class EpochCache:
    """First offsets of the epochs in the log, both strictly ascending."""

    starts: tuple[EpochStart, ...] = ()

    @property
    def last_epoch(self) -> int | None:
        """Epoch of the last record."""
        return self.starts[-1].epoch if self.starts else None

    def append(self, batches: Iterable[Batch]) -> "EpochCache":
        """Return the cache after some batches were appended."""
        starts = list(self.starts)
        for batch in batches:
            if not starts or batch.epoch > starts[-1].epoch:
                starts.append(EpochStart(batch.epoch, batch.base_offset))
        return EpochCache(tuple(starts)) if len(starts) > len(self.starts) else self

    def truncate(self, end_offset: int) -> "EpochCache":
        """Return the cache of the log without records at or after an offset."""
        return EpochCache(tuple(start for start in self.starts if start.start_offset < end_offset))

    def forget_before(self, start_offset: int) -> "EpochCache":
        """Return the cache of a log that starts at an offset: the epoch of the records before it starts there."""
        before = [start for start in self.starts if start.start_offset <= start_offset]
        if not before:
            return self
        return EpochCache((EpochStart(before[-1].epoch, start_offset), *self.starts[len(before) :]))

    def end_of(self, epoch: int, log_end_offset: int) -> Position | None:
        """Return the end of the highest epoch that is not above the given one; None if it is above all epochs of the log.

        For an epoch below all of them it is the start of the first one, under the given epoch.

        >>> cache = EpochCache((EpochStart(1, 0), EpochStart(3, 10)))
        >>> cache.end_of(2, log_end_offset=20)
        Position(offset=10, epoch=1)
        """
        if self.last_epoch == epoch:
            return Position(log_end_offset, epoch)
        found = epoch
        for start in self.starts:
            if start.epoch > epoch:
                return Position(start.start_offset, found)
            found = start.epoch
        return None

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of the record at an offset; None if the cache has no epoch there."""
        return next((start.epoch for start in reversed(self.starts) if start.start_offset <= offset), None)
