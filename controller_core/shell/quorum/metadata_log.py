"""The quorum's log with its snapshots: what a voter reads, appends, truncates and cleans.

Leaves out elections and the high watermark, which callers pass in. Source: Kafka's KafkaRaftLog and RaftLog.
"""

import logging
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from controller_core.quorum.batches import Position
from controller_core.quorum.log_view import LogView, Snapshot, Validity
from controller_core.quorum.retention import Retention
from kafka_log.errors import InvalidAppendError, LogError
from kafka_log.files.log import Appended, Log
from kafka_log.files.pending_flush import PendingFlush
from kafka_log.files.snapshots import (
    SnapshotReader,
    SnapshotWriter,
    delete_snapshot,
    delete_unneeded_snapshots,
    list_snapshots,
)
from kafka_log.files.text_files import read_topic_id, write_topic_id
from kafka_log.format import control_records, names, roll
from kafka_log.format.batches import appendable_bytes
from kafka_log.format.epochs import LeaderEpochs
from kafka_wire.records import HEADER_BYTES

log = logging.getLogger(__name__)

METADATA_TOPIC_ID = uuid.UUID(int=1)
"""Id of the topic __cluster_metadata (Uuid.METADATA_TOPIC_ID)."""

HEADER_BATCH_BYTES = 8 * 1024 * 1024
"""A snapshot's first batch has the voters, and is at most as large as any batch."""


