"""Record batches as the quorum sees them: offsets, epoch and control records; data records are opaque bytes."""

from dataclasses import dataclass

from controller_core.quorum.voters import VoterSet


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
