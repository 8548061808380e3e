"""Records of a batch that are decoded by columns: equal to those of the codec."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.metadata import slices
from controller_core.metadata.column_records import change_records, partition_records
from controller_core.metadata.slices import Slice, change_draft, read_slices, read_snapshot_slices
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.draft import Draft
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.partition_replay import new_partition
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
from kafka_metadata.replay import replay
from kafka_wire.columns import record_decoder
from kafka_wire.columns.record_encoder import RecordColumns
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


def as_in_images(records: list[MetadataRecord]) -> list[MetadataRecord]:
    """Return the same records, partitions as images have them."""
    return [new_partition(record) if isinstance(record, PartitionRecord) else record for record in records]


def records_of(one: Slice) -> list[MetadataRecord]:
    """Return the records of a slice."""
    if not isinstance(one.found, RecordColumns):
        return one.found
    return list((partition_records if one.found.message == "PartitionRecord" else change_records)(one.found))


def read(batch: bytes, record_count: int) -> list[MetadataRecord]:
    """Return the records of all slices; their offsets follow one another."""
    found: list[MetadataRecord] = []
    for read_slice in read_slices(batch, record_count):
        assert (read_slice.first_offset, read_slice.last_offset + 1 - read_slice.first_offset) == (
            BASE_OFFSET + len(found),
            len(read_slice.found),
        )
        found += records_of(read_slice)
    return found


@pytest.mark.parametrize("most", [3, 100])
@pytest.mark.parametrize("fewest", [1, 4])
@given(records=st.lists(partitions() | partition_changes() | OTHERS, min_size=4, max_size=20))
def test_records_read_by_columns_are_those_of_the_codec(records: list[MetadataRecord], fewest: int, most: int) -> None:
    """The codec is the reference; the order is that of the batch, of which some records are decoded at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "FEWEST_RECORDS", fewest)
        patch.setattr(slices, "MOST_RECORDS", most)
        patch.setattr(slices, "SLICE_RECORDS", 3)
        found = read(batch_of(records), len(records))

    assert as_in_images(found) == as_in_images(by_codec(records))


def test_a_small_batch_is_read_record_by_record() -> None:
    """It takes longer by columns."""
    records: list[MetadataRecord] = [PartitionRecord(number, UUID(int=1 << 64), (1,), (1,), 1) for number in range(3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(record_decoder, "decode_parts")
        found = read(batch_of(records), len(records))

    assert found == by_codec(records)


TOPIC_IDS = [UUID(int=number << 64) for number in (1, 2, 3)]


@given(
    st.lists(st.tuples(st.sampled_from(TOPIC_IDS), st.integers(0, 30)), unique=True, min_size=1, max_size=40),
    st.data(),
    st.sampled_from((7, 100)),
)
def test_a_snapshot_is_read_with_the_other_records_before_the_partitions(
    keys: list[tuple[UUID, int]], data: st.DataObject, most: int
) -> None:
    """MetadataImage.write: a topic, its partitions, the next topic. The image is that of the records one by one."""
    records: list[MetadataRecord] = []
    for place, topic_id in enumerate(TOPIC_IDS):
        records += [TopicRecord(f"topic-{place}", topic_id), NoOpRecord()]
        records += [
            replace(data.draw(partitions()), topic_id=topic_id, partition_id=number)
            for of_topic, number in keys
            if of_topic == topic_id
        ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "FEWEST_RECORDS", 1)
        patch.setattr(slices, "MOST_RECORDS", most)
        found = list(read_snapshot_slices(batch_of(records), len(records)))
    draft = Draft(MetadataImage())
    for read_slice in found:
        change_draft(draft, read_slice)

    assert draft.result() == replay(MetadataImage(), records)
    assert sum(len(read_slice.found) for read_slice in found) == len(records)


@pytest.mark.parametrize(
    "later",
    [
        PartitionChangeRecord(0, TOPIC_IDS[0], isr=(2,)),
        PartitionRecord(0, TOPIC_IDS[0], (3,), (3,), 3),
        PartitionRecord(0, TOPIC_IDS[0], (4,), (4,), 4, directories=(UUID(int=9 << 64), UUID(int=8 << 64))),
    ],
    ids=["a change", "a partition again", "a partition that is refused"],
)
def test_records_of_a_snapshot_stay_in_their_order_where_it_counts(
    later: PartitionRecord | PartitionChangeRecord,
) -> None:
    """No snapshot of Kafka has them."""
    records: list[MetadataRecord] = [TopicRecord("orders", TOPIC_IDS[0])]
    records += [PartitionRecord(number, TOPIC_IDS[0], (1, 2), (1, 2), 1) for number in range(30)]
    found = list(read_snapshot_slices(batch_of([*records, later]), 32))

    read_again = [record for read_slice in found for record in records_of(read_slice)]
    assert as_in_images(read_again[:31]) == as_in_images(records)
    assert getattr(read_again[31], "isr", None) == later.isr


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
