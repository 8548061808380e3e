"""Headers: which request and which response has which, and what is read of those that we do not know."""

import pytest

from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import CodecError, RequestHeader
from tests.cases import case
from tests.kafka_wire.bodies import versions_of


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.message)
def test_headers_are_the_schemas(key: ApiKey) -> None:
    """Of every version's request and response."""
    for version in versions_of(key.message + "Request"):
        with case(key.message, version):
            a_request_header_is_the_schemas(key, version)
            a_response_header_has_tags_when_the_response_is_flexible(key, version)


def a_request_header_is_the_schemas(key: ApiKey, version: int) -> None:
    """The header that the facade writes by hand has the bytes that the header's own schema gives (KIP-482)."""
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


def a_response_header_has_tags_when_the_response_is_flexible(key: ApiKey, version: int) -> None:
    """But for ApiVersions, whose asker may be too old for them (KIP-511)."""
    flexible = codec.flexible_from(key.message + "Response")
    tagged = key is not ApiKey.API_VERSIONS and flexible is not None and version >= flexible
    frame = codec.encode_response(key, version, 5, {})

    assert codec.encode("ResponseHeader", int(tagged), {"correlation_id": 5}) == frame[: 5 if tagged else 4]
    assert codec.decode_response(key, version, frame)[0] == 5


def test_a_request_without_client_id() -> None:
    """Null is length -1 in every version of the header."""
    frame = codec.encode_request(ApiKey.METADATA, 12, 5, None, {})

    assert codec.peek_header(frame).client_id is None
    assert frame[8:10].hex() == "ffff"


def test_tags_of_a_header_are_skipped() -> None:
    """Kafka has none today; a peer from tomorrow may."""
    frame = codec.encode_request(ApiKey.METADATA, 12, 5, "me", {"topics": None})
    tagged = frame[:12] + b"\x02\x07\x03abc\x09\x00" + frame[13:]

    assert codec.decode_request(frame)[1] == codec.decode_request(tagged)[1]


def test_an_unknown_api_key_is_read_as_far_as_it_goes() -> None:
    """A relay needs the first eight bytes of any request; the rest it passes on."""
    assert codec.peek_header(bytes.fromhex("01f4 0003 00000007 0002 6d65 ff")) == RequestHeader(500, 3, 7, "me", 12)
    assert codec.peek_header(bytes.fromhex("01f4 0003 00000007 7fff")) == RequestHeader(500, 3, 7, None, 8)
    with pytest.raises(CodecError, match="unknown API key 500"):
        codec.decode_request(bytes.fromhex("01f4 0003 00000007 0002 6d65"))


def test_an_unknown_version_of_a_known_request_has_a_readable_header() -> None:
    """ApiVersions must answer a version that it does not know with version 0 (KIP-511), so it must read its header."""
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
        "0003 000c 00000007 0005 6d65",  # shorter than it says
        "0003 000c 00000007 fffe",  # a length of -2
        "0003 000c 00000007 0001 ff 00",  # not UTF-8
        "0003 000c 00000007 0000",  # no tags
        "0003 000c 00000007 0000 ffffffffff",  # a count without an end
        "0003 000c 00000007 0000 ffffff7f",  # more tags than any header has
        "0003 000c 00000007 0000 01 00 05 61",  # a tag that goes past the end
    ],
)
def test_a_malformed_header_is_refused(frame: str) -> None:
    """Nothing but CodecError, whatever the bytes."""
    with pytest.raises(CodecError, match="RequestHeader"):
        codec.peek_header(bytes.fromhex(frame))


@pytest.mark.parametrize("frame", ["", "000000", "00000007", "00000007 01 00", "00000007 01 00 05 61"])
def test_a_malformed_response_header_is_refused(frame: str) -> None:
    """Cut off in the correlation id or in the tags."""
    with pytest.raises(CodecError):
        codec.decode_response(ApiKey.METADATA, 12, bytes.fromhex(frame))


def test_a_client_id_that_is_too_long_is_refused() -> None:
    """Its length is an int16."""
    with pytest.raises(CodecError, match="client id"):
        codec.encode_request(ApiKey.METADATA, 12, 5, "x" * 40_000, {})


def test_a_frame_may_be_a_memoryview() -> None:
    """As a server has it, cut out of a larger buffer."""
    frame = memoryview(codec.encode_request(ApiKey.METADATA, 12, 5, "me", {}))

    assert codec.decode_request(bytes(frame)) == codec.decode_request(frame)
    assert codec.peek_header(bytes(frame)) == codec.peek_header(frame)


def test_bytes_behind_a_requests_body_are_passed_over() -> None:
    """Kafka never looks at them (RequestContext.parseRequest), and librdkafka leaves three behind its MetadataRequest 12."""
    frame = codec.encode_request(ApiKey.METADATA, 12, 1, "rdkafka", {"topics": []})

    assert codec.decode_request(frame) == codec.decode_request(frame + b"\x00\x00\x00")
