"""Execution of what a node persists: its election, its log, and snapshots that it fetches.

Leaves out when: the driver calls it in the order of `Ready`. Every error ends the process, because the node has already counted on the
write. One thread owns the storage; `PendingFlush.run` and `FetchedSnapshot.verify` may run in another.
"""

from dataclasses import dataclass, field

from controller_core.quorum import messages, node, ready
from controller_core.quorum.batches import Position
from controller_core.quorum.log_view import LogView
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import STATIC_VOTERS, ReplicaKey, VoterSet
from controller_core.shell.quorum.metadata_log import MetadataLog
from controller_core.shell.quorum.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from controller_core.shell.quorum.wire_batches import decode_log, encode_log, snapshot_voters
from kafka_log.errors import LogError
from kafka_log.files.pending_flush import PendingFlush
from kafka_log.files.snapshots import SnapshotReader, SnapshotWriter, check_snapshot, expect_whole
from kafka_log.format.batches import control_batches
from kafka_log.format.names import SnapshotId, snapshot_name
from kafka_log.format.snapshot_check import SnapshotCheck

LOADED_BYTES = 8 * 1024 * 1024
"""Read at once when the voters are searched for in the log: at least the largest batch."""


@dataclass(frozen=True, slots=True)
class FetchedSnapshot:
    """A snapshot that is fetched. Its bytes are checked when they arrive, so that they are not read again."""

    id: Position
    writer: SnapshotWriter
    check: SnapshotCheck = field(default_factory=SnapshotCheck)

    def verify(self) -> tuple[VoterSet | None, int]:
        """Flush the complete file, and return its voters and kraft.version. Raises CorruptLogError, CorruptBatch and FlushFailedError."""
        expect_whole(self.check, self.writer.path)
        self.writer.flush()
        return snapshot_voters(self.check.first_batch)


