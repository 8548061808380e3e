"""Leader epochs of a log: the first offset of each epoch.

They answer where two logs diverge (KIP-101, KIP-279). Source: Kafka's LeaderEpochFileCache.
"""

from collections.abc import Iterable
from typing import NamedTuple


class EpochStart(NamedTuple):
    """An epoch and the offset of its first record, or of its first possible record while it has none."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of a log in increasing order of both fields. Immutable; changes return another value."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self.entries = tuple(entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeaderEpochs) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        return f"LeaderEpochs({list(map(tuple, self.entries))})"

    @property
    def latest(self) -> int | None:
        """Highest epoch, None for a log without records."""
        return self.entries[-1].epoch if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> "LeaderEpochs":
        """Return the epochs after a record of `epoch` at `start_offset`. Entries that contradict it are removed."""
        if self.entries:
            latest = self.entries[-1]
            if epoch == latest.epoch and start_offset >= latest.start_offset:
                return self
        kept = list(self.entries)
        while kept and (kept[-1].epoch >= epoch or kept[-1].start_offset >= start_offset):
            kept.pop()
        return LeaderEpochs((*kept, EpochStart(epoch, start_offset)))

    def truncate_from_end(self, end_offset: int) -> "LeaderEpochs":
        """Return the epochs of a log that ends at `end_offset`."""
        if not self.entries or self.entries[-1].start_offset < end_offset:
            return self
        return LeaderEpochs(entry for entry in self.entries if entry.start_offset < end_offset)

    def truncate_from_start(self, start_offset: int) -> "LeaderEpochs":
        """Return the epochs of a log that starts at `start_offset`; the epoch at that offset starts there."""
        earlier = [entry for entry in self.entries if entry.start_offset <= start_offset]
        if not earlier or earlier[-1] == self.entries[0] == EpochStart(self.entries[0].epoch, start_offset):
            return self
        return LeaderEpochs((EpochStart(earlier[-1].epoch, start_offset), *self.entries[len(earlier) :]))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochStart | None:
        """Return the largest epoch up to `epoch`, and where it ends; None for an epoch above all known ones.

        For an epoch below all known ones the result has that epoch and the start of the first known one.
        """
        if epoch == self.latest:
            return EpochStart(epoch, log_end_offset)
        higher = next((entry for entry in self.entries if entry.epoch > epoch), None)
        if higher is None:
            return None
        known = [entry.epoch for entry in self.entries if entry.epoch <= epoch]
        return EpochStart(known[-1] if known else epoch, higher.start_offset)
