"""Codec of messages and whole frames.

A body is a plain dict with snake_case keys (names.py); arrays are lists, structs dicts, bytes and records bytes, uuids
`uuid.UUID`, nulls None. Encoding uses the schema's default for a missing key. Decoding returns every field of the schema:
fields that the version lacks, or that were not sent, have their defaults. The content of records is in records.py.
"""

import struct
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from kafka_wire import compiler, schema
from kafka_wire.api import ApiKey, Body
from kafka_wire.failures import CodecError
from kafka_wire.varints import read_uvarint

__all__ = [
    "Body",
    "CodecError",
    "RequestHeader",
    "decode",
    "decode_request",
    "decode_response",
    "encode",
    "encode_request",
    "encode_response",
    "flexible_from",
    "peek_header",
    "prepare",
    "response_header",
    "versions",
]

_REQUEST_PREFIX = struct.Struct(">hhi")
_CORRELATION_ID = struct.Struct(">i")
_STRING_LENGTH = struct.Struct(">h")

CLIENT_IDS_CACHED = 1024
"""A connection always sends the same client id; a relay forwards one for each of its clients."""

MAX_OPENED_REQUEST_BYTES = 16 * 1024 * 1024
"""Largest request that is decoded. A decoded body takes up to 120 times the memory of its bytes (an array of empty assignments,
CreatePartitions 2). The largest legitimate request, a reassignment of 200,000 partitions, has 6 MB."""

MAX_HEADER_TAGS = 64
"""Headers have no tagged field today, so a header that announces more than this is malformed."""


