"""Records of a batch that are decoded by columns: equal to those of the codec."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.metadata import partition_reading
from controller_core.metadata.partition_reading import change_records, read_slices
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.failures import MetadataError
from kafka_metadata.record_codec import decode_record, encode_record
from kafka_metadata.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ResourceType,
    TopicRecord,
)
from kafka_wire.record_columns import RecordColumns
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


@st.composite
def partition_changes(draw: st.DrawFn) -> PartitionChangeRecord:
    """A change with any of its fields."""
    return PartitionChangeRecord(
        draw(st.integers(min_value=0, max_value=2**31 - 1)),
        draw(UUIDS),
        draw(st.none() | IDS),
        draw(st.just(NO_LEADER_CHANGE) | NUMBERS),
        draw(st.none() | IDS),
        draw(st.none() | IDS),
        draw(st.none() | IDS),
        draw(st.sampled_from((NO_RECOVERY_CHANGE, 0, 1))),
        draw(st.none() | st.lists(UUIDS, max_size=4).map(tuple)),
        draw(st.none() | IDS),
        draw(st.none() | IDS),
    )


OTHERS = st.sampled_from(
    (
        TopicRecord("orders", UUID(int=7 << 64)),
        ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "1"),
        NoOpRecord(),
    )
)


def batch_of(records: list[MetadataRecord]) -> bytes:
    """Return a batch of records."""
    values = [encode_record(record, 30) for record in records]
    return encode_batch([Record(BASE_OFFSET + place, 5, None, value) for place, value in enumerate(values)])


def by_codec(records: list[MetadataRecord]) -> list[MetadataRecord]:
    """Return what the codec reads."""
    return [decode_record(encode_record(record, 30), 0) for record in records]


def with_lists(records: list[MetadataRecord]) -> list[MetadataRecord]:
    """Return the same records, partitions with the lists of eligible replicas that images have."""
    return [
        replace(
            one,
            eligible_leader_replicas=one.eligible_leader_replicas or (),
            last_known_elr=one.last_known_elr or (),
        )
        if isinstance(one, PartitionRecord)
        else one
        for one in records
    ]


def read(batch: bytes, record_count: int) -> list[MetadataRecord]:
    """Return the records of all slices."""
    slices = read_slices(batch, record_count)
    return [record for some in slices for record in (change_records(some) if isinstance(some, RecordColumns) else some)]


@pytest.mark.parametrize("fewest", [1, 4])
@given(records=st.lists(partitions() | partition_changes() | OTHERS, min_size=4, max_size=20))
def test_records_read_by_columns_are_those_of_the_codec(records: list[MetadataRecord], fewest: int) -> None:
    """The codec is the reference; the order is that of the batch. Missing lists of eligible replicas of partitions are empty ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_reading, "FEWEST_RECORDS", fewest)
        patch.setattr(partition_reading, "SLICE_RECORDS", 3)
        found = read(batch_of(records), len(records))

    assert with_lists(found) == with_lists(by_codec(records))


@pytest.mark.parametrize(("fewest", "most"), [(1, 2), (4, 10)], ids=["large", "small"])
def test_a_large_or_small_batch_is_read_record_by_record(fewest: int, most: int) -> None:
    """A large one would block the event loop: Kafka writes snapshots in batches of up to 8 MiB. A small one takes longer by columns."""
    records: list[MetadataRecord] = [PartitionRecord(number, UUID(int=1 << 64), (1,), (1,), 1) for number in range(3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_reading, "FEWEST_RECORDS", fewest)
        patch.setattr(partition_reading, "MOST_RECORDS", most)
        patch.delattr(partition_reading, "decode_columns")
        found = read(batch_of(records), len(records))

    assert found == by_codec(records)


@pytest.mark.parametrize("count", [1, 50], ids=["by the codec", "by columns"])
def test_a_batch_with_a_wrong_checksum_is_refused(count: int) -> None:
    """KafkaRaftClient verifies each batch of a snapshot."""
    batch = bytearray(batch_of([PartitionRecord(number, UUID(int=1 << 64), (1,), (1,), 1) for number in range(count)]))
    batch[-3] ^= 1
    with pytest.raises(CorruptBatch):
        read(bytes(batch), count)


def test_a_record_of_an_unknown_version_is_refused_with_its_offset() -> None:
    """It is not skipped: the state would differ from that of the other controllers."""
    value = bytearray(encode_record(PartitionRecord(0, UUID(int=1 << 64), (1,), (1,), 1), 30))
    value[2] = 99
    batch = encode_batch([Record(BASE_OFFSET, 5, None, bytes(value))])
    with pytest.raises(MetadataError, match=f"offset {BASE_OFFSET}"):
        read(batch, 1)
