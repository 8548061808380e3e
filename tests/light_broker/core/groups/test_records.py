"""Records of `__consumer_offsets`."""

import struct
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_broker.core.groups.records import (
    CommittedOffset,
    GroupRecord,
    MalformedRecordError,
    OffsetRecord,
    StoredGroup,
    StoredMember,
    UnknownRecord,
    decode_record,
    encode_record,
)
from tests.effort import examples

NAMES = st.text(max_size=12)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

MEMBERS = st.builds(
    StoredMember,
    NAMES,
    st.none() | NAMES,
    NAMES,
    NAMES,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.binary(max_size=9),
    st.binary(max_size=9),
)
GROUPS = st.builds(
    StoredGroup, NAMES, INT32, st.none() | NAMES, st.none() | NAMES, INT64, st.lists(MEMBERS, max_size=3).map(tuple)
)
OFFSETS = st.builds(CommittedOffset, INT64, INT32, NAMES, INT64, st.just(-1), st.uuids())
RECORDS = st.builds(GroupRecord, NAMES, st.none() | GROUPS) | st.builds(
    OffsetRecord, NAMES, NAMES, INT32, st.none() | OFFSETS
)


@examples(40)
@given(RECORDS)
def test_record_is_read_as_it_was_written(record: GroupRecord | OffsetRecord) -> None:
    """Of offsets and groups, and the deletion of either."""
    assert decode_record(*encode_record(record)) == record


def test_versions_are_those_that_kafka_writes() -> None:
    """GroupCoordinatorRecordHelpers of Kafka 4.3.1: group 3, offset 4, or 1 if it has a time of expiry."""
    group = encode_record(GroupRecord("g", StoredGroup("consumer", 1, None, None, 5)))
    offset = encode_record(OffsetRecord("g", "t", 0, CommittedOffset(1)))
    expiring = encode_record(OffsetRecord("g", "t", 0, CommittedOffset(1, expire_timestamp_ms=7)))

    versions = [struct.unpack(">h", data[:2])[0] for pair in (group, offset, expiring) for data in pair if data]

    assert versions == [2, 3, 1, 4, 1, 1]


def test_offset_with_a_time_of_expiry_has_no_leader_epoch_and_topic_id() -> None:
    """Version 1 of the value, for OffsetCommit 2 to 4."""
    value = CommittedOffset(1, 3, "m", 9, 7, UUID(int=5))

    read = decode_record(*encode_record(OffsetRecord("g", "t", 0, value)))

    assert read == OffsetRecord("g", "t", 0, CommittedOffset(1, -1, "m", 9, 7))


def test_records_of_other_types_of_groups_are_named() -> None:
    """A partition that Kafka wrote may contain groups of KIP-848; they are skipped, and counted by their type."""
    assert decode_record(struct.pack(">h", 3) + b"anything", b"\0\0anything") == UnknownRecord(3)


@pytest.mark.parametrize("key", [None, b"", b"\0", b"\0\1", struct.pack(">hh", 2, 9) + b"g"])
def test_record_that_cannot_be_read_is_an_error(key: bytes | None) -> None:
    """Loading stops there: to skip it could lose a committed offset."""
    with pytest.raises(MalformedRecordError):
        decode_record(key, b"")