class MetadataLog:
    """An open log of the quorum. One thread owns it; only `PendingFlush.run` may run in another."""

    def __init__(
        self,
        folder: Path,
        settings: roll.LogSettings | None = None,
        *,
        retention: Retention | None = None,
        topic_id: uuid.UUID = METADATA_TOPIC_ID,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open or create the log in `folder`.

        Raises CorruptLogError, UnreadableFileError, and LogError for a log of another topic, or one that starts behind its last snapshot.
        """
        known = read_topic_id(folder)
        if known not in {None, topic_id}:
            raise LogError(f"The log in {folder} belongs to the topic with id {known}, not {topic_id}.")
        self.folder = folder
        self._retention = retention or Retention()
        self._clock = clock
        self._log = Log(folder, settings, clock=clock)
        if known is None:
            write_topic_id(folder, topic_id)
        self._snapshots = [snapshot for snapshot in list_snapshots(folder) if snapshot.offset >= self._log.start_offset]
        if self._log.start_offset > 0 and not self._snapshots:
            found = list_snapshots(folder)
            last = found[-1] if found else "missing"
            raise LogError(
                f"The log in {folder} starts at offset {self._log.start_offset}, but its latest snapshot is {last}."
            )
        delete_unneeded_snapshots(folder, self._log.start_offset)
        self.truncate_to_latest_snapshot()

    @property
    def start_offset(self) -> int:
        """Lowest offset that can be read."""
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets."""
        return self._log.end_offset

    @property
    def flushed_offset(self) -> int:
        """End of what is on the disk."""
        return self._log.flushed_offset

    @property
    def epochs(self) -> LeaderEpochs:
        """The epochs of the records, and where each starts."""
        return self._log.epochs

    @property
    def snapshots(self) -> tuple[names.SnapshotId, ...]:
        """All snapshots that are kept, the oldest first."""
        return tuple(self._snapshots)

    @property
    def last_fetched_epoch(self) -> int:
        """Epoch of the last record, or of the snapshot that an empty log starts at; 0 without both."""
        if self._log.epochs.latest is not None:
            return self._log.epochs.latest
        return self._snapshots[-1].epoch if self._snapshots else 0

    @property
    def latest_snapshot(self) -> names.SnapshotId | None:
        """The newest snapshot."""
        return self._snapshots[-1] if self._snapshots else None

    def summary(self) -> LogView:
        """Return the summary of the log for decisions, with the start as the high watermark: more is not known from files.

        Where a follower may fetch, and where two logs diverge, is decided from it.
        """
        snapshots = (
            Snapshot(Position(kept.offset, kept.epoch), (self.folder / names.snapshot_name(kept)).stat().st_size)
            for kept in self._snapshots
        )
        return LogView(
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            epochs=self.epochs,
            snapshots=tuple(snapshots),
            high_watermark=self.start_offset,
            flushed_offset=self.flushed_offset,
        )

    def read(self, offset: int, max_bytes: int, *, up_to: int | None = None) -> bytes:
        """Return batches as `Log.read` does; `up_to` is the high watermark for readers of committed records."""
        return self._log.read(offset, max_bytes, up_to=up_to)

    def append(self, data: bytes) -> Appended:
        """Append batches that have their offsets and epochs."""
        return self._log.append(data)

    def append_as_leader(self, data: bytes, epoch: int) -> Appended:
        """Append a leader's batches, with offsets from the end on."""
        return self._log.append_as_leader(data, epoch)

    def append_as_follower(self, data: bytes, epoch: int) -> Appended | None:
        """Append fetched batches; what is cut at the end, or of an epoch above `epoch`, is left out. None without any batch.

        Raises InvalidAppendError for batches that do not continue the log.
        """
        whole = appendable_bytes(data, epoch)
        if not whole:
            if len(data) >= HEADER_BYTES and not appendable_bytes(data, 2**31 - 1):
                raise InvalidAppendError("The fetched records do not begin with a whole batch.")
            return None
        return self._log.append(data if whole == len(data) else data[:whole])

    def assign_epoch(self, epoch: int) -> None:
        """Note that a new leader's epoch starts at the end."""
        self._log.assign_epoch(epoch)

    def begin_flush(self) -> PendingFlush:
        """Return a flush of everything up to the current end; see `Log.begin_flush`."""
        return self._log.begin_flush()

    def complete(self, pending: PendingFlush) -> int:
        """Note that a flush has run, and return the end offset that is safe."""
        return self._log.complete(pending)

    def flush(self) -> int:
        """Write everything to the disk and return the end offset that is safe."""
        return self._log.flush()

    def truncate_to(self, offset: int, high_watermark: int) -> None:
        """Remove the records from `offset` on; raises LogError below the high watermark (Q10)."""
        if offset < high_watermark:
            raise LogError(
                f"Refused to truncate the log to offset {offset}, below the high watermark {high_watermark}."
            )
        self._log.truncate_to(offset)

    def truncate_to_latest_snapshot(self) -> bool:
        """Empty a log that ends before its latest snapshot, as after one was fetched. Return whether it was emptied."""
        latest = self.latest_snapshot
        if latest is None or (latest.epoch, latest.offset) <= (self._log.epochs.latest or 0, self.end_offset):
            return False
        self.restart_at(latest)
        return True

    def restart_at(self, snapshot: names.SnapshotId) -> None:
        """Empty the log, which then starts at the end of a snapshot that replaces it; older snapshots are deleted."""
        self._log.truncate_fully_and_start_at(snapshot.offset)
        self._forget_before(snapshot)

    # Snapshots

    def create_snapshot(self, snapshot: names.SnapshotId, high_watermark: int) -> SnapshotWriter | None:
        """Begin a snapshot of the committed records before an offset; None if it exists or the log starts behind it.

        Raises LogError for an id above the high watermark, of another log, or in the middle of a batch.
        """
        if snapshot.offset < self.start_offset:
            return None
        if snapshot.offset > high_watermark:
            raise LogError(f"Refused to create snapshot {snapshot} above the high watermark {high_watermark}.")
        validity, end = self.summary().validate(Position(snapshot.offset, snapshot.epoch))
        if validity is not Validity.VALID:
            raise LogError(f"Refused to create snapshot {snapshot}: it is {validity.value} from this log ({end}).")
        batch = self._log.batch_with(snapshot.offset)
        if batch is not None and batch.base_offset < snapshot.offset:
            raise LogError(
                f"Refused to create snapshot {snapshot} in the middle of the batch at offset {batch.base_offset}."
            )
        return self.fetch_snapshot(snapshot)

    def fetch_snapshot(self, snapshot: names.SnapshotId) -> SnapshotWriter | None:
        """Begin a snapshot that a leader sends; None if it exists. `finish_snapshot` ends both kinds."""
        return None if snapshot in self._snapshots else SnapshotWriter(self.folder, snapshot)

    def finish_snapshot(self, writer: SnapshotWriter) -> None:
        """Make a written snapshot durable and readable."""
        writer.freeze()
        self._snapshots = sorted({*self._snapshots, writer.snapshot})

    def open_snapshot(self, snapshot: names.SnapshotId) -> SnapshotReader | None:
        """Open a snapshot for reading by position; None if there is none with this id, or its file was deleted."""
        if snapshot not in self._snapshots:
            return None
        try:
            return SnapshotReader(self.folder, snapshot)
        except FileNotFoundError:
            return None

    def delete_before(self, snapshot: names.SnapshotId, high_watermark: int) -> bool:
        """Start the log at a snapshot's end, and delete older snapshots and segments. Return whether any was deleted."""
        latest = self.latest_snapshot
        if snapshot not in self._snapshots or latest is None:
            return False
        if not self.start_offset < snapshot.offset <= min(latest.offset, high_watermark):
            return False
        segments = self._log.delete_before(snapshot.offset)
        return bool(self._forget_before(snapshot)) or segments > 0

    def clean(self, high_watermark: int) -> bool:
        """Delete the oldest snapshots, and the log below the next one, while limits of the retention are exceeded.

        Return whether any was deleted.
        """
        return self._clean_while(self._size_reason, high_watermark) | self._clean_while(
            self._age_reason, high_watermark
        )

    def close(self) -> None:
        """Write everything to the disk and close the log."""
        self._log.close()

    def _clean_while(self, reason_of: Callable[[names.SnapshotId], str | None], high_watermark: int) -> bool:
        cleaned = False
        while len(self._snapshots) > 1 and (reason := reason_of(self._snapshots[0])) is not None:
            oldest, following = self._snapshots[:2]
            if not self.delete_before(following, high_watermark):
                break
            cleaned = True
            path = str(self.folder / names.snapshot_name(oldest))
            log.info("Deleted a snapshot", extra={"path": path, "reason": reason, "log_start_offset": following.offset})
        return cleaned

    def _size_reason(self, _: names.SnapshotId) -> str | None:
        snapshot_bytes = sum((self.folder / names.snapshot_name(kept)).stat().st_size for kept in self._snapshots)
        return self._retention.size_reason(self._log.size_bytes, snapshot_bytes)

    def _age_reason(self, snapshot: names.SnapshotId) -> str | None:
        with SnapshotReader(self.folder, snapshot) as reader:
            timestamp_ms = control_records.last_contained_timestamp_ms(reader.read(0, HEADER_BATCH_BYTES))
        return self._retention.age_reason(timestamp_ms, int(self._clock() * 1000))

    def _forget_before(self, snapshot: names.SnapshotId) -> list[names.SnapshotId]:
        forgotten = [
            older for older in self._snapshots if (older.epoch, older.offset) < (snapshot.epoch, snapshot.offset)
        ]
        self._snapshots = [kept for kept in self._snapshots if kept not in forgotten]
        for older in forgotten:
            delete_snapshot(self.folder, older)
        return forgotten
