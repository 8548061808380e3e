"""Records of a snapshot that are decoded by columns: equal to those of the codec."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.metadata import partition_reading
from controller_core.metadata.partition_reading import read_batch
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.failures import MetadataError
from kafka_metadata.record_codec import decode_record, encode_record
from kafka_metadata.records import (
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ResourceType,
    TopicRecord,
)
from kafka_wire.records import CorruptBatch, Record, encode_batch

BASE_OFFSET = 7
UUIDS = st.integers(min_value=1, max_value=5).map(lambda number: UUID(int=number << 64 | number))
IDS = st.lists(st.integers(min_value=0, max_value=2**31 - 1), max_size=4).map(tuple)
NUMBERS = st.integers(min_value=-1, max_value=2**31 - 1)


@st.composite
def partitions(draw: st.DrawFn) -> PartitionRecord:
    """A PartitionRecord as a snapshot may have it; empty lists of eligible replicas are written too."""
    replicas = draw(IDS)
    directories = draw(st.lists(UUIDS | st.just(MIGRATING_DIRECTORY), min_size=len(replicas), max_size=len(replicas)))
    return PartitionRecord(
        draw(st.integers(min_value=0, max_value=2**31 - 1)),
        draw(UUIDS),
        replicas,
        draw(IDS),
        draw(NUMBERS),
        draw(NUMBERS),
        draw(NUMBERS),
        draw(IDS),
        draw(IDS),
        draw(st.sampled_from((0, 1))),
        tuple(directories),
        draw(st.none() | IDS),
        draw(st.none() | IDS),
    )


OTHERS = st.sampled_from(
    (
        TopicRecord("orders", UUID(int=7 << 64)),
        ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "1"),
        NoOpRecord(),
        PartitionChangeRecord(1, UUID(int=7 << 64), isr=(1, 2), leader=1),
    )
)


def batch_of(records: list[MetadataRecord]) -> bytes:
    """Return a batch of records."""
    values = [encode_record(record, 30) for record in records]
    return encode_batch([Record(BASE_OFFSET + place, 5, None, value) for place, value in enumerate(values)])


def by_codec(records: list[MetadataRecord]) -> list[tuple[int, MetadataRecord]]:
    """Return what the codec reads, by offset."""
    return [
        (offset, decode_record(encode_record(record, 30), offset)) for offset, record in enumerate(records, BASE_OFFSET)
    ]


@given(st.lists(partitions() | OTHERS, min_size=1, max_size=20))
def test_records_read_by_columns_are_those_of_the_codec(records: list[MetadataRecord]) -> None:
    """The codec is the reference; order and offsets are those of the batch."""
    assert list(read_batch(batch_of(records), len(records))) == by_codec(records)


@given(records=st.lists(partitions(), min_size=3, max_size=6))
def test_a_large_batch_is_read_record_by_record(records: list[MetadataRecord]) -> None:
    """It would block the event loop: Kafka writes snapshots in batches of up to 8 MiB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_reading, "COLUMN_RECORDS", 2)
        found = read_batch(batch_of(records), len(records))

    assert not isinstance(found, list)
    assert list(found) == by_codec(records)


def test_a_batch_with_a_wrong_checksum_is_refused() -> None:
    """KafkaRaftClient verifies each batch of a snapshot."""
    batch = bytearray(batch_of([PartitionRecord(0, UUID(int=1 << 64), (1,), (1,), 1)]))
    batch[-3] ^= 1
    with pytest.raises(CorruptBatch):
        list(read_batch(bytes(batch), 1))


def test_a_record_of_an_unknown_version_is_refused_with_its_offset() -> None:
    """It is not skipped: the state would differ from that of the other controllers."""
    value = bytearray(encode_record(PartitionRecord(0, UUID(int=1 << 64), (1,), (1,), 1), 30))
    value[2] = 99
    batch = encode_batch([Record(BASE_OFFSET, 5, None, bytes(value))])
    with pytest.raises(MetadataError, match=f"offset {BASE_OFFSET}"):
        list(read_batch(batch, 1))
