"""Compaction of a log: of all records with one key, the last one stays.

A first pass over the part that was not compacted yet (the dirty part) notes the last offset of each key. A second pass over all
segments below the dirty part's end drops records with a lower offset than that. A record without a value (a tombstone) and the end
marker of a transaction stay for some time after the records that they concern are gone, so that each consumer sees them; the batch gets
the end of this time as its delete horizon in its first round (KIP-534). Records of aborted transactions are dropped at once. Offsets
never change. Source: Kafka's Cleaner, CleanedTransactionMetadata and MemoryRecords.filterTo.
"""

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_log.format.index_entries import MAX_RELATIVE_OFFSET
from kafka_log.format.producer_batches import read_end_marker
from kafka_log.format.producer_states import ProducerStates
from kafka_log.format.transaction_index import AbortedTransaction
from kafka_wire.records import NO_PRODUCER, BatchHeader, Record, RecordBatch, decode_batches, encode_kept_records

DEFAULT_MAX_KEYS = 5_000_000
"""Keys of one round. Kafka's default of log.cleaner.dedupe.buffer.size, 128 MiB, has 24 bytes for each and is filled by nine tenths."""

NO_OFFSET = -1


class OffsetMap:
    """Last offsets of keys, of which only a hash of 16 bytes is kept. Source: Kafka's SkimpyOffsetMap."""

    def __init__(self, max_keys: int = DEFAULT_MAX_KEYS) -> None:
        self._offsets: dict[bytes, int] = {}
        self._max_keys = max_keys
        self.latest_offset = NO_OFFSET
        """Offset up to which the log was read: records above it are kept."""

    def add(self, key: bytes, offset: int) -> bool:
        """Note a key's offset, which is above those before. Return False without it when the map is full."""
        if len(self._offsets) >= self._max_keys:
            return False
        self._offsets[_hashed(key)] = offset
        return True

    def find(self, key: bytes) -> int:
        """Return the last offset of a key, -1 for an unknown one."""
        return self._offsets.get(_hashed(key), NO_OFFSET)

    def read_up_to(self, offset: int) -> None:
        """Note that the log was read up to an offset, inclusive."""
        self.latest_offset = max(self.latest_offset, offset)


def _hashed(key: bytes) -> bytes:
    return hashlib.md5(key, usedforsecurity=False).digest()


class TransactionTracker:
    """Transactions in the order of the log: which batches were aborted, and which end markers nothing is left of.

    It is given the aborted transactions of a segment before the segment's batches.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, AbortedTransaction]] = []
        """Aborted transactions that begin later, by their first offsets."""
        self._aborted: dict[int, AbortedTransaction] = {}
        """Open ones by producer."""
        self._with_records: set[int] = set()
        """Producers of open transactions of which a batch was read."""
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []
        """Aborted transactions of which batches are left: the entries of the new transaction index."""

    def add(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add the aborted transactions of a range of offsets."""
        for transaction in transactions:
            heapq.heappush(self._waiting, (transaction.first_offset, transaction))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Note a batch of data; return whether its transaction was aborted."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._with_records.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_needless_marker(self, batch: RecordBatch) -> bool:
        """Note a control batch; return whether nothing is left of the transaction that it ends."""
        header = batch.header
        self._begin_up_to(header.last_offset)
        if not batch.records:
            return True
        marker = read_end_marker(batch.records[0])
        if marker is None:
            return False
        if not marker.is_abort:
            was_seen = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not was_seen
        transaction = self._aborted.pop(header.producer_id, None)
        if transaction is not None and header.producer_id in self._with_records:
            self._with_records.discard(header.producer_id)
            self.kept.append(transaction)
            return False
        return True

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[0][0] <= offset:
            _, transaction = heapq.heappop(self._waiting)
            self._aborted.setdefault(transaction.producer_id, transaction)


def map_offsets(data: bytes, offsets: OffsetMap, transactions: TransactionTracker, first_dirty_offset: int) -> bool:
    """Note the keys in batches of the dirty part. Return False when the map is full: the round ends in front of that record.

    Raises WireError for batches that cannot be read.
    """
    for batch in decode_batches(data):
        if batch.header.is_control:
            transactions.is_needless_marker(batch)
        elif not transactions.is_aborted(batch.header):
            for record in batch.records:
                is_dirty = record.key is not None and record.offset >= first_dirty_offset
                if is_dirty and not offsets.add(record.key or b"", record.offset):
                    return False
        if batch.header.last_offset >= first_dirty_offset:
            offsets.read_up_to(batch.header.last_offset)
    return True


