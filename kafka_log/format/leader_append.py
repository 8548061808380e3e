"""Validation of the batches that a leader appends.

A client sends one batch of format 2 with offsets from 0. It gets its offsets and the leader epoch; its timestamps are checked, or replaced by
the time of the append; every record is read, also inside a compressed batch. A batch is encoded again when the topic has another codec,
or when the offsets of its records are not consecutive. Source: Kafka's LogValidator and UnifiedLog.analyzeAndValidateRecords.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import google_crc32c

from kafka_log.errors import RefusedAppendError
from kafka_log.format.batches import CHECKED_FROM, Batch
from kafka_log.format.producer_batches import ProducerBatch, read_producer_batches
from kafka_log.format.producers import Origin
from kafka_log.format.record_walk import BadRecordError, WalkedRecords, walk_records
from kafka_wire import ErrorCode
from kafka_wire.compression import (
    MAX_UNPACKED_BYTES,
    Compression,
    TooManyUnpackedBytes,
    UnsupportedCompression,
    is_supported,
    unpack,
)
from kafka_wire.failures import WireError
from kafka_wire.records import (
    HEADER_BYTES,
    MAGIC,
    NO_PRODUCER,
    NO_TIMESTAMP,
    BatchHeader,
    batch_headers,
    decode_batches,
    encode_batch,
)

MAX_INT64 = 2**63 - 1

_MAGIC_AT = 16
_CRC = struct.Struct(">I")
_CRC_AT = 17
_ATTRIBUTES = struct.Struct(">h")
_OFFSET = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_EPOCH_AT = 12
_MAX_TIMESTAMP_AT = 35 - CHECKED_FROM
_RECORDS_AT = HEADER_BYTES - CHECKED_FROM
"""Positions in what the checksum covers."""
_LOG_APPEND_TIME = 0x08
_KNOWN_ATTRIBUTES = 0x7F
"""Codec, kind of timestamp, transactional, control, delete horizon. Kafka clears the others when it changes a timestamp."""


@dataclass(frozen=True, slots=True)
class AppendSettings:
    """Settings of a topic for what its leaders append, with Kafka's defaults."""

    max_message_bytes: int = 1_048_588
    """Largest batch (max.message.bytes)."""
    segment_bytes: int = 1024 * 1024 * 1024
    """Largest segment, which must have room for a batch (segment.bytes)."""
    compression: Compression | None = None
    """Codec that batches are stored with; None keeps the producer's (compression.type)."""
    is_compacted: bool = False
    """Whether each record needs a key (cleanup.policy)."""
    log_append_time: bool = False
    """Whether records get the time of the append (message.timestamp.type)."""
    timestamp_before_max_ms: int = MAX_INT64
    """Largest age of a record's timestamp (message.timestamp.before.max.ms)."""
    timestamp_after_max_ms: int = 3_600_000
    """Largest distance of a record's timestamp into the future (message.timestamp.after.max.ms)."""
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES
    """Largest size of a batch's records once decompressed, so that a small request cannot take all memory. Kafka has no such limit."""


class LeaderBatch(NamedTuple):
    """A batch as it is appended, and the fields of its header, which the log does not check again.

    What the checksum covers is a piece of its own: it is copied once from the request, then checked and written.
    """

    head: bytes
    """Up to the checksum."""
    checked: bytes
    header: BatchHeader
    """As the producer sent it, or as it was encoded again."""
    batch: Batch

    def read_producers(self) -> list[ProducerBatch]:
        """Return the batch as one of a producer with an id; none for another producer. Raises WireError for a marker that cannot be read."""
        header, batch = self.header, self.batch
        if header.producer_id == NO_PRODUCER:
            return []
        if header.is_control:
            return read_producer_batches(self.head + self.checked)
        return [
            ProducerBatch(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp_ms,
                header.is_transactional,
                header.is_control,
            )
        ]


