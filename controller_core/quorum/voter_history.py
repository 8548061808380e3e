"""Voter sets and levels of kraft.version by the offset of their control record, committed or not.

The latest one counts, even before it is committed; a truncation brings the one before it back (Kafka's VoterSetHistory and
KRaftControlRecordStateMachine). Records of a snapshot have the snapshot's last offset, those of the bootstrap snapshot -1.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from controller_core.quorum.batches import Batch, KRaftVersionRecord, VotersRecord
from controller_core.quorum.changed import changed
from controller_core.quorum.voters import STATIC_VOTERS, VoterSet

Value = TypeVar("Value")

BOOTSTRAP_OFFSET = -1
"""Offset of the control records of the bootstrap snapshot, which ends at offset 0."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[Value]):
    """A value and the offset of its record."""

    offset: int
    value: Value


@dataclass(frozen=True, slots=True)
class VoterHistory:
    """History of voter sets and kraft.version. `static` are the configured voters, which count while no record names others."""

    static: VoterSet = field(default_factory=VoterSet)
    voter_sets: tuple[Entry[VoterSet], ...] = ()
    versions: tuple[Entry[int], ...] = ()

    @property
    def voters(self) -> VoterSet:
        """The voter set that counts now."""
        return self.voter_sets[-1].value if self.voter_sets else self.static

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version that counts now."""
        return self.versions[-1].value if self.versions else STATIC_VOTERS

    @property
    def voters_offset(self) -> int | None:
        """Offset of the record of the voter set that counts; None for the configured voters."""
        return self.voter_sets[-1].offset if self.voter_sets else None

    def possible(self, high_watermark: int) -> tuple[VoterSet, ...]:
        """Return the voter sets of which one is the committed one, according to a high watermark: the one at it and all after it."""
        committed = [entry.value for entry in self.voter_sets if entry.offset < high_watermark]
        pending = [entry.value for entry in self.voter_sets if entry.offset >= high_watermark]
        return (*(committed or [self.static])[-1:], *pending)

    def append(self, batches: Iterable[Batch]) -> "VoterHistory":
        """Return the history after the control records of some batches."""
        voter_sets, versions = list(self.voter_sets), list(self.versions)
        for batch in batches:
            for offset, record in enumerate(batch.control, batch.base_offset):
                if isinstance(record, VotersRecord):
                    voter_sets.append(Entry(offset, record.voters))
                elif isinstance(record, KRaftVersionRecord):
                    versions.append(Entry(offset, record.level))
        if len(voter_sets) == len(self.voter_sets) and len(versions) == len(self.versions):
            return self
        return changed(self, voter_sets=tuple(voter_sets), versions=tuple(versions))

    def truncate(self, end_offset: int) -> "VoterHistory":
        """Return the history without records at or after an offset."""
        return changed(
            self,
            voter_sets=tuple(entry for entry in self.voter_sets if entry.offset < end_offset),
            versions=tuple(entry for entry in self.versions if entry.offset < end_offset),
        )

    def forget_before(self, start_offset: int) -> "VoterHistory":
        """Return the history without what a snapshot that ends at an offset replaces; the value that counts there stays."""
        return changed(
            self,
            voter_sets=_since(self.voter_sets, start_offset),
            versions=_since(self.versions, start_offset),
        )

    def from_snapshot(self, end_offset: int, voters: VoterSet | None, kraft_version: int) -> "VoterHistory":
        """Return the history after loading a snapshot that ends at an offset, which replaces everything but the configured voters."""
        return VoterHistory(
            self.static,
            (Entry(end_offset - 1, voters),) if voters is not None else (),
            (Entry(end_offset - 1, kraft_version),) if kraft_version else (),
        )

    def voters_at(self, offset: int) -> VoterSet | None:
        """Return the recorded voter set that counts at an offset, for a snapshot; None if no record names one."""
        return next((entry.value for entry in reversed(self.voter_sets) if entry.offset <= offset), None)

    def kraft_version_at(self, offset: int) -> int:
        """Return the level of kraft.version that counts at an offset, for a snapshot."""
        return next((entry.value for entry in reversed(self.versions) if entry.offset <= offset), STATIC_VOTERS)


def _since(entries: tuple[Entry[Value], ...], start_offset: int) -> tuple[Entry[Value], ...]:
    before = sum(entry.offset <= start_offset for entry in entries)
    return entries[max(0, before - 1) :]
