"""Decoder of Produce requests and encoder of their responses, 3 to 13.

Records are views of the frame, and stay valid for as long as they are referenced. Only responses without an error are encoded here: all
others have fields that the codec knows.
"""

import struct
from collections.abc import Sequence

from kafka_wire import codec, compiler, schema
from kafka_wire.api import ApiKey, Body
from kafka_wire.codec import RequestHeader
from kafka_wire.failures import TooManyElements
from kafka_wire.plain_encoder import MAX_STRING_BYTES
from kafka_wire.runtime import Malformed, skip_tags, to_uuid
from kafka_wire.varints import read_uvarint

REQUEST = "ProduceRequest"

CLASSIC = range(3, 9)
FLEXIBLE = range(9, 14)
FIRST_WITH_TOPIC_ID = 13

MAX_ELEMENTS = 100_000
"""Topics and partitions of a request. A decoded one takes 400 bytes, 130 times the smallest encoded one."""

LEAST_ELEMENT_BYTES = 3
"""Size of an empty topic in a flexible version; no other element is smaller."""

_CLASSIC_HEAD = struct.Struct(">hii")
"""acks, timeout and count of topics, behind the transactional id."""
_FLEXIBLE_HEAD = struct.Struct(">hiB")
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_TWO_INTS = struct.Struct(">ii")
_INT_AND_SIZE = struct.Struct(">iB")
_NO_ID = to_uuid(bytes(16))

SUCCESS_FIELDS = 5
"""Keys of a partition's answer without an error: index, error_code, base_offset, log_append_time_ms, log_start_offset."""
FIRST_WITH_START_OFFSET, FIRST_WITH_ERRORS = 5, 8
SHORT_BYTES = 0x7E
"""Longest string, and most elements, whose compact length is one byte."""
_OFFSETS = struct.Struct(">ihqq")
_OFFSETS_AND_START = struct.Struct(">ihqqq")
_CLASSIC_NO_ERRORS = struct.pack(">ih", 0, -1)
"""No record_errors, and no error_message."""
_FLEXIBLE_NO_ERRORS = b"\x01\x00\x00"
"""The same, and no tags."""
_NO_TAGS = b"\x00"
_ONE_BYTE = [bytes([size + 1]) for size in range(SHORT_BYTES + 1)]
"""Compact lengths and counts."""
_NO_THROTTLE = bytes(4)


def decode_request(frame: bytes | memoryview, header: RequestHeader) -> Body:
    """Decode the body of a request. Bytes after it are ignored, as in Kafka. Raises CodecError (TooManyElements is one)."""
    version, data = header.api_version, memoryview(frame)
    try:
        if version in CLASSIC:
            return _decode_classic(data, header.body_offset)
        if version in FLEXIBLE:
            return _decode_flexible(version, data, header.body_offset)
    except TooManyElements:
        reason = f"has more than {MAX_ELEMENTS} topics and partitions"
        raise TooManyElements(reason, message=REQUEST, version=version) from None
    except compiler.DECODE_FAILURES as failure:
        definition = schema.definition(REQUEST, version)
        raise compiler.malformed(definition, version, data, header.body_offset, failure) from failure
    return codec.decode_bounded(frame, header, MAX_ELEMENTS)


def _decode_classic(data: memoryview, position: int) -> Body:
    (size,) = _SHORT.unpack_from(data, position)
    position += 2
    transactional_id = None
    if size != -1:
        transactional_id, position = _text(data, position, size)
    acks, timeout_ms, count = _CLASSIC_HEAD.unpack_from(data, position)
    position += 10
    left = _check_count(count, MAX_ELEMENTS, len(data) - position)
    topics = []
    for _ in range(count):
        (size,) = _SHORT.unpack_from(data, position)
        name, position = _text(data, position + 2, size)
        (partition_count,) = _INT.unpack_from(data, position)
        position += 4
        left = _check_count(partition_count, left, len(data) - position)
        partitions = []
        for _ in range(partition_count):
            index, size = _TWO_INTS.unpack_from(data, position)
            position += 8
            records = None
            if size != -1:
                end = position + size
                if size < 0 or end > len(data):
                    raise Malformed
                records = data[position:end]
                position = end
            partitions.append({"index": index, "records": records})
        topics.append({"name": name, "topic_id": _NO_ID, "partition_data": partitions})
    return {"transactional_id": transactional_id, "acks": acks, "timeout_ms": timeout_ms, "topic_data": topics}


