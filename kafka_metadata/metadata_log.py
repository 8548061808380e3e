"""State of a node that applies the metadata log: the image, how far it is, and the open transaction (KIP-868).

Records of a transaction are applied to an image of their own, which replaces the committed one at the end of the transaction and is dropped
when the transaction is aborted. Control records are the quorum's. Source: MetadataBatchLoader of Kafka.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.record_codec import decode_record
from kafka_metadata.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord, MetadataRecord
from kafka_metadata.replay import replay
from kafka_wire.records import RecordBatch

MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
"""Records that begin and end transactions."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that has not ended: the offset of its begin, and the image with its records."""

    begin_offset: int
    image: MetadataImage


@dataclass(frozen=True, slots=True)
class MetadataLog:
    """What a node has applied of the log."""

    image: MetadataImage = field(default_factory=MetadataImage)
    """Without the records of an open transaction."""
    end_offset: int = 0
    """Offset of the next record."""
    epoch: int = 0
    """Leader epoch of the last batch."""
    last_timestamp_ms: int = -1
    """Timestamp of the last batch of records, which a snapshot has in its header."""
    transaction: OpenTransaction | None = None

    @property
    def newest_image(self) -> MetadataImage:
        """The image with the records of an open transaction, which the active controller decides by."""
        return self.image if self.transaction is None else self.transaction.image


def apply_batch(log: MetadataLog, batch: RecordBatch) -> MetadataLog:
    """Return the state after a batch of the log. Raises MetadataError."""
    header = batch.header
    after = log if header.is_control else apply_records(log, header.base_offset, _decoded(batch))
    timestamp = log.last_timestamp_ms if header.is_control else header.max_timestamp_ms
    return replace(
        after, end_offset=header.last_offset + 1, epoch=header.partition_leader_epoch, last_timestamp_ms=timestamp
    )


def apply_records(log: MetadataLog, base_offset: int, found: Sequence[MetadataRecord]) -> MetadataLog:
    """Return the state after records, of which the first has the base offset. Raises MetadataError."""
    begin = 0
    for place, record in enumerate(found):
        if isinstance(record, MARKERS):
            log = _apply_marker(_extend(log, base_offset + begin, found[begin:place]), base_offset + place, record)
            begin = place + 1
    return replace(_extend(log, base_offset + begin, found[begin:]), end_offset=base_offset + len(found))


def _decoded(batch: RecordBatch) -> list[MetadataRecord]:
    return [decode_record(record.value, record.offset) for record in batch.records]


def _extend(log: MetadataLog, offset: int, found: Sequence[MetadataRecord]) -> MetadataLog:
    if not found:
        return log
    if log.transaction is None:
        return replace(log, image=replay(log.image, found, offset))
    return replace(log, transaction=replace(log.transaction, image=replay(log.transaction.image, found, offset)))


def _apply_marker(log: MetadataLog, offset: int, record: MetadataRecord) -> MetadataLog:
    if isinstance(record, BeginTransactionRecord):
        if log.transaction is not None:
            raise MetadataError(
                f"The BeginTransactionRecord at offset {offset} cannot be applied: the transaction that began at offset "
                f"{log.transaction.begin_offset} has not ended."
            )
        return replace(log, transaction=OpenTransaction(offset, log.image))
    if log.transaction is None:
        raise MetadataError(
            f"The {type(record).__name__} at offset {offset} cannot be applied: no transaction has begun."
        )
    image = log.transaction.image if isinstance(record, EndTransactionRecord) else log.image
    return replace(log, image=image, transaction=None)
