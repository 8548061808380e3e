"""Hand-written decoder of Produce requests and encoder of responses: equal to the codec, and without a copy of records."""

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.codec import CodecError
from kafka_wire.hot import produce
from tests.effort import examples
from tests.kafka_wire.bodies import bodies
from tests.kafka_wire.test_hostile_bytes import mutated

VERSIONS = range(3, 14)
MUTATIONS = 20


def frame_of(version: int, body: Body) -> bytes:
    """Encode a request."""
    return codec.encode_request(ApiKey.PRODUCE, version, 7, "producer", body)


def decoded(frame: bytes, *, as_view: bool) -> Body | str:
    """Decode by hand; returns the body, or the text of the error."""
    try:
        return produce.decode_request(memoryview(frame) if as_view else frame, codec.peek_header(frame))
    except CodecError as error:
        return str(error)


def by_codec(frame: bytes) -> Body | str:
    """Decode by the codec; returns the body, or the text of the error."""
    try:
        return codec.decode_request(frame)[1]
    except CodecError as error:
        return str(error)


@examples(100)
@given(st.sampled_from(VERSIONS), st.data())
def test_bodies_equal_those_of_the_codec(version: int, data: st.DataObject) -> None:
    """For frames and for views of them."""
    frame = frame_of(version, data.draw(bodies("ProduceRequest", version)))

    assert decoded(frame, as_view=True) == by_codec(frame)
    assert decoded(frame, as_view=False) == by_codec(frame)


@examples(100)
@given(st.sampled_from(VERSIONS), st.data())
def test_malformed_requests_raise_the_errors_of_the_codec(version: int, data: st.DataObject) -> None:
    """Changed, truncated, extended or with an extreme length: the same body, or the same message of a CodecError."""
    body = data.draw(bodies("ProduceRequest", version))
    frame = frame_of(version, body)
    header = codec.peek_header(frame).body_offset
    chance = random.Random(frame)
    for _ in range(MUTATIONS):
        mutant = frame[:header] + mutated(frame[header:], chance)
        assert decoded(mutant, as_view=True) == by_codec(mutant)


@pytest.mark.parametrize("null", ["00", "8000", "808000"])
def test_a_null_in_several_bytes_is_null(null: str) -> None:
    """A varint may have leading zeros; the codec accepts it too."""
    frame = frame_of(9, {})
    at = codec.peek_header(frame).body_offset
    padded = frame[:at] + bytes.fromhex(null) + frame[at + 1 :]

    assert decoded(padded, as_view=True) == by_codec(frame)


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
def test_records_are_views_of_the_frame(version: int) -> None:
    """No record is copied: a change of the frame's buffer is a change of the records."""
    frame = bytearray(frame_of(version, {"topic_data": [{"partition_data": [{"records": b"abc"}]}]}))
    body = produce.decode_request(memoryview(frame), codec.peek_header(frame))
    frame[frame.index(b"abc")] = ord("x")

    assert body["topic_data"][0]["partition_data"][0]["records"] == b"xbc"


@pytest.mark.parametrize("version", [2, 14])
def test_an_unknown_version_raises_the_error_of_the_codec(version: int) -> None:
    """The versions that Kafka 4 has removed, and later ones."""
    frame = version.to_bytes(4, "big") + frame_of(9, {})[4:]

    assert decoded(frame, as_view=True) == by_codec(frame)


def test_a_request_of_too_many_partitions_is_rejected_before_they_are_decoded() -> None:
    """Two bytes for each topic would become 400 bytes of memory."""
    body = {"topic_data": [{"partition_data": [{"records": b""}] * 60_000}] * 2}

    assert decoded(frame_of(9, body), as_view=True) == ("ProduceRequest v9: has more than 100000 topics and partitions")


ANSWERS = st.fixed_dictionaries(
    {
        "index": st.integers(0, 2**31 - 1),
        "error_code": st.just(ErrorCode.NONE),
        "base_offset": st.integers(-1, 2**63 - 1),
        "log_append_time_ms": st.integers(-1, 2**63 - 1),
        "log_start_offset": st.integers(-1, 2**63 - 1),
    }
)
TOPICS = st.fixed_dictionaries(
    {"name": st.text(max_size=200), "topic_id": st.uuids(), "partition_responses": st.lists(ANSWERS, max_size=2)}
)


@examples(100)
@given(st.sampled_from(VERSIONS), st.integers(0, 2**31 - 1), st.data())
def test_responses_equal_those_of_the_codec(version: int, correlation_id: int, data: st.DataObject) -> None:
    """Without errors, which are encoded by hand, and any others."""
    plain = {"responses": data.draw(st.lists(TOPICS, max_size=2))}
    other = data.draw(bodies("ProduceResponse", version))

    for body in (plain, other):
        encoded = produce.encode_response(version, correlation_id, body)
        assert encoded == codec.encode_response(ApiKey.PRODUCE, version, correlation_id, body)


@pytest.mark.parametrize("version", [3, 9, 13])
@pytest.mark.parametrize("count", [126, 127])
def test_long_responses_equal_those_of_the_codec(version: int, count: int) -> None:
    """From 127 elements on a compact length takes two bytes."""
    answer = {"index": 1, "error_code": 0, "base_offset": 2, "log_append_time_ms": -1, "log_start_offset": 0}
    topic = {"name": "n" * count, "topic_id": UUID(int=5), "partition_responses": [answer] * count}
    body = {"responses": [topic] * count}

    encoded = produce.encode_response(version, 9, body)

    assert encoded == codec.encode_response(ApiKey.PRODUCE, version, 9, body)


@pytest.mark.parametrize("wrong", [{"base_offset": 2**63}, {"index": None}, {"partition_index": 1}])
def test_a_response_that_the_codec_refuses_is_refused(wrong: Body) -> None:
    """A defect of the handler, with the codec's reason."""
    answer = {"index": 0, "error_code": 0, "base_offset": 0, "log_append_time_ms": 0, "log_start_offset": 0}
    body = {"responses": [{"name": "t", "partition_responses": [answer | wrong]}]}

    with pytest.raises(CodecError):
        produce.encode_response(9, 1, body)