def leader_batch(
    data: bytes | memoryview,
    settings: AppendSettings,
    *,
    base_offset: int,
    leader_epoch: int,
    origin: Origin,
    now_ms: int,
) -> LeaderBatch:
    """Return the one batch in `data` with its offsets from `base_offset` on, the leader epoch, and its timestamps.

    An incomplete batch behind it is ignored. Raises RefusedAppendError.
    """
    header = _only_batch(data)
    if origin is Origin.CLIENT and header.base_offset != 0:
        _refuse(ErrorCode.INVALID_RECORD, f"The base offset of the batch is {header.base_offset}; a client sends 0.")
    _check_size(header, settings.max_message_bytes, ErrorCode.MESSAGE_TOO_LARGE, "max.message.bytes")
    head, checked = bytes(data[:CHECKED_FROM]), bytes(data[CHECKED_FROM : header.size_bytes])
    if google_crc32c.value(checked) != header.crc:
        _refuse(
            ErrorCode.CORRUPT_MESSAGE, f"The checksum of the batch is not {header.crc}, which it has in its header."
        )
    if origin is Origin.CLIENT:
        _check_header(header)
    target = header.compression if settings.compression is None else settings.compression
    if header.is_control and header.compression == Compression.NONE:
        target = Compression.NONE
    max_timestamp_ms = header.max_timestamp_ms
    records = _unpacked(checked, header, settings, target)
    if records is not None:
        walked = _walked(*records, header)
        _check_records(header, walked, settings, now_ms)
        if not header.log_append_time:
            max_timestamp_ms = walked.largest_timestamp_ms
        if target != header.compression or not walked.is_consecutive:
            again = _encoded_again(head + checked, header, Compression(target))
            head, checked = again[:CHECKED_FROM], again[CHECKED_FROM:]
            ((_, header),) = batch_headers(again)
            _check_size(header, settings.max_message_bytes, ErrorCode.MESSAGE_TOO_LARGE, "max.message.bytes")
    _check_size(header, settings.segment_bytes, ErrorCode.RECORD_LIST_TOO_LARGE, "segment.bytes")
    timestamp_ms = now_ms if settings.log_append_time else max(max_timestamp_ms, NO_TIMESTAMP)
    stamped = bytearray(head)
    _OFFSET.pack_into(stamped, 0, base_offset)
    _EPOCH.pack_into(stamped, _EPOCH_AT, leader_epoch)
    if (header.log_append_time, header.max_timestamp_ms) != (settings.log_append_time, timestamp_ms):
        checked = _with_timestamp(checked, header, timestamp_ms, log_append_time=settings.log_append_time)
        _CRC.pack_into(stamped, _CRC_AT, google_crc32c.value(checked))
    last_offset = base_offset + header.last_offset_delta
    batch = Batch(0, header.size_bytes, base_offset, last_offset, leader_epoch, timestamp_ms)
    return LeaderBatch(bytes(stamped), checked, header, batch)


def _only_batch(data: bytes | memoryview) -> BatchHeader:
    """Return the header of the batch with which `data` starts."""
    if len(data) > _MAGIC_AT and data[_MAGIC_AT] != MAGIC:
        _refuse(
            ErrorCode.INVALID_RECORD,
            f"The batch has message format {data[_MAGIC_AT]}, only {MAGIC} is supported. "
            "Use a client of Kafka 0.11 or later.",
        )
    try:
        found = list(batch_headers(data))
    except WireError as error:
        _refuse(ErrorCode.CORRUPT_MESSAGE, str(error))
    if len(found) != 1:
        _refuse(ErrorCode.INVALID_RECORD, f"A partition's records must be one whole batch; there are {len(found)}.")
    ((_, header),) = found
    return header


def _check_size(header: BatchHeader, limit_bytes: int, error: ErrorCode, setting: str) -> None:
    if header.size_bytes > limit_bytes:
        _refuse(error, f"The batch has {header.size_bytes} bytes, {setting} of the topic is {limit_bytes}.")


def _check_header(header: BatchHeader) -> None:
    """Check what only clients can have wrong (LogValidator.validateBatch)."""
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        _refuse(
            ErrorCode.INVALID_RECORD,
            f"The batch announces {header.record_count} records and a last offset delta of {header.last_offset_delta}.",
        )
    if header.is_control:
        _refuse(ErrorCode.INVALID_RECORD, "Clients are not allowed to write control records.")
    if header.producer_id != NO_PRODUCER and header.base_sequence < 0:
        _refuse(
            ErrorCode.INVALID_RECORD,
            f"The batch of producer {header.producer_id} has the sequence number {header.base_sequence}.",
        )