def _decode_flexible(version: int, data: memoryview, position: int) -> Body:
    size, position = _compact_size(data, position)
    transactional_id = None
    if size != -1:
        transactional_id, position = _text(data, position, size)
    acks, timeout_ms, count = _FLEXIBLE_HEAD.unpack_from(data, position)
    count, position = (count - 1, position + 7) if count < 0x80 else _compact_size(data, position + 6)
    left = _check_count(count, MAX_ELEMENTS, len(data) - position)
    topics = []
    for _ in range(count):
        name, topic_id = "", _NO_ID
        if version >= FIRST_WITH_TOPIC_ID:
            topic_id = to_uuid(bytes(data[position : position + 16]))
            position += 16
        else:
            size, position = _compact_size(data, position)
            name, position = _text(data, position, size)
        partition_count, position = _compact_size(data, position)
        left = _check_count(partition_count, left, len(data) - position)
        partitions = []
        for _ in range(partition_count):
            index, size = _INT_AND_SIZE.unpack_from(data, position)
            position += 5
            if size >= 0x80:
                size, position = read_uvarint(data, position - 1)
            records = None
            if size:
                end = position + size - 1
                records = data[position:end]
                position = end
            if data[position]:
                position = skip_tags(data, position)
            else:
                position += 1
            partitions.append({"index": index, "records": records})
        if data[position]:
            position = skip_tags(data, position)
        else:
            position += 1
        topics.append({"name": name, "topic_id": topic_id, "partition_data": partitions})
    if data[position]:
        skip_tags(data, position)
    return {"transactional_id": transactional_id, "acks": acks, "timeout_ms": timeout_ms, "topic_data": topics}


def _text(data: memoryview, position: int, size: int) -> tuple[str, int]:
    """Read a string of `size` bytes; returns it and its end."""
    end = position + size
    if not 0 <= size <= MAX_STRING_BYTES or end > len(data):
        raise Malformed
    return str(data[position:end], "utf-8"), end


def _compact_size(data: memoryview, position: int) -> tuple[int, int]:
    """Read a compact length or count; -1 is null. Returns it and the position after it."""
    size = data[position]
    if size < 0x80:
        return size - 1, position + 1
    size, position = read_uvarint(data, position)
    return size - 1, position


def _check_count(count: int, left: int, remaining_bytes: int) -> int:
    """Check a count of elements against the number that is left, and return the rest of that."""
    if not 0 <= count * LEAST_ELEMENT_BYTES <= remaining_bytes:
        raise Malformed
    if count > left:
        raise TooManyElements("has more elements than the limit")
    return left - count


def encode_response(version: int, correlation_id: int, body: Body) -> bytes:
    """Encode a response as the codec does. Raises CodecError."""
    try:
        if _is_success(body):
            if version in FLEXIBLE:
                return b"".join(_flexible_pieces(version, correlation_id, body["responses"]))
            if version in CLASSIC:
                return b"".join(_classic_pieces(version, correlation_id, body["responses"]))
    except (AttributeError, KeyError, TypeError, ValueError, struct.error, _Long):
        pass  # the codec has a longer form, or the reason
    return codec.encode_response(ApiKey.PRODUCE, version, correlation_id, body)


def _is_success(body: Body) -> bool:
    """Return whether a response has only the fields that are encoded here."""
    return len(body) == 1 and all(
        len(answer) == SUCCESS_FIELDS for topic in body["responses"] for answer in topic["partition_responses"]
    )


class _Long(Exception):  # noqa: N818 - never leaves this module
    """A string or an array whose length takes more than one byte."""


def _classic_pieces(version: int, correlation_id: int, topics: Sequence[Body]) -> list[bytes]:
    pieces = [_TWO_INTS.pack(correlation_id, len(topics))]
    for topic in topics:
        name, answers = topic["name"].encode(), topic["partition_responses"]
        pieces += (_SHORT.pack(len(name)), name, _INT.pack(len(answers)))
        for answer in answers:
            pieces.append(_offsets(version, answer))
            if version >= FIRST_WITH_ERRORS:
                pieces.append(_CLASSIC_NO_ERRORS)
    pieces.append(_NO_THROTTLE)
    return pieces


def _flexible_pieces(version: int, correlation_id: int, topics: Sequence[Body]) -> list[bytes]:
    pieces = [_INT.pack(correlation_id), _NO_TAGS, _short(len(topics))]
    for topic in topics:
        answers = topic["partition_responses"]
        if version >= FIRST_WITH_TOPIC_ID:
            pieces.append(topic["topic_id"].bytes)
        else:
            name = topic["name"].encode()
            pieces += (_short(len(name)), name)
        pieces.append(_short(len(answers)))
        for answer in answers:
            pieces += (_offsets(version, answer), _FLEXIBLE_NO_ERRORS)
        pieces.append(_NO_TAGS)
    pieces += (_NO_THROTTLE, _NO_TAGS)
    return pieces


def _offsets(version: int, answer: Body) -> bytes:
    known = answer["index"], answer["error_code"], answer["base_offset"], answer["log_append_time_ms"]
    if version >= FIRST_WITH_START_OFFSET:
        return _OFFSETS_AND_START.pack(*known, answer["log_start_offset"])
    return _OFFSETS.pack(*known)


def _short(size: int) -> bytes:
    if size > SHORT_BYTES:
        raise _Long
    return _ONE_BYTE[size]
