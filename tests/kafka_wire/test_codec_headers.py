"""Header versions of requests and responses, and headers of unknown requests."""

import pytest

from kafka_wire import ApiKey, codec
from kafka_wire.codec import CodecError, RequestHeader
from tests.cases import case
from tests.kafka_wire.bodies import UNLIMITED, versions_of


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.message)
def test_headers_match_the_schema(key: ApiKey) -> None:
    """Of every version's request and response."""
    for version in versions_of(key.message + "Request"):
        with case(key.message, version):
            check_request_header(key, version)
            check_response_header(key, version)


def check_request_header(key: ApiKey, version: int) -> None:
    """The codec's header has the bytes that the schema of the header defines (KIP-482)."""
    flexible = codec.flexible_from(key.message + "Request")
    header_version = 2 if flexible is not None and version >= flexible else 1
    if (key, version) == (ApiKey.CONTROLLED_SHUTDOWN, 0):
        header_version = 0
    fields = {"request_api_key": int(key), "request_api_version": version, "correlation_id": 5, "client_id": "me"}
    if header_version == 0:
        del fields["client_id"]
    header = codec.encode("RequestHeader", header_version, fields)
    frame = codec.encode_request(key, version, 5, "me", {})

    assert header == frame[: len(header)]
    assert codec.peek_header(frame) == RequestHeader(
        key, version, 5, None if header_version == 0 else "me", len(header)
    )


def check_response_header(key: ApiKey, version: int) -> None:
    """It has tags if the response is flexible, except for ApiVersions, whose client may not support them (KIP-511)."""
    flexible = codec.flexible_from(key.message + "Response")
    tagged = key is not ApiKey.API_VERSIONS and flexible is not None and version >= flexible
    frame = codec.encode_response(key, version, 5, {})

    assert codec.encode("ResponseHeader", int(tagged), {"correlation_id": 5}) == frame[: 5 if tagged else 4]
    correlation_id, body = codec.decode_response(key, version, frame)
    assert correlation_id == 5
    assert codec.decode_viewed_response(key, version, memoryview(frame), UNLIMITED) == body
    with pytest.raises(CodecError, match="1 extra bytes after the message"):
        codec.decode_viewed_response(key, version, memoryview(frame + b"\0"), UNLIMITED)


def test_a_request_without_client_id() -> None:
    """Null is length -1 in every version of the header."""
    frame = codec.encode_request(ApiKey.METADATA, 12, 5, None, {})

    assert codec.peek_header(frame).client_id is None
    assert frame[8:10].hex() == "ffff"


def test_tags_of_a_header_are_skipped() -> None:
    """Kafka defines none today; a later version may."""
    frame = codec.encode_request(ApiKey.METADATA, 12, 5, "me", {"topics": None})
    tagged = frame[:12] + b"\x02\x07\x03abc\x09\x00" + frame[13:]

    assert codec.decode_request(frame)[1] == codec.decode_request(tagged)[1]


def test_the_header_of_an_unknown_api_key_is_read_partially() -> None:
    """A relay needs the first eight bytes of any request, and forwards the rest."""
    assert codec.peek_header(bytes.fromhex("01f4 0003 00000007 0002 6d65 ff")) == RequestHeader(500, 3, 7, "me", 12)
    assert codec.peek_header(bytes.fromhex("01f4 0003 00000007 7fff")) == RequestHeader(500, 3, 7, None, 8)
    with pytest.raises(CodecError, match="unknown API key 500"):
        codec.decode_request(bytes.fromhex("01f4 0003 00000007 0002 6d65"))


def test_an_unknown_version_of_a_known_request_has_a_readable_header() -> None:
    """ApiVersions of an unknown version has a response of version 0 (KIP-511), so its header must be readable."""
    frame = bytes.fromhex("0012 0063 00000007 0002 6d65 00 02 73 02 31 00")

    assert codec.peek_header(frame) == RequestHeader(18, 99, 7, "me", 13)
    with pytest.raises(CodecError, match="ApiVersionsRequest v99: unknown version: 0 to"):
        codec.decode_request(frame)


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "0003 000c 000000",  # ends in the correlation id
        "0003 000c 00000007",  # no client id
        "0003 000c 00000007 0005 6d65",  # shorter than announced
        "0003 000c 00000007 fffe",  # a length of -2
        "0003 000c 00000007 0001 ff 00",  # not UTF-8
        "0003 000c 00000007 0000",  # no tags
        "0003 000c 00000007 0000 ffffffffff",  # an endless count
        "0003 000c 00000007 0000 ffffff7f",  # more tags than any header has
        "0003 000c 00000007 0000 01 00 05 61",  # a tag that exceeds the frame
    ],
)
def test_a_malformed_header_is_rejected(frame: str) -> None:
    """With CodecError and no other exception."""
    with pytest.raises(CodecError, match="RequestHeader"):
        codec.peek_header(bytes.fromhex(frame))


@pytest.mark.parametrize("frame", ["", "000000", "00000007", "00000007 01 00", "00000007 01 00 05 61"])
def test_a_malformed_response_header_is_rejected(frame: str) -> None:
    """Truncated in the correlation id or in the tags."""
    with pytest.raises(CodecError):
        codec.decode_response(ApiKey.METADATA, 12, bytes.fromhex(frame))


def test_a_too_long_client_id_is_rejected() -> None:
    """Its length is an int16."""
    with pytest.raises(CodecError, match="client id"):
        codec.encode_request(ApiKey.METADATA, 12, 5, "x" * 40_000, {})


def test_a_frame_may_be_a_memoryview() -> None:
    """As a server has it, as a part of a larger buffer."""
    frame = memoryview(codec.encode_request(ApiKey.METADATA, 12, 5, "me", {}))

    assert codec.decode_request(bytes(frame)) == codec.decode_request(frame)
    assert codec.peek_header(bytes(frame)) == codec.peek_header(frame)


def test_bytes_after_a_requests_body_are_ignored() -> None:
    """Kafka ignores them (RequestContext.parseRequest), and librdkafka sends three of them after its MetadataRequest 12."""
    frame = codec.encode_request(ApiKey.METADATA, 12, 1, "rdkafka", {"topics": []})

    assert codec.decode_request(frame) == codec.decode_request(frame + b"\x00\x00\x00")
