"""What a batch reports of its producer: id, epoch, sequence numbers, and the marker that ends a transaction.

Source: Kafka's DefaultRecordBatch, EndTransactionMarker and ControlRecordType.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple

from kafka_wire.compression import MAX_UNPACKED_BYTES
from kafka_wire.records import ControlType, CorruptBatch, Record, batch_headers, control_type, decode_batches

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
SEQUENCES = 2**31
"""Sequence numbers of a producer continue at 0 after the largest int32."""

_MARKER = struct.Struct(">hi")
"""Value of an end marker: version, coordinator epoch."""
MARKER_VERSION = 0


@dataclass(frozen=True, slots=True)
class EndMarker:
    """The control record that ends a transaction."""

    is_abort: bool
    coordinator_epoch: int
    timestamp_ms: int


class ProducerBatch(NamedTuple):
    """A batch of a producer with an id."""

    producer_id: int
    epoch: int
    base_sequence: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    is_transactional: bool
    is_control: bool
    marker: EndMarker | None = None
    """None in a batch of data, and in a control batch from which compaction removed the marker."""

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record."""
        return last_sequence(self.base_sequence, self.last_offset - self.base_offset)


def last_sequence(base_sequence: int, offset_delta: int) -> int:
    """Return the sequence number `offset_delta` after another one.

    >>> last_sequence(7, 3), last_sequence(2**31 - 1, 1), last_sequence(NO_SEQUENCE, 3)
    (10, 0, -1)
    """
    return NO_SEQUENCE if base_sequence == NO_SEQUENCE else (base_sequence + offset_delta) % SEQUENCES


def read_producer_batches(data: bytes) -> list[ProducerBatch]:
    """Return the batches in `data` that have a producer id. Records are read only of control batches.

    Raises CorruptBatch for bytes that are no batches, for other formats than 2, and for a marker that cannot be read.
    """
    found = []
    for position, header in batch_headers(data):
        if header.producer_id == NO_PRODUCER_ID:
            continue
        marker = None
        if header.is_control and header.record_count:
            whole = data[position : position + header.size_bytes]
            (batch,) = decode_batches(whole, max_unpacked_bytes=MAX_UNPACKED_BYTES)
            marker = read_end_marker(batch.records[0]) if batch.records else None
        found.append(
            ProducerBatch(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.base_offset,
                header.last_offset,
                header.max_timestamp_ms,
                header.is_transactional,
                header.is_control,
                marker,
            )
        )
    return found


def read_end_marker(record: Record) -> EndMarker | None:
    """Return the marker in a control record, None for a control record of another type. Raises CorruptBatch.

    A marker of a later version is read as far as its fields are known, as in Kafka.
    """
    kind = control_type(record)
    if kind not in {ControlType.ABORT, ControlType.COMMIT}:
        return None
    try:
        _, coordinator_epoch = _MARKER.unpack_from(record.value or b"")
    except struct.error:
        raise CorruptBatch(f"The end marker at offset {record.offset} has no coordinator epoch.") from None
    return EndMarker(kind is ControlType.ABORT, coordinator_epoch, record.timestamp_ms)
