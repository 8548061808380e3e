"""Batches of the records that one decision writes. Source: QuorumController.appendRecords of Kafka.

An atomic result is one batch, because the log has a batch whole or not at all. Others are split in their order, so that a registration is in
the last batch: if the controller fails before it, the broker registers again, and the rest is decided again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_log.format.control_records import MAX_BATCH_BYTES, RECORD_OVERHEAD_BYTES, in_batches
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import MetadataRecord, RegisterBrokerRecord
from kafka_wire.errors import ErrorCode, Failure
from kafka_wire.records import HEADER_BYTES

MAX_RECORDS = 10_000
"""Records of a batch, as in Kafka (DEFAULT_MAX_RECORDS_PER_BATCH)."""

MAX_BYTES = MAX_BATCH_BYTES - HEADER_BYTES
"""Bytes of a batch's records."""


@dataclass(frozen=True, slots=True)
class Write:
    """Records to append. An atomic write is in the log whole or not at all."""

    records: tuple[MetadataRecord, ...]
    is_atomic: bool = True


def write_batches(write: Write, metadata_version: int) -> list[list[bytes]] | Failure:
    """Return the values of the records of each batch, or why the write is refused. Raises MetadataError as encode_record."""
    if not write.is_atomic:
        assert not any(isinstance(record, RegisterBrokerRecord) for record in write.records[:-1]), (
            "registration is last"
        )
    values = [encode_record(record, metadata_version) for record in write.records]
    return split_values(values, is_atomic=write.is_atomic)


def split_values(values: list[bytes], *, is_atomic: bool) -> list[list[bytes]] | Failure:
    """Return the values of each batch, or why they are refused."""
    return _one_batch(values) if is_atomic else _several_batches(values)


def _one_batch(values: list[bytes]) -> list[list[bytes]] | Failure:
    if len(values) > MAX_RECORDS:
        return Failure(
            ErrorCode.POLICY_VIOLATION,
            f"The change has {len(values)} records, but at most {MAX_RECORDS} can be written at once. Change less in one request.",
        )
    size_bytes = sum(map(len, values)) + RECORD_OVERHEAD_BYTES * len(values)
    if size_bytes > MAX_BYTES:
        return _too_large(size_bytes)
    return [values] if values else []


def _several_batches(values: Sequence[bytes]) -> list[list[bytes]] | Failure:
    largest = max(map(len, values), default=0) + RECORD_OVERHEAD_BYTES
    if largest > MAX_BYTES:
        return _too_large(largest)
    return list(in_batches(values, MAX_RECORDS, MAX_BYTES))


def _too_large(size_bytes: int) -> Failure:
    return Failure(
        ErrorCode.POLICY_VIOLATION,
        f"The change has {size_bytes} bytes, but at most {MAX_BYTES} can be written at once. Change less in one request.",
    )
