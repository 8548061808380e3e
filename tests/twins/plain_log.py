"""A log as a list of batches in memory: the plain twin of kafka_log.files.log."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PlainBatch:
    """A batch as it is encoded, with both of its offsets."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    timestamp_ms: int
    content: bytes


@dataclass
class PlainLog:
    """Batches in order; every question is answered by reading all of them."""

    batches: list[PlainBatch] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0

    def append(self, batch: PlainBatch) -> None:
        """Add a batch at the end."""
        assert batch.base_offset == self.end_offset
        self.batches.append(batch)
        self.end_offset = batch.last_offset + 1

    def read_from(self, offset: int, up_to: int) -> bytes:
        """Return all batches from the one with `offset` on that end below `up_to`."""
        return b"".join(
            batch.content for batch in self.batches if batch.last_offset >= offset and batch.last_offset < up_to
        )

    def truncate_to(self, offset: int) -> None:
        """Drop each batch that reaches `offset`."""
        kept = [batch for batch in self.batches if batch.last_offset < offset]
        if len(kept) < len(self.batches):
            self.end_offset = self.batches[len(kept)].base_offset
            # a start inside of the dropped batch goes with it
            self.start_offset = min(self.start_offset, self.end_offset)
        self.batches = kept

    def start_at(self, offset: int) -> None:
        """Drop everything and start at `offset`."""
        self.batches = []
        self.start_offset = self.end_offset = offset

    def first_with_timestamp(self, timestamp_ms: int) -> int | None:
        """Return the base offset of the first batch with at least this timestamp."""
        return next((batch.base_offset for batch in self.batches if batch.timestamp_ms >= timestamp_ms), None)

    def epochs(self) -> list[tuple[int, int]]:
        """Return each epoch of the batches with its first offset."""
        starts: dict[int, int] = {}
        for batch in self.batches:
            starts.setdefault(batch.leader_epoch, batch.base_offset)
        return list(starts.items())
