"""Metadata records of partitions from columns have the same bytes as from the codec, and are read into the same columns.

Sources: PartitionRecord and PartitionChangeRecord 0 to 2 of Kafka 4.3.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.format.control_records import snapshot_batches
from kafka_wire import schema, unknown_tags
from kafka_wire.columns.record_decoder import MESSAGES, DecodedRecords, decode_columns, decode_parts
from kafka_wire.columns.record_encoder import Lists, RecordColumns, encode_columns, encode_records
from kafka_wire.compression import Compression
from kafka_wire.failures import CodecError
from kafka_wire.records import (
    HEADER_BYTES,
    CorruptBatch,
    Record,
    decode_batches,
    encode_batch,
    encode_batch_of,
    encode_values,
)
from tests.effort import examples
from tests.twins import record_columns as twin

INT32 = st.integers(-(2**31), 2**31 - 1)
CALLS = [(message, version) for message in MESSAGES for version in range(3)]
OFFSET, TIME_MS, EPOCH = 1_000, 1_700_000_000_000, 7
TOPIC_ID = UUID(int=3 << 100)


def values_of(one: schema.Field, sizes: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    """Return values of a field; lists have one of the sizes."""
    if not one.is_array:
        numbers = {"int32": INT32, "int8": st.integers(-128, 127), "uuid": st.uuids()}[one.kind]
        return numbers if one.default is None or one.kind == "uuid" else st.just(one.default) | numbers
    element = st.uuids() if one.kind == "uuid" else INT32
    lists = sizes.flatmap(lambda size: st.lists(element, min_size=size, max_size=size))
    return lists if one.default == () else st.none() | lists


def bodies(
    message: str, version: int, sizes: st.SearchStrategy[int], most: int = 8
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Return records with every field of the message; those of other versions have their defaults."""
    fields = schema.definition(message, version).fields
    body = st.fixed_dictionaries(
        {
            field.key: values_of(field, sizes)
            if version in field.versions
            else st.just([] if field.default == () else field.default)
            for field in fields
        }
    )
    return st.lists(body, min_size=1, max_size=most)


def encoded(message: str, version: int, found: list[dict[str, Any]]) -> bytes:
    """Return the batch from columns."""
    columns = twin.to_columns(message, version, found)
    return encode_columns(columns, base_offset=OFFSET, timestamp_ms=TIME_MS, partition_leader_epoch=EPOCH)


def changes(count: int, mixed: bool = False) -> RecordColumns:
    """Return changes of an ISR and a leader."""
    isr = np.array([[1, 2, 3]] * count, np.int32)
    if mixed:
        isr[::7, 2] = -1
    numbers = {"partition_id": np.arange(count, dtype=np.int32), "leader": np.full(count, 1, np.int32)}
    return RecordColumns(
        "PartitionChangeRecord", 2, np.array([TOPIC_ID.bytes] * count, "V16"), numbers, {"isr": Lists.padded(isr)}
    )


@pytest.mark.parametrize(("message", "version"), CALLS, ids=str)
@examples(15)
@given(data=st.data())
def test_columns_are_encoded_as_by_the_codec_and_read_again(message: str, version: int, data: st.DataObject) -> None:
    """For lists of all lengths, and any combination of tagged fields."""
    found = data.draw(bodies(message, version, st.integers(0, 4)))

    batch = encoded(message, version, found)
    assert batch == twin.encode(message, version, found, OFFSET, TIME_MS, EPOCH)
    decoded = decode_columns(batch)
    ((offsets, columns),) = decoded.columns
    assert offsets.tolist() == list(range(OFFSET, OFFSET + len(found)))
    assert twin.to_bodies(columns) == found
    assert decoded.others == ()


@pytest.mark.parametrize("message", MESSAGES)
@examples(5)
@given(data=st.data())
def test_long_lists_are_encoded_as_by_the_codec_and_left_to_it(message: str, data: st.DataObject) -> None:
    """Counts and sizes of two bytes."""
    found = data.draw(bodies(message, 2, st.sampled_from([30, 31, 32, 126, 127, 128]), most=2))

    batch = encoded(message, 2, found)
    assert batch == twin.encode(message, 2, found, OFFSET, TIME_MS, EPOCH)
    decoded = decode_columns(batch)
    read = {
        int(offset): body
        for offsets, columns in decoded.columns
        for offset, body in zip(offsets, twin.to_bodies(columns), strict=True)
    }
    left = {record.offset for record in decoded.others}
    assert read == {OFFSET + place: body for place, body in enumerate(found) if OFFSET + place not in left}
    (whole,) = decode_batches(batch)
    assert decoded.others == tuple(record for record in whole.records if record.offset in left)


