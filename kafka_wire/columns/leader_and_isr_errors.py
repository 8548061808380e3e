"""Decoder of LeaderAndIsr responses that returns only the partitions with an error.

The response lists every partition, nearly all without an error. The codec creates a dict for each, which takes a fifth of a second at
60,000 partitions. An entry has a fixed layout, so the entries of a topic are read as one piece. The reference is
`codec.decode_response`. Source: LeaderAndIsrResponse 5 to 7 (KIP-516).
"""

import struct
from uuid import UUID

from kafka_wire import codec
from kafka_wire.api import ApiKey, Body
from kafka_wire.columns import reading
from kafka_wire.columns.reading import HEADER_BYTES, UnsupportedLayout

FIRST_BY_TOPIC_ID = 5
"""The first version that lists errors by topic id."""
_CODE_BYTES = 2
_PARTITION = struct.Struct(">ihB")
"""Partition, error code, and the number of tagged fields."""
_TOPIC_ID_BYTES = 16


def decode_errors(version: int, frame: bytes) -> Body:
    """Decode a whole response frame (without its size), without the partitions that have no error. Raises CodecError."""
    if version < FIRST_BY_TOPIC_ID:
        return _from_body(codec.decode_response(ApiKey.LEADER_AND_ISR, version, frame)[1])
    return reading.decode_columns(ApiKey.LEADER_AND_ISR, version, frame, _from_frame, _from_body)


def _from_body(body: Body) -> Body:
    topics = [{**topic, "partition_errors": _failed(topic["partition_errors"])} for topic in body["topics"]]
    failed = [topic for topic in topics if topic["partition_errors"]]
    return {**body, "partition_errors": _failed(body["partition_errors"]), "topics": failed}


def _failed(errors: list[Body]) -> list[Body]:
    return [error for error in errors if error["error_code"]]


def _from_frame(_version: int, frame: bytes) -> Body:
    error_code = reading.int_at(frame, HEADER_BYTES, _CODE_BYTES)
    count, position = reading.count_at(frame, HEADER_BYTES + _CODE_BYTES)
    topics: list[Body] = []
    for _ in range(count):
        begin = position
        partitions, first = reading.count_at(frame, begin + _TOPIC_ID_BYTES)
        position = reading.no_tags(frame, first + partitions * _PARTITION.size)
        failed = _read_failed(frame[first : position - 1])
        if failed:
            topic_id = UUID(bytes=frame[begin : begin + _TOPIC_ID_BYTES])
            topics.append({"topic_id": topic_id, "partition_errors": failed})
    if reading.no_tags(frame, position) != len(frame):
        raise UnsupportedLayout
    return {"error_code": error_code, "partition_errors": [], "topics": topics}


def _read_failed(block: bytes) -> list[Body]:
    failed = [(index, code, tags) for index, code, tags in _PARTITION.iter_unpack(block) if code or tags]
    if any(tags for *_, tags in failed):
        raise UnsupportedLayout
    return [{"topic_name": "", "partition_index": index, "error_code": code} for index, code, _ in failed]
