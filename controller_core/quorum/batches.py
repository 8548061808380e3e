"""Record batches as the quorum sees them, and positions in the log; data records are opaque bytes.

Which epoch wrote which offsets is in `kafka_log.format.epochs`.
"""

from dataclasses import dataclass
from functools import total_ordering

from controller_core.quorum.voters import VoterSet

NO_EPOCH = 0
"""Epoch of an empty log; the first leader has epoch 1 or higher."""


@dataclass(frozen=True, slots=True)
class LeaderChangeRecord:
    """First record of an epoch: its leader, the voters and those that voted for the leader (ids)."""

    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KRaftVersionRecord:
    """The level of kraft.version from here on."""

    level: int


@dataclass(frozen=True, slots=True)
class VotersRecord:
    """The voter set from here on."""

    voters: VoterSet


@dataclass(frozen=True, slots=True)
class OtherControlRecord:
    """A control record that does not concern the quorum; it takes an offset."""


ControlRecord = LeaderChangeRecord | KRaftVersionRecord | VotersRecord | OtherControlRecord


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of the log. Either `control` has its records, one an offset, or they are data in `payload`.

    `payload` are the bytes of the batch as they were fetched, or the encoded records of a new batch; it is empty for a control batch
    made here, which the shell encodes.
    """

    base_offset: int
    last_offset: int
    epoch: int
    payload: bytes = b""
    control: tuple[ControlRecord, ...] = ()

    @property
    def end_offset(self) -> int:
        """Offset after the batch."""
        return self.last_offset + 1


def control_batch(base_offset: int, epoch: int, *records: ControlRecord) -> Batch:
    """Return a new control batch."""
    return Batch(base_offset, base_offset + len(records) - 1, epoch, control=records)


@total_ordering
@dataclass(frozen=True, slots=True)
class Position:
    """An end offset and the epoch of the record before it: the id of a snapshot, or the length of a log.

    A log is longer than another one if its last epoch is higher, or equal with a higher offset. `SnapshotId` of kafka_log has the same
    fields, but only names snapshot files and is ordered by offset first; the shell converts one to the other.

    >>> Position(3, epoch=2) > Position(9, epoch=1)
    True
    """

    offset: int
    epoch: int

    @property
    def is_valid(self) -> bool:
        """Whether a log can have this position; messages of other nodes may name any."""
        return self.offset >= 0 and self.epoch >= 0

    def __lt__(self, other: "Position") -> bool:
        return (self.epoch, self.offset) < (other.epoch, other.offset)


BOOTSTRAP_SNAPSHOT = Position(0, NO_EPOCH)
"""Id of the snapshot that formatting writes. It is not replicated: the first leader appends its control records to the log."""
