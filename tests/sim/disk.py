"""Disk of one node: what was written, what is durable, and what a crash leaves of it.

`quorum-state` is durable when it is written. The log is durable up to its last flush: a crash cuts it anywhere after that, and may undo a
truncation that no flush has followed. A sector may fail, and a write may go to another place (`Damaged`).
"""

from dataclasses import dataclass
from enum import Enum
from random import Random

from controller_core.quorum.batches import BOOTSTRAP_SNAPSHOT, Batch, Position
from controller_core.quorum.log_view import LogView, Snapshot
from controller_core.quorum.node import StoredElection
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import VoterSet
from kafka_log.format.batches import BadBatchError
from kafka_log.format.epochs import LeaderEpochs
from kafka_log.format.recovery import Damage, is_torn_tail

Chain = str
"""Hash of a log up to a record: equal for equal logs."""


@dataclass(frozen=True)
class Entry:
    """A batch in a log, with the chain of the log up to its end."""

    batch: Batch
    chain: Chain


@dataclass(frozen=True)
class SnapshotFile:
    """A complete snapshot: its bytes, the control records in it, and the chain of the log that it replaces."""

    id: Position
    data: bytes
    voters: VoterSet | None
    kraft_version: int
    chain: Chain


class Damaged(Enum):
    """What a disk returns instead of what was written."""

    UNREADABLE_BATCH = "the sector of a batch cannot be read"
    MISDIRECTED_BATCH = "a later batch was written to the place of this one"
    INVALID_BATCH = "a batch has a wrong checksum, and a valid one follows it"
    UNREADABLE_SNAPSHOT = "the latest snapshot cannot be read"
    UNREADABLE_ELECTION = "quorum-state cannot be read"


class DiskError(Exception):
    """A read failed, or a start found damage that a crash does not explain (ADR 26): the process ends."""


