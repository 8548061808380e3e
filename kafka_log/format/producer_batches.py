"""Producers of batches: id, epoch, sequence numbers, and the marker that ends a transaction.

Source: Kafka's DefaultRecordBatch, EndTransactionMarker and ControlRecordType.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple

from kafka_wire.failures import WireError
from kafka_wire.records import HEADER_BYTES, ControlType, CorruptBatch, Record, control_type, decode_batches

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
SEQUENCES = 2**31
"""Sequence numbers of a producer continue at 0 after the largest int32."""

_PREFIX = struct.Struct(">qi")
_FIELDS = struct.Struct(">hiqqqhi")
"""Attributes, last offset delta, base timestamp, largest timestamp, producer id, producer epoch, base sequence."""
_FIELDS_AT = 21
_TRANSACTIONAL = 0x10
_CONTROL = 0x20

_MARKER = struct.Struct(">hi")
"""Value of an end marker: version, coordinator epoch."""


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


def read_producer_batches(data: bytes | memoryview, *, skip_bad_markers: bool = False) -> list[ProducerBatch]:
    """Return the whole batches in `data` that have a producer id. Records are read only of control batches.

    Raises CorruptBatch for a wrong length, and for a marker that cannot be read; with `skip_bad_markers` such a batch has no marker. Checksums
    are not verified.
    """
    found = []
    position, size = 0, len(data)
    while size - position >= HEADER_BYTES:
        base_offset, length = _PREFIX.unpack_from(data, position)
        end = position + _PREFIX.size + length
        if length < HEADER_BYTES - _PREFIX.size:
            raise CorruptBatch(
                f"The batch at offset {base_offset} announces {length} bytes, fewer than its header has."
            )
        if end > size:
            break
        attributes, offset_delta, _, max_timestamp_ms, producer_id, epoch, sequence = _FIELDS.unpack_from(
            data, position + _FIELDS_AT
        )
        if producer_id != NO_PRODUCER_ID:
            is_control = bool(attributes & _CONTROL)
            found.append(
                ProducerBatch(
                    producer_id,
                    epoch,
                    sequence,
                    base_offset,
                    base_offset + offset_delta,
                    max_timestamp_ms,
                    bool(attributes & _TRANSACTIONAL),
                    is_control,
                    _marker(bytes(data[position:end]), skip_bad=skip_bad_markers) if is_control else None,
                )
            )
        position = end
    return found


def _marker(batch: bytes, *, skip_bad: bool) -> EndMarker | None:
    """Return the marker of a control batch, None where compaction removed it."""
    try:
        (decoded,) = decode_batches(batch)
        return read_end_marker(decoded.records[0]) if decoded.records else None
    except WireError:
        if skip_bad:
            return None
        raise


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
