"""Columns of records of partitions, as they are read from the log."""

from collections.abc import Sequence

from controller_core.metadata.slices import Slice
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import PartitionChangeRecord, PartitionRecord
from kafka_wire.record_column_decoder import decode_columns
from kafka_wire.record_columns import RecordColumns
from kafka_wire.records import Record, encode_batch


def columns_of(found: Sequence[PartitionRecord] | Sequence[PartitionChangeRecord]) -> RecordColumns:
    """Return the columns of records of one kind."""
    values = [encode_record(record, 30) for record in found]
    decoded = decode_columns(encode_batch([Record(place, 5, None, value) for place, value in enumerate(values)]))
    ((_, columns),) = decoded.columns
    return columns


def slice_of(found: Sequence[PartitionRecord] | Sequence[PartitionChangeRecord], first_offset: int) -> Slice:
    """Return the columns of records as a slice of the log."""
    return Slice(first_offset, first_offset + len(found) - 1, columns_of(found))