class Disk:
    """Files of one node."""

    def __init__(self, static: VoterSet, bootstrap: SnapshotFile | None) -> None:
        self.static = static
        self.election: StoredElection | None = None
        self.start_offset = 0
        self.entries: list[Entry] = []
        self.durable: list[Entry] = []
        self.flushes: dict[int, list[Entry]] = {}
        self.snapshots: dict[Position, SnapshotFile] = {BOOTSTRAP_SNAPSHOT: bootstrap} if bootstrap else {}
        self.partial: tuple[Position, bytes] | None = None
        self.damage: Damaged | None = None
        self.damaged: Entry | SnapshotFile | None = None
        """The batch or snapshot that is damaged; a log or snapshots without it are whole."""

    @property
    def end_offset(self) -> int:
        """End of the log."""
        return self.entries[-1].batch.end_offset if self.entries else self.start_offset

    @property
    def durable_end(self) -> int:
        """End of the part of the log that every crash leaves."""
        count = len(self.durable)
        if count == 0:
            return self.start_offset
        if count <= len(self.entries) and self.entries[count - 1] is self.durable[-1]:
            return self.durable[-1].batch.end_offset  # Equal ends mean equal logs: an entry is in one place only.
        end = self.start_offset
        for entry, flushed in zip(self.entries, self.durable, strict=False):
            if entry is not flushed:
                break
            end = entry.batch.end_offset
        return end

    def chain_at(self, end_offset: int, *, entries: list[Entry] | None = None) -> Chain | None:
        """Return the chain of the log up to an offset, None if the log has no batch or snapshot that ends there."""
        for entry in reversed(self.entries if entries is None else entries):
            if entry.batch.end_offset == end_offset:
                return entry.chain
            if entry.batch.end_offset < end_offset:
                break
        return next((snapshot.chain for snapshot in self.snapshots.values() if snapshot.id.offset == end_offset), None)

    def append(self, entry: Entry) -> None:
        """Write a batch."""
        self.entries.append(entry)

    def truncate(self, end_offset: int) -> list[Entry]:
        """Remove batches from the end; return them."""
        kept = [entry for entry in self.entries if entry.batch.end_offset <= end_offset]
        assert not kept or kept[-1].batch.end_offset == min(end_offset, self.end_offset), end_offset
        removed, self.entries = self.entries[len(kept) :], kept
        return removed

    def start_flush(self, number: int) -> None:
        """Note what a flush makes durable."""
        self.flushes[number] = list(self.entries)

    def end_flush(self, number: int) -> None:
        """Make what was there at the start of a flush durable."""
        image = self.flushes.pop(number, None)
        if image is not None:
            is_whole = not image or image[0].batch.base_offset >= self.start_offset
            self.durable = (
                image
                if is_whole
                else [stored_batch for stored_batch in image if stored_batch.batch.base_offset >= self.start_offset]
            )

    def install(self, snapshot: SnapshotFile) -> None:
        """Let the log start at the end of a snapshot."""
        self.snapshots = {snapshot.id: snapshot}
        self.start_offset = snapshot.id.offset
        self.entries, self.durable, self.flushes, self.partial = [], [], {}, None

    def clean(self, start_offset: int) -> None:
        """Delete the log and the snapshots before an offset."""
        self.start_offset = start_offset
        self.entries = [entry for entry in self.entries if entry.batch.base_offset >= start_offset]
        self.durable = [entry for entry in self.durable if entry.batch.base_offset >= start_offset]
        self.snapshots = {key: snapshot for key, snapshot in self.snapshots.items() if key.offset >= start_offset}

    def crash(self, random: Random) -> None:
        """Lose what no flush has made durable, or a part of it."""
        common = 0
        for entry, flushed in zip(self.entries, self.durable, strict=False):
            if entry is not flushed:
                break
            common += 1
        if common < len(self.durable) and random.random() < 0.5:
            self.entries = list(self.durable)
        else:
            self.entries = self.entries[: random.randint(common, len(self.entries))]
        self.durable, self.flushes, self.partial = list(self.entries), {}, None
        latest = max(self.snapshots, default=None)
        last_epoch = self.entries[-1].batch.epoch if self.entries else 0
        if latest is not None and latest > Position(self.end_offset, last_epoch):
            # Recovery: an observer that does not flush can have a snapshot of records that its log has lost.
            self.install(self.snapshots[latest])

    # Damage

    def be_damaged(self, random: Random) -> None:
        """Damage something that was durable. The last batch stays valid: with a wrong checksum it is the same as a torn write."""
        self.damage, self.damaged = random.choice(list(Damaged)), None
        if self.damage is Damaged.UNREADABLE_SNAPSHOT:
            self.damaged = max(self.snapshots.values(), key=lambda snapshot: snapshot.id, default=None)
        elif self.damage is not Damaged.UNREADABLE_ELECTION:
            behind = 0 if self.damage is Damaged.UNREADABLE_BATCH else 1
            candidates = self.durable[: len(self.durable) - behind]
            self.damaged = random.choice(candidates) if candidates else None

    def read_log(self, entries: list[Entry]) -> None:
        """Read batches while the process runs: the page cache has what was written, unless it has to be read again."""
        if self.damage is Damaged.UNREADABLE_BATCH and any(entry is self.damaged for entry in entries):
            raise DiskError(self.damage.value)

    def read_snapshot(self, snapshot: SnapshotFile) -> None:
        """Read a snapshot while the process runs."""
        if self.damage is Damaged.UNREADABLE_SNAPSHOT and snapshot is self.damaged:
            raise DiskError(self.damage.value)

    def open(self) -> None:
        """Read everything, as a start does. Raises DiskError, or cuts a torn write, by the rule of the log."""
        latest = max(self.snapshots.values(), key=lambda snapshot: snapshot.id, default=None)
        match self.damage:
            case Damaged.UNREADABLE_ELECTION if self.election is not None:
                raise DiskError(self.damage.value)
            case Damaged.UNREADABLE_SNAPSHOT if latest is not None and latest is self.damaged:
                raise DiskError(self.damage.value)
            case Damaged.UNREADABLE_BATCH | Damaged.MISDIRECTED_BATCH | Damaged.INVALID_BATCH as damage:
                self._open_log(damage)

    def _open_log(self, damage: Damaged) -> None:
        """Find the damaged batch; a misdirected one is valid at its place, but its offset is too high."""
        places = [place for place, entry in enumerate(self.entries) if entry is self.damaged]
        if not places:
            return
        (place,) = places
        if damage is Damaged.UNREADABLE_BATCH:
            raise DiskError(damage.value)
        offset, valid = self.entries[place].batch.base_offset, place + 1 if place + 1 < len(self.entries) else None
        if damage is Damaged.MISDIRECTED_BATCH:
            valid = place
        if not is_torn_tail(Damage(BadBatchError(place, damage.value), offset, valid, ())):
            raise DiskError(damage.value)
        self.entries = self.entries[:place]
        self.durable = list(self.entries)

    def log_view(self) -> LogView:
        """Return the summary of the log after a start, which has flushed what it found."""
        end_offset = self.end_offset
        snapshots = tuple(
            Snapshot(snapshot.id, len(snapshot.data))
            for snapshot in sorted(self.snapshots.values(), key=lambda snapshot: snapshot.id)
        )
        epochs = LeaderEpochs()
        for entry in self.entries:
            epochs = epochs.assign(entry.batch.epoch, entry.batch.base_offset)
        return LogView(
            self.start_offset,
            end_offset,
            epochs,
            snapshots,
            self.start_offset,
            end_offset,
        )

    def history(self) -> VoterHistory:
        """Return the voters in the latest snapshot and in the log after it."""
        history = VoterHistory(self.static)
        start = self.start_offset
        at_start = [snapshot for snapshot in self.snapshots.values() if snapshot.id.offset == start]
        for stored in at_start:
            history = history.from_snapshot(start, stored.voters, stored.kraft_version)
        return history.append(entry.batch for entry in self.entries)