class Storage:
    """The files of one node: quorum-state and the log with its snapshots."""

    def __init__(self, log: MetadataLog, *, segment_bytes: int) -> None:
        """`segment_bytes` is the size of the largest segment, which one append cannot exceed."""
        self.log = log
        self._segment_bytes = segment_bytes
        self._fetched: FetchedSnapshot | None = None

    # At the start

    def stored_election(self) -> node.StoredElection | None:
        """Return the epoch, leader and vote on disk; None without the file. Raises UnreadableFileError."""
        state = read_quorum_state(self.log.folder)
        if state is None:
            return None
        voted = None if state.voted_id is None else ReplicaKey(state.voted_id, state.voted_directory_id)
        return node.StoredElection(state.leader_epoch, state.leader_id, voted)

    def summary(self) -> LogView:
        """Return the summary of the log."""
        return self.log.summary()

    def voter_history(self, static: VoterSet) -> VoterHistory:
        """Return the voters in the latest snapshot, which is read whole, and in the log after it. Raises CorruptBatch and LogError."""
        history, offset = VoterHistory(static), self.log.start_offset
        latest = self.log.latest_snapshot
        if latest is not None:
            with self.open_snapshot(Position(latest.offset, latest.epoch)) as reader:
                voters, level = snapshot_voters(check_snapshot(reader))
            history, offset = history.from_snapshot(latest.offset, voters, level), latest.offset
        while offset < self.log.end_offset:
            found, end_offset = control_batches(self.log.read(offset, LOADED_BYTES))
            assert end_offset is not None, "a read has at least one whole batch"
            batches = decode_log(b"".join(found), is_verified=True)
            history = history.append(batch for batch in batches if batch.base_offset >= offset)
            offset = end_offset
        return history

    # Persisting

    def store_election(self, election: node.StoredElection) -> None:
        """Replace quorum-state; it is on the disk when this returns. Raises LogError."""
        voted = election.voted
        is_static = election.kraft_version == STATIC_VOTERS
        state = QuorumState(
            leader_epoch=election.epoch,
            leader_id=election.leader_id,
            voted_id=None if voted is None else voted.id,
            voted_directory_id=None if voted is None or is_static else voted.directory_id,
            voters=election.voters if is_static else (),
        )
        write_quorum_state(self.log.folder, state, version=0 if is_static else 1)

    def write(self, operation: ready.Appended | ready.Truncated, *, high_watermark: int, now_ms: int) -> None:
        """Change the log. Raises LogError."""
        match operation:
            case ready.Appended():
                self._append(operation, now_ms)
            case ready.Truncated(end_offset=end_offset):
                self.log.truncate_to(end_offset, high_watermark)

    def _append(self, operation: ready.Appended, now_ms: int) -> None:
        encoded = [encode_log(batch, now_ms) for batch in operation.batches]
        if sum(map(len, encoded)) <= self._segment_bytes:
            encoded = [b"".join(encoded)]
        for data in encoded:
            self.log.append(data)

    def write_chunk(self, chunk: ready.SnapshotChunk) -> FetchedSnapshot | None:
        """Write bytes of a fetched snapshot; return the snapshot when it is complete. Raises LogError."""
        if chunk.position == 0:
            self.drop_fetched()
            writer = self.log.fetch_snapshot(SnapshotId(chunk.id.offset, chunk.id.epoch))
            self._fetched = None if writer is None else FetchedSnapshot(chunk.id, writer)
        fetched = self._fetched
        if fetched is None or fetched.writer.size_bytes != chunk.position:
            raise LogError(f"Refused bytes of snapshot {chunk.id} at {chunk.position}: they do not continue the file.")
        fetched.writer.append(chunk.data)
        fetched.check.feed(chunk.data)
        return fetched if chunk.is_last else None

    def install(self, fetched: FetchedSnapshot) -> int:
        """Replace the log by a verified snapshot, and return the snapshot's size in bytes. Raises LogError."""
        self.log.finish_snapshot(fetched.writer)
        self.log.restart_at(SnapshotId(fetched.id.offset, fetched.id.epoch))
        self._fetched = None
        return fetched.writer.size_bytes

    def drop_fetched(self) -> None:
        """Delete what was fetched of a snapshot."""
        if self._fetched is not None:
            self._fetched.writer.close()
            self._fetched = None

    def begin_flush(self) -> PendingFlush:
        """Return a flush of the whole log."""
        return self.log.begin_flush()

    def complete(self, pending: PendingFlush) -> None:
        """Note that a flush has run. Raises FlushFailedError."""
        self.log.complete(pending)

    def close(self) -> None:
        """Write everything to the disk and close the files. Raises LogError."""
        self.drop_fetched()
        self.log.close()

    # Snapshots of the state machine

    def create_snapshot(self, end: Position, high_watermark: int) -> SnapshotWriter | None:
        """Begin a snapshot of the committed records before an offset; None if there is one. Raises LogError."""
        return self.log.create_snapshot(SnapshotId(end.offset, end.epoch), high_watermark)

    def finish_snapshot(self, writer: SnapshotWriter) -> None:
        """Make a written snapshot readable. Raises LogError."""
        self.log.finish_snapshot(writer)

    # Cleaning

    def clean(self, high_watermark: int) -> None:
        """Delete old snapshots and the records before the oldest that stays. Raises LogError, OSError and CorruptBatch."""
        self.log.clean(high_watermark)

    @property
    def start_offset(self) -> int:
        """Where the log starts."""
        return self.log.start_offset

    # Reading

    def read(self, wanted: messages.ReadRange) -> bytes:
        """Return the records of a response: at least one whole batch."""
        return self.log.read(wanted.offset, wanted.max_bytes, up_to=wanted.end_offset)

    def read_snapshot(self, snapshot: Position, position: int, size_bytes: int) -> bytes:
        """Return bytes of a snapshot. Raises LogError for a file that another process has deleted."""
        with self.open_snapshot(snapshot) as reader:
            return reader.read(position, size_bytes)

    def open_snapshot(self, snapshot: Position) -> SnapshotReader:
        """Open a snapshot, which the caller closes. Raises LogError for a file that another process has deleted."""
        snapshot_id = SnapshotId(snapshot.offset, snapshot.epoch)
        reader = self.log.open_snapshot(snapshot_id)
        if reader is None:
            raise LogError(f"Snapshot {self.log.folder / snapshot_name(snapshot_id)} is missing.")
        return reader
