"""Produce with acks=0 is the only request without a response."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_node.acks import has_response
from kafka_wire import ApiKey, codec
from kafka_wire.codec import CodecError

_, _HIGHEST = codec.versions("ProduceRequest")
_LOWEST, _ = codec.versions("ProduceRequest")


@given(st.integers(_LOWEST, _HIGHEST), st.sampled_from([-1, 0, 1]), st.one_of(st.none(), st.text(max_size=300)))
def test_acks_is_read_in_every_version(version: int, acks: int, transactional_id: str | None) -> None:
    """After a transactional id from version 3, with a varint length from version 9."""
    body = {"acks": acks, "transactional_id": transactional_id if version >= 3 else None}
    frame = codec.encode_request(ApiKey.PRODUCE, version, 1, "client", body)

    assert has_response(codec.peek_header(frame), frame) == (acks != 0)


@pytest.mark.parametrize("version", [_LOWEST, 3, 9, _HIGHEST])
def test_request_that_ends_before_acks_is_malformed(version: int) -> None:
    """Nothing is read past the end, whatever length it claims."""
    frame = codec.encode_request(ApiKey.PRODUCE, version, 1, None, {"acks": 0})
    header = codec.peek_header(frame)
    for end in range(header.body_offset, header.body_offset + 2):
        with pytest.raises(CodecError):
            has_response(header, frame[:end])


@given(st.binary(max_size=30), st.integers(0, 20))
def test_any_bytes_give_a_value_or_a_codec_error(payload: bytes, version: int) -> None:
    """Random bodies raise no other exception."""
    header = codec.RequestHeader(ApiKey.PRODUCE, version, 1, None, 0)
    try:
        answer = has_response(header, payload)
    except CodecError:
        return
    assert answer in (True, False)


def test_every_other_request_has_a_response() -> None:
    """Even with a body that could be read as acks=0."""
    header = codec.RequestHeader(ApiKey.FETCH, 0, 1, None, 0)

    assert has_response(header, bytes(20))
