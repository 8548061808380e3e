"""Summary of the log that decisions need: where it starts and ends, its epochs, its snapshots, what is on disk and what is committed.

The node keeps the summary as a value and changes it together with the operations that it orders, which the shell carries out in
order; so a decision never waits for the log, and records are read only by the shell (ADR 27).
"""

from dataclasses import dataclass, field
from enum import Enum

from controller_core.quorum.batches import BOOTSTRAP_SNAPSHOT, NO_EPOCH, Batch, Position
from controller_core.quorum.changed import changed
from kafka_log.format.epochs import LeaderEpochs


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A complete snapshot on disk."""

    id: Position
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Flush:
    """A flush under way: what it makes durable, less what was truncated since it started."""

    number: int
    end_offset: int


class Validity(Enum):
    """Relation of a follower's log to that of the leader."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"
    """The leader no longer has the records that the follower lacks."""


@dataclass(frozen=True, slots=True)
class LogView:
    """Summary of the log. Offsets before `flushed_offset` are on disk; `high_watermark` is the highest offset known as committed."""

    start_offset: int = 0
    end_offset: int = 0
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    snapshots: tuple[Snapshot, ...] = ()
    high_watermark: int = 0
    flushed_offset: int = 0
    flush: Flush | None = None
    flush_count: int = 0

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record; of the snapshot if the log has none after it."""
        if self.epochs.latest is not None:
            return self.epochs.latest
        return self.snapshots[-1].id.epoch if self.snapshots else NO_EPOCH

    @property
    def end(self) -> Position:
        """The length of the log, by which candidates are compared."""
        return Position(self.end_offset, self.last_epoch)

    @property
    def latest_snapshot(self) -> Position | None:
        """Id of the latest snapshot."""
        return self.snapshots[-1].id if self.snapshots else None

    def snapshot(self, snapshot_id: Position) -> Snapshot | None:
        """Return the snapshot with an id."""
        return next((snapshot for snapshot in self.snapshots if snapshot.id == snapshot_id), None)

    def append(self, batches: tuple[Batch, ...]) -> "LogView":
        """Return the summary after appending batches, which start at the end of the log."""
        assert batches[0].base_offset == self.end_offset, (batches[0], self.end_offset)
        epochs = self.epochs
        for batch in batches:
            epochs = epochs.assign(batch.epoch, batch.base_offset)
        return changed(self, end_offset=batches[-1].end_offset, epochs=epochs)

    def truncate(self, end_offset: int) -> "LogView":
        """Return the summary without records at or after an offset, which must not be below the high watermark."""
        assert end_offset >= self.high_watermark, (end_offset, self.high_watermark)
        if end_offset >= self.end_offset:
            return self
        flush = self.flush and Flush(self.flush.number, min(self.flush.end_offset, end_offset))
        return changed(
            self,
            end_offset=end_offset,
            epochs=self.epochs.truncate_from_end(end_offset),
            flushed_offset=min(self.flushed_offset, end_offset),
            flush=flush,
        )

    def start_flush(self) -> "LogView":
        """Return the summary with a flush of the whole log under way."""
        return changed(self, flush=Flush(self.flush_count + 1, self.end_offset), flush_count=self.flush_count + 1)

    def end_flush(self, number: int) -> "LogView":
        """Return the summary after a flush; a flush of another number was overtaken by a snapshot and counts nothing."""
        if self.flush is None or self.flush.number != number:
            return self
        return changed(self, flushed_offset=max(self.flushed_offset, self.flush.end_offset), flush=None)

    def restart_at(self, snapshot: Snapshot) -> "LogView":
        """Return the summary after a fetched snapshot replaced the log and all older snapshots."""
        offset = snapshot.id.offset
        return changed(
            self,
            start_offset=offset,
            end_offset=offset,
            epochs=LeaderEpochs(),
            snapshots=(snapshot,),
            high_watermark=max(self.high_watermark, offset),
            flushed_offset=offset,
            flush=None,
        )

    def add_snapshot(self, snapshot: Snapshot) -> "LogView":
        """Return the summary with one more snapshot."""
        if self.snapshot(snapshot.id):
            return self
        return changed(self, snapshots=tuple(sorted((*self.snapshots, snapshot), key=lambda known: known.id)))

    def start_from(self, start_offset: int) -> "LogView":
        """Return the summary after records and snapshots before an offset were deleted; a snapshot that ends there covers them."""
        return changed(
            self,
            start_offset=start_offset,
            epochs=self.epochs.truncate_from_start(start_offset),
            snapshots=tuple(snapshot for snapshot in self.snapshots if snapshot.id.offset >= start_offset),
        )

    def end_of_epoch(self, epoch: int) -> Position:
        """Return the end of the highest epoch of the log that is not above the given one (RaftLog.endOffsetForEpoch)."""
        found = self.epochs.end_offset_for(epoch, self.end_offset)
        if found is None:
            return self.end
        end = Position(found.start_offset, found.epoch)
        earliest = self.snapshots[0].id if self.snapshots else None
        if earliest and end == Position(earliest.offset, epoch):
            return earliest
        return end

    def validate(self, fetched: Position) -> tuple[Validity, Position]:
        """Compare a follower's end with this log (RaftLog.validateOffsetAndEpoch).

        Returns the end itself if it is in this log, the point to truncate to, or the snapshot to fetch.
        """
        latest = self.latest_snapshot
        if fetched.offset == 0 and latest is not None and latest != BOOTSTRAP_SNAPSHOT:
            return Validity.SNAPSHOT, latest
        if self.start_offset == 0 and fetched.offset == 0:
            return Validity.VALID, Position(0, NO_EPOCH)
        if latest is not None and self._is_before_log(fetched):
            return Validity.SNAPSHOT, latest
        end = self.end_of_epoch(fetched.epoch)
        if end.epoch != fetched.epoch or end.offset < fetched.offset:
            return Validity.DIVERGING, end
        return Validity.VALID, fetched

    def _is_before_log(self, fetched: Position) -> bool:
        earliest = self.snapshots[0].id
        return (
            fetched.offset < self.start_offset
            or (fetched.offset == self.start_offset and fetched.epoch != earliest.epoch)
            or fetched.epoch < earliest.epoch
        )

    def divergence(self, leader_end: Position) -> int:
        """Return the offset to truncate to when the leader's log ends so in an epoch (RaftLog.truncateToEndOffset)."""
        if leader_end.epoch == NO_EPOCH:
            return min(leader_end.offset, self.end_offset)
        own = self.end_of_epoch(leader_end.epoch)
        return min(own.offset, leader_end.offset) if own.epoch == leader_end.epoch else own.offset