def _unpacked(checked: bytes, header: BatchHeader, settings: AppendSettings, target: int) -> tuple[bytes, int] | None:
    """Return the decompressed records, and the position at which they begin.

    None for a codec that is not installed, if the batch can be stored unread.
    """
    if header.compression == Compression.NONE:
        return checked, _RECORDS_AT
    if not is_supported(header.compression) and header.compression in Compression.__members__.values():
        if target == header.compression and not settings.is_compacted:
            return None
        _refuse(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(UnsupportedCompression(header.compression)))
    try:
        return unpack(header.compression, checked[_RECORDS_AT:], settings.max_unpacked_bytes), 0
    except TooManyUnpackedBytes as error:
        _refuse(ErrorCode.MESSAGE_TOO_LARGE, str(error))
    except UnsupportedCompression as error:
        _refuse(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    except WireError as error:
        _refuse(ErrorCode.INVALID_RECORD, str(error))


def _walked(records: bytes, position: int, header: BatchHeader) -> WalkedRecords:
    try:
        return walk_records(records, header.record_count, header.base_timestamp_ms, position)
    except BadRecordError as error:
        _refuse(ErrorCode.INVALID_RECORD, f"In the batch, {error}.")


def _check_records(header: BatchHeader, walked: WalkedRecords, settings: AppendSettings, now_ms: int) -> None:
    """Check keys and timestamps (LogValidator.validateRecord)."""
    wrong: dict[int, str] = {}
    if settings.is_compacted:
        wrong = dict.fromkeys(walked.without_key, "A record of a compacted topic needs a key.")
    late = _wrong_timestamps(header, walked, settings, now_ms)
    for index, reason in late.items():
        wrong.setdefault(index, reason)
    if not wrong:
        return
    has_time = any(wrong[index] == reason for index, reason in late.items())
    first = min(wrong)
    raise RefusedAppendError(
        ErrorCode.INVALID_TIMESTAMP if has_time else ErrorCode.INVALID_RECORD,
        f"{len(wrong)} of {header.record_count} records are invalid. Record {first}: {wrong[first]}",
        sorted(wrong.items()),
    )


def _wrong_timestamps(
    header: BatchHeader, walked: WalkedRecords, settings: AppendSettings, now_ms: int
) -> dict[int, str]:
    """Return the reasons by the indexes of records."""
    least, most = now_ms - settings.timestamp_before_max_ms, now_ms + settings.timestamp_after_max_ms
    timestamps_ms = walked.timestamps_ms
    if header.log_append_time:
        timestamps_ms = [header.max_timestamp_ms] * len(timestamps_ms)
    elif timestamps_ms and least <= walked.least_timestamp_ms and walked.largest_timestamp_ms <= most:
        return {}  # the usual batch, without a step for each record
    wrong = {}
    for index, timestamp in enumerate(timestamps_ms):
        if not settings.log_append_time and timestamp != NO_TIMESTAMP:
            if not least <= timestamp <= most:
                wrong[index] = f"Timestamp {timestamp} is not between {least} and {most}."
        elif header.log_append_time:
            wrong[index] = "A producer must not set the timestamp type LogAppendTime."
    return wrong


def _encoded_again(batch: bytes, header: BatchHeader, compression: Compression) -> bytes:
    """Return the records as a new batch with consecutive offsets."""
    try:
        (decoded,) = decode_batches(batch)
        return encode_batch(
            [record._replace(offset=offset) for offset, record in enumerate(decoded.records)],
            compression=compression,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            is_transactional=header.is_transactional,
            is_control=header.is_control,
        )
    except UnsupportedCompression as error:
        _refuse(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    except WireError as error:
        _refuse(ErrorCode.INVALID_RECORD, str(error))


def _with_timestamp(checked: bytes, header: BatchHeader, timestamp_ms: int, *, log_append_time: bool) -> bytes:
    """Return what the checksum covers with another largest timestamp, and another kind of timestamps."""
    attributes = header.attributes & _KNOWN_ATTRIBUTES & ~_LOG_APPEND_TIME
    fields = bytearray(checked[:_RECORDS_AT])
    _ATTRIBUTES.pack_into(fields, 0, attributes | (_LOG_APPEND_TIME if log_append_time else 0))
    _OFFSET.pack_into(fields, _MAX_TIMESTAMP_AT, timestamp_ms)
    return b"".join((fields, memoryview(checked)[_RECORDS_AT:]))


def _refuse(error: ErrorCode, message: str) -> NoReturn:
    raise RefusedAppendError(error, message)