@pytest.mark.parametrize("mixed", [False, True], ids=["one layout", "two layouts"])
@pytest.mark.parametrize("count", [64, 65, 8_192, 8_193])
def test_offsets_in_the_batch_take_as_many_bytes_as_they_need(count: int, mixed: bool) -> None:
    """Varints: two bytes from 64 on, three from 8,192 on."""
    columns = changes(count, mixed)
    batch = encode_columns(columns, base_offset=OFFSET, timestamp_ms=TIME_MS, partition_leader_epoch=EPOCH)

    assert batch == twin.encode(columns.message, 2, twin.to_bodies(columns), OFFSET, TIME_MS, EPOCH)
    ((offsets, again),) = decode_columns(batch).columns
    assert offsets.tolist() == list(range(OFFSET, OFFSET + count))
    assert twin.to_bodies(again) == twin.to_bodies(columns)


@pytest.mark.parametrize("mixed", [False, True], ids=["one layout", "two layouts"])
@pytest.mark.parametrize("before", [0, 1, 63, 64, 8_190])
def test_records_follow_others_of_their_batch(before: int, mixed: bool) -> None:
    """The others have only values, as all metadata records: a request's topics, and then the partitions of all of them."""
    columns, others = changes(70, mixed), [bytes([place % 256]) * 3 for place in range(before)]
    values = others + twin.values(columns.message, 2, twin.to_bodies(columns))

    content = encode_values(others) + bytes(encode_records(columns, before))
    assert content == encode_values(values)
    written = encode_batch_of(content, len(values), base_offset=OFFSET, timestamp_ms=TIME_MS)
    assert written == encode_batch([Record(OFFSET + place, TIME_MS, None, value) for place, value in enumerate(values)])


def test_an_empty_list_is_not_a_missing_one() -> None:
    """An ISR may be empty with eligible leader replicas; without the field it stays."""
    ids = np.full((2, 1), -1, np.int32)
    columns = RecordColumns(
        "PartitionChangeRecord",
        2,
        np.array([TOPIC_ID.bytes] * 2, "V16"),
        {"partition_id": np.zeros(2, np.int32)},
        {"isr": Lists.padded(ids, np.array([True, False]))},
    )

    assert [body["isr"] for body in twin.to_bodies(columns)] == [[], None]
    batch = encode_columns(columns, base_offset=0, timestamp_ms=0)
    assert batch == twin.encode(columns.message, 2, twin.to_bodies(columns), 0, 0, -1)


def test_a_field_that_the_version_lacks_is_refused() -> None:
    """It would be lost."""
    columns = changes(1)
    old = RecordColumns(columns.message, 0, columns.topic_ids, columns.numbers, {"directories": columns.lists["isr"]})

    with pytest.raises(CodecError, match="PartitionChangeRecord v0: has no field directories"):
        encode_columns(old, base_offset=0, timestamp_ms=0)


def test_a_missing_list_that_must_not_be_null_is_refused() -> None:
    """Only tagged lists may be missing."""
    replicas = Lists.padded(np.array([[1]], np.int32), np.array([False]))
    columns = RecordColumns(
        "PartitionRecord",
        2,
        np.array([TOPIC_ID.bytes], "V16"),
        {"partition_id": np.zeros(1, np.int32)},
        {"replicas": replicas},
    )

    with pytest.raises(CodecError, match="PartitionRecord v2: replicas: must not be null"):
        encode_columns(columns, base_offset=0, timestamp_ms=0)


def test_rows_can_be_taken_from_columns() -> None:
    """A change of many partitions is several batches."""
    columns = changes(10, mixed=True)

    assert twin.to_bodies(columns[3:8]) == twin.to_bodies(columns)[3:8]


def test_several_batches_are_read_together_and_other_records_in_between_are_returned() -> None:
    """A snapshot: control records, topics, and partitions of two versions."""
    old = {"partition_id": 0, "topic_id": TOPIC_ID, "replicas": [1], "isr": [1], "leader": 1}
    values = [value for version in (1, 2) for value in frames("PartitionRecord", version, [old] * 2)]
    topic = frames("TopicRecord", 0, [{"name": "topic", "topic_id": TOPIC_ID}])
    snapshot = snapshot_batches(
        [*topic, *values, *topic], epoch=1, timestamp_ms=5, last_contained_timestamp_ms=5, max_records=4
    )

    decoded = decode_columns(b"".join(snapshot))
    assert [(columns.version, offsets.tolist()) for offsets, columns in decoded.columns] == [(1, [2, 3]), (2, [4, 5])]
    assert decoded.others == (Record(1, 5, None, topic[0]), Record(6, 5, None, topic[0]))


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.NONE])
@pytest.mark.parametrize("most", [1, 4, 7, 100])
def test_a_large_batch_is_read_in_parts(most: int, compression: Compression) -> None:
    """RecordsSnapshotWriter: Kafka's snapshots have batches of up to 8 MiB."""
    topic = frames("TopicRecord", 0, [{"name": "topic", "topic_id": TOPIC_ID}])
    values = frames("PartitionRecord", 2, [{"partition_id": number, "topic_id": TOPIC_ID} for number in range(5)])
    found = [Record(OFFSET + place, 5, None, value) for place, value in enumerate([*values, *topic, *values])]
    parts = list(decode_parts(encode_batch(found, compression=compression), most))

    assert [part_offsets(part) for part in parts] == [
        list(range(OFFSET + begin, OFFSET + min(begin + most, 11))) for begin in range(0, 11, most)
    ]
    by_columns = [(columns, offsets) for part in parts for offsets, columns in part.columns]
    assert sum(len(columns) for columns, _ in by_columns) == (10 if compression == Compression.NONE else 0)
    read = {
        int(o): body["partition_id"]
        for columns, offsets in by_columns
        for o, body in zip(offsets, twin.to_bodies(columns), strict=True)
    }
    assert read == ({OFFSET + place: place % 6 for place in range(11) if place != 5} if by_columns else {})


