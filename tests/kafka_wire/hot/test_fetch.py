"""Encoder of Fetch responses: the bytes of the codec, without a copy of records."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import ApiKey, codec
from kafka_wire.codec import CodecError
from kafka_wire.file_slice import FileResponse, FileSlice, SharedFile
from kafka_wire.hot import fetch
from tests.effort import examples
from tests.kafka_wire.bodies import bodies

VERSIONS = range(4, 19)
RECORDS = bytes(range(256)) * 400


def body_with(*records: object) -> codec.Body:
    """Return a response with one partition for each value."""
    partitions = [{"partition_index": index, "records": records_bytes} for index, records_bytes in enumerate(records)]
    return {"responses": [{"partitions": partitions}]}


@examples(60)
@given(st.sampled_from(VERSIONS), st.data())
def test_bytes_equal_those_of_the_codec(version: int, data: st.DataObject) -> None:
    """For bodies of all kinds; short responses are bytes."""
    body = data.draw(bodies("FetchResponse", version))

    assert fetch.encode_response(version, 7, body) == codec.encode_response(ApiKey.FETCH, version, 7, body)


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_large_records_are_sent_without_a_copy(version: int) -> None:
    """Each is a piece of the response, and is the object that the caller passed."""
    view = memoryview(RECORDS)
    response = fetch.encode_response(version, 7, body_with(RECORDS, b"small", view, None))

    assert isinstance(response, FileResponse)
    assert [piece for piece in response.pieces if piece is RECORDS or piece is view] == [RECORDS, view]
    joined = b"".join(response.pieces)
    assert joined == codec.encode_response(ApiKey.FETCH, version, 7, body_with(RECORDS, b"small", RECORDS, None))


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_slices_of_files_are_announced_with_their_length(version: int, tmp_path: Path) -> None:
    """The file is read when the response is sent, even for a short slice."""
    path = tmp_path / "segment"
    path.write_bytes(RECORDS)
    part = FileSlice(SharedFile(os.open(path, os.O_RDONLY), "segment"), 10, 20, asyncio.to_thread)
    response = fetch.encode_response(version, 7, body_with(part))
    expected = codec.encode_response(ApiKey.FETCH, version, 7, body_with(RECORDS[10:30]))

    assert isinstance(response, FileResponse)
    assert (len(response), response.own_bytes) == (len(expected), len(expected) - 20)
    assert b"".join(RECORDS[10:30] if piece is part else piece for piece in response.pieces) == expected


@pytest.mark.parametrize("records", ["text", 5], ids=["text", "number"])
def test_invalid_records_raise_the_error_of_the_codec(records: object) -> None:
    """A value that is no bytes is a defect of the caller, and is found before anything is sent."""
    with pytest.raises(CodecError):
        fetch.encode_response(12, 7, body_with(records))
