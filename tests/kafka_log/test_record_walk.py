"""Walk over the records of a batch: its result for lengths of every number of bytes, compared with the decoded records."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.format import record_walk
from kafka_log.format.record_walk import BadRecordError, WalkedRecords, walk_records
from kafka_wire.records import HEADER_BYTES, Record, decode_batches, encode_batch
from kafka_wire.varints import read_varint
from tests.effort import examples

TIME_MS = 1_700_000_000_000
SIZES = st.sampled_from([0, 1, 30, 31, 55, 63, 64, 65, 8_100, 8_191, 8_192])
"""Varints have one byte up to 63, two up to 8,191, and three from 8,192 on."""
CONTENTS = st.none() | SIZES.map(bytes)
HEADERS = st.lists(st.tuples(st.sampled_from(["", "trace", "k" * 64]), st.none() | SIZES.map(bytes)), max_size=2)
RECORDS = st.lists(st.tuples(st.sampled_from([0, 63, 64, 9_000]), CONTENTS, CONTENTS, HEADERS.map(tuple)), min_size=1)


def walk_of(records: Sequence[Record]) -> WalkedRecords:
    """Return the result of a walk over records."""
    timestamps_ms = [record.timestamp_ms for record in records]
    without_key = [index for index, record in enumerate(records) if record.key is None]
    is_consecutive = [record.offset for record in records] == list(range(len(records)))
    return WalkedRecords(timestamps_ms, min(timestamps_ms), max(timestamps_ms), without_key, is_consecutive)


@given(RECORDS)
def test_a_walk_returns_what_the_decoder_reads(fields: list[tuple[int, bytes | None, bytes | None, tuple]]) -> None:
    """The walk reads short lengths in place; the decoder is its plain twin (DefaultRecord.readFrom)."""
    batch = encode_batch([Record(offset, TIME_MS + delta, *rest) for offset, (delta, *rest) in enumerate(fields)])
    (decoded,) = decode_batches(batch)

    assert walk_records(batch, len(decoded.records), decoded.header.base_timestamp_ms, HEADER_BYTES) == walk_of(
        decoded.records
    )


@given(RECORDS, st.data())
def test_records_that_are_cut_are_refused(
    fields: list[tuple[int, bytes | None, bytes | None, tuple]],
    data: st.DataObject,
) -> None:
    """InvalidRecordException of DefaultRecord.readFrom: no record reaches behind the end of its batch."""
    batch = encode_batch([Record(offset, TIME_MS + delta, *rest) for offset, (delta, *rest) in enumerate(fields)])
    end = data.draw(st.integers(HEADER_BYTES, len(batch) - 1))

    with pytest.raises(BadRecordError):
        walk_records(batch[:end], len(fields), TIME_MS, HEADER_BYTES)


@st.composite
def similar_records(draw: st.DrawFn) -> list[Record]:
    """Draw a batch of which most records have one form, so that they are checked in columns, and a few another one."""
    contents = CONTENTS | st.just(bytes(100))
    usual = draw(st.tuples(st.sampled_from([-65, 0, 63, 64, 8_191, 8_192, 2**40]), contents, contents))
    others = draw(
        st.dictionaries(st.integers(0, 199), st.tuples(st.sampled_from([0, 1, 64]), contents, contents), max_size=4)
    )
    headers = draw(st.sampled_from([(), (("trace", b"x"),)]))
    count = draw(st.integers(1, 200))
    return [
        Record(offset, TIME_MS + delta, key, value, headers)
        for offset, (delta, key, value) in ((offset, others.get(offset, usual)) for offset in range(count))
    ]


@given(similar_records())
def test_records_of_one_size_are_read_as_all_others(records: list[Record]) -> None:
    """A run of records of one size is checked in columns; the decoder is its plain twin (DefaultRecord.readFrom)."""
    batch = encode_batch(records)
    (decoded,) = decode_batches(batch)

    assert walk_records(batch, len(decoded.records), decoded.header.base_timestamp_ms, HEADER_BYTES) == walk_of(
        decoded.records
    )


CONTINUED = b"\xff" * 8
"""Bytes that are no length: each announces another one."""


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(
            [Record(index, TIME_MS + 16_384 * index, CONTINUED, b"") for index in range(9)],
            id="the third byte of each timestamp is the offset",
        ),
        pytest.param(
            [Record(offset, TIME_MS, None, b"") for offset in (0, *range(2**20, 2**20 + 9))],
            id="offsets of more bytes than their numbers in the batch have",
        ),
        pytest.param(
            [Record(index, TIME_MS, CONTINUED, bytes(99 if index < 64 else 98)) for index in range(99)],
            id="an offset of two bytes follows one of one byte, and the records have one size",
        ),
        pytest.param(
            [Record(index, TIME_MS, None, b"") for index in range(9_000)], id="more records than are checked in columns"
        ),
    ],
)
def test_a_record_that_only_resembles_those_before_is_read_by_its_own_lengths(records: list[Record]) -> None:
    """The check in columns examines few forms of records, and refuses none of the others (DefaultRecord.readFrom)."""
    batch = encode_batch(records)

    assert walk_records(batch, len(records), TIME_MS, HEADER_BYTES) == walk_of(records)


def walked_or_reason(records: bytes, count: int) -> WalkedRecords | str:
    """Return the result of a walk, or why the records are refused."""
    try:
        return walk_records(records, count, TIME_MS, HEADER_BYTES)
    except BadRecordError as error:
        return str(error)


def record_positions(batch: bytes) -> list[int]:
    """Return where the records of an uncompressed batch begin."""
    positions, position = [], HEADER_BYTES
    while position < len(batch):
        positions.append(position)
        size, body = read_varint(batch, position)
        position = body + size
    return positions


@given(similar_records(), st.data())
@examples(500)
def test_damage_has_one_effect_in_columns_and_one_at_a_time(records: list[Record], data: st.DataObject) -> None:
    """Whatever a producer sends, the check in columns finds what the check of single records finds, and refuses it for the same reason."""
    batch = encode_batch(records)
    changed = bytearray(batch)
    for _ in range(data.draw(st.integers(0, 2))):
        position = data.draw(st.sampled_from(record_positions(batch))) + data.draw(st.integers(-1, 8))
        changed[min(position, len(batch) - 1)] = data.draw(st.integers(0, 255))
    cut_bytes = data.draw(st.sampled_from([0, 0, 0, 1, 20]))
    count = max(len(records) + data.draw(st.sampled_from([0, 0, 0, -1, 1])), 0)
    damaged = bytes(changed[: max(len(batch) - cut_bytes, HEADER_BYTES)])
    in_columns = walked_or_reason(damaged, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_walk, "MAX_SHORT_RUNS", 0)
        one_at_a_time = walked_or_reason(damaged, count)

    assert in_columns == one_at_a_time
