"""Producers of a log: who has written, which transactions are open, and up to where a consumer of committed records may read.

A change is prepared before a log appends batches, and committed after it has. Source: Kafka's ProducerStateManager.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafka_log.format.producer_batches import ProducerBatch
from kafka_log.format.producers import LastBatch, Origin, ProducerEntry, find_duplicate, with_data, with_marker
from kafka_log.format.transaction_index import AbortedTransaction


@dataclass(frozen=True, slots=True)
class CompletedTransaction:
    """A transaction with records that a marker ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""
    is_abort: bool


@dataclass(frozen=True, slots=True)
class PreparedProducers:
    """Producers after an append that has not happened yet."""

    entries: dict[int, ProducerEntry]
    started: dict[int, int]
    """First offsets of new transactions, with their producers."""
    completed: list[CompletedTransaction]
    duplicate: LastBatch | None = None
    """The batch was appended before: nothing is appended, and these are its offsets."""


UNCHANGED = PreparedProducers({}, {}, [])
"""After batches without a producer id."""


class ProducerStates:
    """The producers of one log at `end_offset`."""

    def __init__(self, end_offset: int = 0) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = end_offset
        """Offset up to which batches are included."""
        self._open: dict[int, int] = {}
        """Producers of open transactions by first offset."""
        self._unreplicated: dict[int, int] = {}
        """Offsets of the markers of completed transactions by first offset, while the high watermark is below the marker."""

    def load(self, entries: Iterable[ProducerEntry], end_offset: int, *, now_ms: int, expiration_ms: int) -> None:
        """Replace everything by the producers of a snapshot at `end_offset`, without those that expired in the meantime."""
        self.clear(end_offset)
        for entry in entries:
            if not entry.is_expired(now_ms, expiration_ms):
                self.entries[entry.producer_id] = entry
                if entry.transaction_first_offset is not None:
                    self._open[entry.transaction_first_offset] = entry.producer_id

    def clear(self, end_offset: int) -> None:
        """Remove all producers and transactions; a log that starts at `end_offset` has none."""
        self.entries = {}
        self._open = {}
        self._unreplicated = {}
        self.end_offset = end_offset

    def prepare(
        self, batches: Sequence[ProducerBatch], origin: Origin, *, transaction_version: int = 0
    ) -> PreparedProducers:
        """Return the producers after batches with their final offsets; nothing changes yet. Raises RefusedAppendError."""
        if not batches:
            return UNCHANGED
        prepared = PreparedProducers({}, {}, [])
        for batch in batches:
            known = self.entries.get(batch.producer_id)
            if origin is Origin.CLIENT and known is not None and (duplicate := find_duplicate(known, batch)):
                return PreparedProducers(prepared.entries, prepared.started, prepared.completed, duplicate)
            known = known or ProducerEntry(batch.producer_id)
            entry = prepared.entries.get(batch.producer_id, known)
            if not batch.is_control:
                after = with_data(entry, batch, origin, known_epoch=known.epoch)
                if entry.transaction_first_offset is None and after.transaction_first_offset is not None:
                    prepared.started[after.transaction_first_offset] = batch.producer_id
            elif batch.marker is not None:
                after = with_marker(entry, batch, batch.marker, origin, transaction_version=transaction_version)
                # A transaction without records here changes neither what can be read nor the transaction index.
                if entry.transaction_first_offset is not None:
                    prepared.completed.append(
                        CompletedTransaction(
                            batch.producer_id, entry.transaction_first_offset, batch.base_offset, batch.marker.is_abort
                        )
                    )
            else:
                after = entry
            prepared.entries[batch.producer_id] = after
        return prepared

    def commit(self, prepared: PreparedProducers, end_offset: int) -> list[AbortedTransaction]:
        """Adopt prepared producers of a log that now ends at `end_offset`; return new entries of the transaction index."""
        self.entries |= prepared.entries
        self._open |= prepared.started
        aborted = []
        for completed in prepared.completed:
            if completed.is_abort:
                aborted.append(
                    AbortedTransaction(
                        completed.producer_id,
                        completed.first_offset,
                        completed.last_offset,
                        self._stable_offset_after(completed),
                    )
                )
            self._open.pop(completed.first_offset, None)
            self._unreplicated[completed.first_offset] = completed.last_offset
        self.end_offset = end_offset
        return aborted

    def replay(self, batches: Iterable[ProducerBatch]) -> list[AbortedTransaction]:
        """Apply batches of the log itself one by one, as recovery does; return the entries of the transaction index."""
        aborted = []
        for batch in batches:
            aborted += self.commit(self.prepare([batch], Origin.REPLICATION), batch.last_offset + 1)
        return aborted

    @property
    def is_empty(self) -> bool:
        """Whether there are no producers, and no transactions whose markers are not replicated."""
        return not self.entries and not self._unreplicated

    def raise_start(self, log_start_offset: int) -> None:
        """Note that the log starts at a higher offset. The producers of deleted records stay until they expire."""
        self.advance_high_watermark(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)

    @property
    def first_undecided_offset(self) -> int | None:
        """First offset of the oldest open transaction."""
        return min(self._open, default=None)

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset that belongs to a transaction that is open, or whose marker is above the high watermark."""
        return min((*self._open, *self._unreplicated), default=None)

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Drop completed transactions whose markers are below the high watermark."""
        self._unreplicated = {first: marker for first, marker in self._unreplicated.items() if marker >= high_watermark}

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers that were idle too long; return how many."""
        kept = {
            producer_id: entry
            for producer_id, entry in self.entries.items()
            if not entry.is_expired(now_ms, expiration_ms)
        }
        removed = len(self.entries) - len(kept)
        self.entries = kept
        return removed

    def _stable_offset_after(self, completed: CompletedTransaction) -> int:
        others = (first for first, producer_id in self._open.items() if producer_id != completed.producer_id)
        return min(others, default=completed.last_offset + 1)
