"""Batches of the records that one decision writes. Source: QuorumController.appendRecords of Kafka.

An atomic result is one batch, because the log has a batch whole or not at all. Others are split in their order, so that a registration is in
the last batch: if the controller fails before it, the broker registers again, and the rest is decided again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_log.format.control_records import MAX_BATCH_BYTES, RECORD_OVERHEAD_BYTES, in_batches
from kafka_metadata.records import MetadataRecord
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


def several_batches(values: Sequence[bytes]) -> list[list[bytes]] | Failure:
    """Return the values of each batch of a write that is not atomic, or why it is refused."""
    largest = max(map(len, values), default=0) + RECORD_OVERHEAD_BYTES
    if largest > MAX_BYTES:
        return too_large(largest)
    return list(in_batches(values, MAX_RECORDS, MAX_BYTES))


def too_many(count: int) -> Failure:
    """Return why an atomic write of so many records is refused."""
    return Failure(
        ErrorCode.POLICY_VIOLATION,
        f"The change has {count} records, but at most {MAX_RECORDS} can be written at once. Change less in one request.",
    )


def too_large(size_bytes: int) -> Failure:
    """Return why a write of so many bytes is refused."""
    return Failure(
        ErrorCode.POLICY_VIOLATION,
        f"The change has {size_bytes} bytes, but at most {MAX_BYTES} can be written at once. Change less in one request.",
    )
