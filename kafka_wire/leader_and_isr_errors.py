"""LeaderAndIsr's answer without the partitions that a broker took: it names every partition, and nearly all without an error.

The codec makes a dict for each, which takes a fifth of a second at 60,000 partitions. An error has a fixed layout, so each topic's
are read as one piece. The plain twin is `codec.decode_response`. Source: LeaderAndIsrResponse 5 to 7 (KIP-516). Leaves out what
an error means.
"""

import struct
from uuid import UUID

from kafka_wire import codec
from kafka_wire import column_reading as reading
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.column_reading import HEADER_BYTES, Unusual

FIRST_BY_TOPIC_ID = 5
"""The first version that lists errors by topic id."""
_CODE_BYTES = 2
_PARTITION = struct.Struct(">ihB")
"""Partition, error code, and the number of tagged fields."""
_TOPIC_ID_BYTES = 16


def decode_errors(version: int, frame: bytes) -> Body:
    """Decode a whole response (without its size), without partitions that have no error. Raises CodecError."""
    if version < FIRST_BY_TOPIC_ID:
        return _plainly(codec.decode_response(ApiKey.LEADER_AND_ISR, version, frame)[1])
    return reading.decode_columns(ApiKey.LEADER_AND_ISR, version, frame, _directly, _plainly)


def _plainly(body: Body) -> Body:
    topics = [{**topic, "partition_errors": _failed(topic["partition_errors"])} for topic in body["topics"]]
    failed = [topic for topic in topics if topic["partition_errors"]]
    return {**body, "partition_errors": _failed(body["partition_errors"]), "topics": failed}


def _failed(errors: list[Body]) -> list[Body]:
    return [error for error in errors if error["error_code"]]


def _directly(_version: int, frame: bytes) -> Body:
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
        raise Unusual
    return {"error_code": error_code, "partition_errors": [], "topics": topics}


def _read_failed(block: bytes) -> list[Body]:
    failed = [(index, code, tags) for index, code, tags in _PARTITION.iter_unpack(block) if code or tags]
    if any(tags for *_, tags in failed):
        raise Unusual
    return [{"topic_name": "", "partition_index": index, "error_code": code} for index, code, _ in failed]
