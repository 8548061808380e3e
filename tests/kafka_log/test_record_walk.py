"""Walk over the records of a batch: its result for lengths of every number of bytes, compared with the decoded records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.format.record_walk import BadRecordError, WalkedRecords, walk_records
from kafka_wire.records import HEADER_BYTES, Record, decode_batches, encode_batch

TIME_MS = 1_700_000_000_000
SIZES = st.sampled_from([0, 1, 30, 31, 55, 63, 64, 65, 8_100, 8_191, 8_192])
"""Varints have one byte up to 63, two up to 8,191, and three from 8,192 on."""
CONTENTS = st.none() | SIZES.map(bytes)
HEADERS = st.lists(st.tuples(st.sampled_from(["", "trace", "k" * 64]), st.none() | SIZES.map(bytes)), max_size=2)
RECORDS = st.lists(st.tuples(st.sampled_from([0, 63, 64, 9_000]), CONTENTS, CONTENTS, HEADERS.map(tuple)), min_size=1)


@given(RECORDS)
def test_a_walk_returns_what_the_decoder_reads(fields: list[tuple[int, bytes | None, bytes | None, tuple]]) -> None:  # type: ignore[type-arg]
    """The walk reads short lengths in place; the decoder is its plain twin (DefaultRecord.readFrom)."""
    batch = encode_batch([Record(offset, TIME_MS + delta, *rest) for offset, (delta, *rest) in enumerate(fields)])
    ((header, records),) = ((one.header, one.records) for one in decode_batches(batch))

    walked = walk_records(batch, header.record_count, header.base_timestamp_ms, HEADER_BYTES)

    assert walked == WalkedRecords(
        [record.timestamp_ms for record in records],
        [index for index, record in enumerate(records) if record.key is None],
        is_consecutive=True,
    )


@given(RECORDS, st.data())
def test_records_that_are_cut_are_refused(
    fields: list[tuple[int, bytes | None, bytes | None, tuple]],  # type: ignore[type-arg]
    data: st.DataObject,
) -> None:
    """InvalidRecordException of DefaultRecord.readFrom: no record reaches behind the end of its batch."""
    batch = encode_batch([Record(offset, TIME_MS + delta, *rest) for offset, (delta, *rest) in enumerate(fields)])
    end = data.draw(st.integers(HEADER_BYTES, len(batch) - 1))

    with pytest.raises(BadRecordError):
        walk_records(batch[:end], len(fields), TIME_MS, HEADER_BYTES)
