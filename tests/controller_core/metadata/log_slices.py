"""Logs and clusters of records, and columns of records of partitions as they are read from the log."""

from collections.abc import Sequence

from controller_core.metadata.replayed_records import replay_records
from controller_core.metadata.slices import Slice
from controller_core.model import Cluster
from controller_core.model.mode_rules import kraft_rules
from kafka_metadata.metadata_log import MetadataLog, apply_records
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import MetadataRecord, PartitionChangeRecord, PartitionRecord
from kafka_wire.columns.record_decoder import decode_columns
from kafka_wire.columns.record_encoder import RecordColumns
from kafka_wire.records import Record, encode_batch


def columns_of(found: Sequence[PartitionRecord] | Sequence[PartitionChangeRecord]) -> RecordColumns:
    """Return the columns of records of one kind."""
    values = [encode_record(record, 30) for record in found]
    decoded = decode_columns(encode_batch([Record(place, 5, None, value) for place, value in enumerate(values)]))
    ((_, columns),) = decoded.columns
    return columns


def log_of(found: Sequence[MetadataRecord], end_offset: int) -> MetadataLog:
    """Return a log that ends with these records."""
    return apply_records(MetadataLog(), end_offset - len(found), found)


def cluster_of(found: Sequence[MetadataRecord]) -> Cluster:
    """Return the cluster that these records make."""
    made = Cluster(3000, 1, kraft_rules({}))
    replay_records(made, found)
    return made


def slice_of(found: Sequence[PartitionRecord] | Sequence[PartitionChangeRecord], first_offset: int) -> Slice:
    """Return the columns of records as a slice of the log."""
    return Slice(first_offset, first_offset + len(found) - 1, columns_of(found))
