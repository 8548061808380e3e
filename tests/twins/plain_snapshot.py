"""A snapshot read record by record: the plain twin of its replay into columns."""

from collections.abc import Iterable

from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.record_codec import decode_record
from kafka_metadata.replay import replay
from kafka_wire.records import RecordBatch


def load_snapshot(batches: Iterable[RecordBatch], end_offset: int, epoch: int, last_timestamp_ms: int) -> MetadataLog:
    """Return the state of a snapshot of these batches, whose end and timestamp are given. Raises MetadataError."""
    image = MetadataImage()
    for batch in batches:
        if not batch.header.is_control:
            records = [decode_record(record.value, record.offset) for record in batch.records]
            image = replay(image, records, batch.header.base_offset)
    return MetadataLog(image, end_offset, epoch, last_timestamp_ms)