class RequestHeader(NamedTuple):
    """Header of a request; `body_offset` is the position of the body in the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int


def encode(name: str, version: int, body: Mapping[str, Any]) -> bytes:
    """Encode a message or a metadata record, without a header.

    Raises CodecError for an unknown message, version or key, for a value that does not fit its type, and for a non-default
    value in a field that this version lacks, unless the field is ignorable (Java: UnsupportedVersionException).
    """
    return compiler.encoder(name, version)(body)


def decode(name: str, version: int, data: bytes | memoryview) -> Body:
    """Decode a message; raises CodecError for anything but exactly one well-formed message of that version."""
    body, end = compiler.decoder(name, version)(bytes(data), 0)
    _expect_end(name, version, len(data), end)
    return body


def versions(name: str) -> tuple[int, int]:
    """Return the lowest and highest known version of a message; raises CodecError when the message is unknown."""
    lowest, highest = schema.known_versions(name)
    return lowest, highest


def prepare(key: ApiKey, version: int) -> None:
    """Compile the codecs of a request and its response. The first use would take a millisecond for each: too long where time counts."""
    request, response = key.message + "Request", key.message + "Response"
    compiler.bounded_decoder(request, version)
    for name in (request, response):
        compiler.encoder(name, version)
        compiler.decoder(name, version)


def flexible_from(name: str) -> int | None:
    """Return the first flexible version (KIP-482) of a message, or None; raises CodecError when the message is unknown."""
    flexible = schema.definitions(name)[0].flexible
    return flexible.lowest if flexible.overlaps(schema.known_versions(name)) else None


def encode_request(
    key: ApiKey, version: int, correlation_id: int, client_id: str | None, body: Mapping[str, Any] | bytes
) -> bytes:
    """Encode a request with its header, without the size in front. A body of type bytes is already encoded."""
    message = body if isinstance(body, bytes) else compiler.encoder(key.message + "Request", version)(body)
    prefix = _REQUEST_PREFIX.pack(key, version, correlation_id)
    header_version = _request_header_version(key, version)
    if header_version == 0:
        return prefix + message
    return prefix + _client_id_bytes(client_id) + (b"\0" if header_version == 2 else b"") + message


def encode_response(key: ApiKey, version: int, correlation_id: int, body: Mapping[str, Any]) -> bytes:
    """Encode a response with its header, without the size in front."""
    return response_header(key, version, correlation_id) + compiler.encoder(key.message + "Response", version)(body)


def response_header(key: ApiKey, version: int, correlation_id: int) -> bytes:
    """Encode the header of a response."""
    return _CORRELATION_ID.pack(correlation_id) + (b"\0" if _response_has_tags(key, version) else b"")


def is_flexible_response(key: ApiKey, version: int) -> bool:
    """Return whether a response version is flexible (KIP-482)."""
    first = flexible_from(key.message + "Response")
    return first is not None and version >= first


def peek_header(frame: bytes | memoryview) -> RequestHeader:
    """Decode a request's header without its body.

    The header of an unknown API key may or may not end in tagged fields: `body_offset` is then the end of the client id, and
    an invalid client id is None. Raises CodecError for a frame that is too short.
    """
    if len(frame) < _REQUEST_PREFIX.size:
        raise CodecError(f"{len(frame)} bytes are too short for a request header", message="RequestHeader")
    key, version, correlation_id = _REQUEST_PREFIX.unpack_from(frame)
    header_version = _request_header_version(key, version)
    if header_version == 0:
        return RequestHeader(key, version, correlation_id, None, _REQUEST_PREFIX.size)
    try:
        client_id, offset = _read_client_id(frame, _REQUEST_PREFIX.size)
        if header_version == 2:
            offset = _skip_tags(frame, offset)
    except (struct.error, IndexError, UnicodeDecodeError, CodecError) as error:
        if header_version is None:
            return RequestHeader(key, version, correlation_id, None, _REQUEST_PREFIX.size)
        reason = (
            error.reason if isinstance(error, CodecError) else "the header is truncated or its client id is not UTF-8"
        )
        raise CodecError(reason, message="RequestHeader", version=header_version) from None
    return RequestHeader(key, version, correlation_id, client_id, offset)


def decode_request(frame: bytes | memoryview, max_bytes: int = MAX_OPENED_REQUEST_BYTES) -> tuple[RequestHeader, Body]:
    """Decode a whole request frame (without its size).

    Bytes after the body are ignored, as in Kafka: librdkafka sends three of them after its MetadataRequest 12.
    Raises CodecError, also for an unknown API key or version and for a frame of more than `max_bytes`.
    """
    if len(frame) > max_bytes:
        raise CodecError(f"a request of {len(frame)} bytes exceeds the limit of {max_bytes}", message="RequestHeader")
    frame = bytes(frame)
    header = peek_header(frame)
    try:
        name = ApiKey(header.api_key).message + "Request"
    except ValueError:
        raise CodecError(f"unknown API key {header.api_key}", message="RequestHeader") from None
    body, _ = compiler.decoder(name, header.api_version)(frame, header.body_offset)
    return header, body


def decode_bounded(frame: bytes | memoryview, header: RequestHeader, units: int) -> Body:
    """Decode a request's body within a budget of `units` (source_decoder.element_units); large byte fields are views of the frame.

    All byte fields are views if the frame is one. Bytes after the body are ignored, as in decode_request. Raises TooManyElements before
    the budget is exceeded, and CodecError.
    """
    try:
        name = ApiKey(header.api_key).message + "Request"
    except ValueError:
        raise CodecError(f"unknown API key {header.api_key}", message="RequestHeader") from None
    if isinstance(frame, memoryview):
        return compiler.bounded_decoder(name, header.api_version, views=True)(frame, header.body_offset, units)[0]
    return compiler.bounded_decoder(name, header.api_version)(frame, header.body_offset, units)[0]


def decode_response(key: ApiKey, version: int, frame: bytes | memoryview) -> tuple[int, Body]:
    """Decode a whole response frame (without its size); returns its correlation id and its body. Raises CodecError."""
    frame, name = bytes(frame), key.message + "Response"
    correlation_id, offset = _read_response_header(key, version, frame)
    body, end = compiler.decoder(name, version)(frame, offset)
    _expect_end(name, version, len(frame), end)
    return correlation_id, body


def decode_viewed_response(key: ApiKey, version: int, frame: memoryview, units: int) -> Body:
    """Decode the body of a response within a budget of `units`, as decode_bounded; byte fields are views of the frame."""
    name = key.message + "Response"
    _, offset = _read_response_header(key, version, frame)
    body, end = compiler.bounded_decoder(name, version, views=True)(frame, offset, units)
    _expect_end(name, version, len(frame), end)
    return body


def _read_response_header(key: ApiKey, version: int, frame: bytes | memoryview) -> tuple[int, int]:
    """Return the correlation id, and the position of the body."""
    offset = _CORRELATION_ID.size
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        if _response_has_tags(key, version):
            offset = _skip_tags(frame, offset)
    except (struct.error, IndexError):
        raise CodecError(f"{len(frame)} bytes are too short for a response header", message="ResponseHeader") from None
    return correlation_id, offset


def encode_response_pieces(key: ApiKey, version: int, correlation_id: int, body: Mapping[str, Any]) -> list[Any]:
    """Encode a response with its header to pieces, which a caller joins or writes. Values of byte fields are pieces unchanged."""
    pieces = compiler.pieces_encoder(key.message + "Response", version)(body)
    pieces.insert(0, response_header(key, version, correlation_id))
    return pieces


def _expect_end(name: str, version: int, length: int, end: int) -> None:
    if end != length:
        raise CodecError(f"{length - end} extra bytes after the message", message=name, version=version)


@cache
def _flexible_from_key(key: int) -> int | None:
    """Return the first flexible version of a request, LATEST + 1 if it has none, None for an unknown API key."""
    try:
        first = flexible_from(ApiKey(key).message + "Request")
    except ValueError:
        return None
    return schema.LATEST + 1 if first is None else first


def _request_header_version(key: int, version: int) -> int | None:
    """Return 0, 1 or 2, or None for an unknown API key (ApiKeys.requestHeaderVersion in Java)."""
    if key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0
    first = _flexible_from_key(key)
    return None if first is None else 1 + (version >= first)


def _response_has_tags(key: ApiKey, version: int) -> bool:
    """Return whether the response header is version 1. That of ApiVersions never is: the client may not support it (KIP-511)."""
    first = _flexible_from_key(key)
    return key != ApiKey.API_VERSIONS and first is not None and version >= first


@lru_cache(CLIENT_IDS_CACHED)
def _client_id_bytes(client_id: str | None) -> bytes:
    """Encode a client id in the classic form, which flexible headers use too."""
    if client_id is None:
        return _STRING_LENGTH.pack(-1)
    try:
        raw = client_id.encode()
        return _STRING_LENGTH.pack(len(raw)) + raw
    except (struct.error, UnicodeEncodeError):
        raise CodecError("the client id is too long or not encodable as UTF-8", message="RequestHeader") from None


def _read_client_id(frame: bytes | memoryview, offset: int) -> tuple[str | None, int]:
    (length,) = _STRING_LENGTH.unpack_from(frame, offset)
    offset += _STRING_LENGTH.size
    if length == -1:
        return None, offset
    if length < 0 or offset + length > len(frame):
        raise CodecError(f"the client id needs {length} bytes, {len(frame) - offset} are left")
    return bytes(frame[offset : offset + length]).decode(), offset + length


def _skip_tags(frame: bytes | memoryview, offset: int) -> int:
    """Return the position after a header's tagged fields. Kafka defines none of them."""
    count, offset = read_uvarint(frame, offset)
    if count > MAX_HEADER_TAGS:
        raise CodecError(f"{count} tagged fields in a header", message="RequestHeader")
    for _ in range(count):
        _, offset = read_uvarint(frame, offset)
        size, offset = read_uvarint(frame, offset)
        offset += size
        if offset > len(frame):
            raise CodecError("a tagged field of the header exceeds the frame")
    return offset