def part_offsets(part: DecodedRecords) -> list[int]:
    """Return the offsets of all records."""
    return sorted(
        [*(int(offset) for offsets, _ in part.columns for offset in offsets), *(other.offset for other in part.others)]
    )


@pytest.mark.parametrize("most", [1, 2, 9])
@pytest.mark.parametrize("noise", [b"\x00", b"\x7f\x01", b"\xff" * 9])
def test_a_batch_with_bytes_after_its_records_is_refused_in_parts_too(most: int, noise: bytes) -> None:
    """CORRUPT_MESSAGE; at the latest before its last part."""
    batch = framed(encode_columns(changes(3), base_offset=9, timestamp_ms=0)[HEADER_BYTES:] + noise, 3)

    with pytest.raises(CorruptBatch):
        list(decode_parts(batch, most))


def frames(message: str, version: int, found: list[dict[str, Any]]) -> list[bytes]:
    """Return the values of records."""
    (batch,) = decode_batches(twin.encode(message, version, found, 0, 0, 0))
    return [record.value or b"" for record in batch.records]


def test_unusual_records_are_left_to_the_codec() -> None:
    """An unknown tagged field, a null in a tagged field, a record with a key, with headers, and with another timestamp."""
    (usual,) = frames("PartitionRecord", 2, [{"partition_id": 0, "topic_id": TOPIC_ID}])
    body = {"partition_id": 0, "topic_id": TOPIC_ID}
    tagged = usual[:3] + unknown_tags.encode("PartitionRecord", 2, body, ((9, b"new"),))
    found = [
        Record(0, 5, None, usual),
        Record(1, 5, None, tagged),
        Record(2, 5, b"key", usual),
        Record(3, 5, None, usual, (("name", b""),)),
        Record(4, 6, None, usual),
        Record(5, 5, None, None),
        Record(6, 5, None, usual[:-1] + b"\x01\x01\x01\x00"),
        Record(7, 5, None, usual),
    ]
    decoded = decode_columns(encode_batch(found))

    assert [offsets.tolist() for offsets, _ in decoded.columns] == [[0, 7]]
    assert decoded.others == tuple(found[1:7])


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.NONE])
def test_compressed_batches_and_batches_with_gaps_are_left_to_the_codec(compression: Compression) -> None:
    """Kafka writes neither to the metadata log."""
    (usual,) = frames("PartitionRecord", 2, [{"partition_id": 0, "topic_id": TOPIC_ID}])
    found = [Record(0, 5, None, usual), Record(3, 5, None, usual)]
    decoded = decode_columns(encode_batch(found, compression=compression))

    assert decoded.columns == ()
    assert decoded.others == tuple(found)


def test_a_wrong_checksum_is_found() -> None:
    """CORRUPT_MESSAGE."""
    batch = bytearray(encode_columns(changes(3), base_offset=9, timestamp_ms=0))
    batch[-4] ^= 1

    with pytest.raises(CorruptBatch, match="The checksum of the batch at offset 9 is wrong"):
        decode_columns(bytes(batch))


@examples(100)
@given(st.binary(max_size=80), st.integers(0, 4))
def test_batches_with_right_checksums_and_malformed_records_are_read_as_by_the_codec(noise: bytes, count: int) -> None:
    """Both read them, or both refuse them."""
    (value,) = frames("PartitionChangeRecord", 2, [{"partition_id": 0, "topic_id": TOPIC_ID, "leader": 1}])
    usual = encode_batch([Record(0, 5, None, value)])
    content = usual[HEADER_BYTES:] * count + noise
    batch = framed(content, count + 1)
    try:
        (whole,) = decode_batches(batch)
    except CorruptBatch:
        with pytest.raises(CorruptBatch):
            decode_columns(batch)
        return
    decoded = decode_columns(batch)
    left = {record.offset for record in decoded.others}
    assert decoded.others == tuple(record for record in whole.records if record.offset in left)
    assert len(left) + sum(len(columns) for _, columns in decoded.columns) == len(whole.records)


def framed(content: bytes, count: int) -> bytes:
    """Return a batch of these bytes, which need not be records."""
    return encode_batch_of(content, count, base_offset=0, timestamp_ms=5)
