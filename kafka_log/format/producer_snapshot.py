"""Contents of a producer snapshot: the producers of a log at the offset that its file name has.

    version int16 = 1 | CRC-32C uint32 of what follows | count int32 | 42 bytes an entry:
    producer id int64 | epoch int16 | last sequence int32 | last offset int64 | offset delta int32 | timestamp int64
    | coordinator epoch int32 | first offset of the open transaction int64, -1 for none

An entry keeps only the last of the five batches of a producer. Source: Kafka's ProducerStateManager and ProducerSnapshot.json.
"""

import struct
from collections.abc import Iterable
from operator import attrgetter

import google_crc32c

from kafka_log.errors import UnreadableFileError
from kafka_log.format.producers import LastBatch, ProducerEntry

SNAPSHOT_VERSION = 1

_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NONE = -1


def encode_producers(entries: Iterable[ProducerEntry]) -> bytes:
    """Return the content of a snapshot file, in the order of ids. Kafka has the order of its hash map, which has no meaning."""
    rows = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.last_offset_delta,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            _NONE if entry.transaction_first_offset is None else entry.transaction_first_offset,
        )
        for entry in sorted(entries, key=attrgetter("producer_id"))
    ]
    body = _COUNT.pack(len(rows)) + b"".join(rows)
    return _HEAD.pack(SNAPSHOT_VERSION, google_crc32c.value(body)) + body


def decode_producers(content: bytes) -> list[ProducerEntry]:
    """Return the entries of a snapshot file; raises UnreadableFileError."""
    if len(content) < _HEAD.size + _COUNT.size:
        raise UnreadableFileError(f"its size of {len(content)} bytes is too small for a producer snapshot")
    version, crc = _HEAD.unpack_from(content)
    if version != SNAPSHOT_VERSION:
        raise UnreadableFileError(f"version {version} is not supported, only {SNAPSHOT_VERSION}")
    body = content[_HEAD.size :]
    if google_crc32c.value(body) != crc:
        raise UnreadableFileError(
            f"the snapshot is corrupt (stored crc = {crc}, computed crc = {google_crc32c.value(body)})"
        )
    (count,) = _COUNT.unpack_from(body)
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise UnreadableFileError(f"it announces {count} producers in {len(content)} bytes")
    return [_entry(row) for row in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _entry(row: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, transaction = row
    return ProducerEntry(
        producer_id,
        epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp_ms=timestamp,
        transaction_first_offset=transaction if transaction >= 0 else None,
        batches=(LastBatch(sequence, offset, delta, timestamp),) if offset >= 0 else (),
    )