@dataclass(frozen=True, slots=True)
class LastRecord:
    """Last record of a producer that is still active."""

    data_offset: int | None
    """None after a marker in a new epoch."""
    epoch: int


def last_records(states: ProducerStates) -> dict[int, LastRecord]:
    """Return the last records of all producers. Their batches are kept, as they have the last sequence numbers."""
    return {
        entry.producer_id: LastRecord(entry.last_data_offset if entry.batches else None, entry.epoch)
        for entry in states.entries.values()
    }


@dataclass(frozen=True, slots=True)
class CleaningRound:
    """Inputs of the decision on each batch of a round."""

    offsets: OffsetMap
    last_records: Mapping[int, LastRecord]
    end_offset: int
    """Offset in front of which the round ends; the batch before it is kept, so that the log's offsets stay known."""
    now_ms: int
    delete_retention_ms: int
    """Time for which tombstones and markers stay (delete.retention.ms)."""


def cleaned_batches(data: bytes, cleaning: CleaningRound, transactions: TransactionTracker) -> Iterator[bytes]:
    """Yield the batches in `data` that are kept, each with the records that are kept. Raises WireError."""
    position = 0
    for batch in decode_batches(data):
        header = batch.header
        original = data[position : position + header.size_bytes]
        position += header.size_bytes
        is_needless_marker = header.is_control and transactions.is_needless_marker(batch)
        if header.is_control:
            horizon = header.delete_horizon_ms
            discards = is_needless_marker and horizon is not None and horizon <= cleaning.now_ms
        else:
            discards = transactions.is_aborted(header)
        keeps_header = _is_last_of_producer(header, cleaning.last_records) or (
            header.last_offset + 1 == cleaning.end_offset
        )
        if discards and not keeps_header:
            continue
        kept = [] if discards else [record for record in batch.records if _is_kept(record, header, cleaning)]
        if kept:
            yield _encoded(batch, kept, original, cleaning, is_needless_marker=is_needless_marker)
        elif keeps_header:
            yield encode_kept_records(header, [], delete_horizon_ms=None)


def _is_last_of_producer(header: BatchHeader, last: Mapping[int, LastRecord]) -> bool:
    found = last.get(header.producer_id) if header.producer_id != NO_PRODUCER else None
    if found is None:
        return False
    if found.data_offset is not None:
        return header.last_offset == found.data_offset
    return header.is_control and header.producer_epoch == found.epoch


def _is_kept(record: Record, header: BatchHeader, cleaning: CleaningRound) -> bool:
    if header.is_control or record.offset > cleaning.offsets.latest_offset:
        return True
    if record.key is None:
        return False
    is_past_horizon = header.delete_horizon_ms is not None and cleaning.now_ms >= header.delete_horizon_ms
    has_use = record.value is not None or not is_past_horizon
    return has_use and record.offset >= cleaning.offsets.find(record.key)


def _encoded(
    batch: RecordBatch, kept: Sequence[Record], original: bytes, cleaning: CleaningRound, *, is_needless_marker: bool
) -> bytes:
    """Return the batch as it is when nothing changes, else with its kept records and its delete horizon."""
    horizon = batch.header.delete_horizon_ms
    needs_horizon = horizon is None and (is_needless_marker or any(record.value is None for record in kept))
    if len(kept) == len(batch.records) and not needs_horizon:
        return original
    if needs_horizon:
        horizon = cleaning.now_ms + cleaning.delete_retention_ms
    return encode_kept_records(batch.header, kept, delete_horizon_ms=horizon)


@dataclass(frozen=True, slots=True)
class SegmentSize:
    """Sizes of a segment, which decide with which others it becomes one."""

    base_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


def grouped_segments(
    segments: Sequence[SegmentSize], *, segment_bytes: int, index_max_bytes: int, end_offset: int
) -> list[list[SegmentSize]]:
    """Return the segments in groups; each group becomes one segment, which is not larger than a segment may be.

    `end_offset` is the offset in front of which compaction ends.
    """
    groups: list[list[SegmentSize]] = []
    for row, segment in enumerate(segments):
        last_offset = (segments[row + 1].base_offset if row + 1 < len(segments) else end_offset) - 1
        if groups:
            group = groups[-1]
            joined = [*group, segment]
            fits = (
                sum(segment.size_bytes for segment in joined) <= segment_bytes
                and sum(segment.offset_index_bytes for segment in joined) <= index_max_bytes
                and sum(segment.time_index_bytes for segment in joined) <= index_max_bytes
                and (segment.size_bytes == 0 or last_offset - group[0].base_offset <= MAX_RELATIVE_OFFSET)
            )
            if fits:
                group.append(segment)
                continue
        groups.append([segment])
    return groups
