"""ListOffsets in columns, both ways: a request for many partitions out of arrays, and its answer into arrays.

Partitions have a fixed layout in both, so numpy writes and reads each topic's as one piece. Leaves out versions of before
KIP-482, but for what the codec reads of them. The plain twins are `codec.encode` and `codec.decode_response`. Source:
ListOffsetsRequest and ListOffsetsResponse 6 to 11 (KIP-79, KIP-320).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from kafka_wire import codec, schema
from kafka_wire import column_reading as reading
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.column_reading import IntColumn, LongColumn, Unusual
from kafka_wire.failures import CodecError
from kafka_wire.varints import write_uvarint

REQUEST, RESPONSE = "ListOffsetsRequest", "ListOffsetsResponse"
LATEST, EARLIEST = -1, -2
"""Timestamps that stand for the end and the start of a log (ListOffsetsRequest.LATEST_TIMESTAMP, EARLIEST_TIMESTAMP)."""
ANY_EPOCH = -1
"""No leader epoch is asked for: whoever leads answers."""
TOPICS_AT = 5
"""Behind replica_id and isolation_level stand the topics; none of them are one byte."""

_ASKED = np.dtype([("partition_index", ">i4"), ("current_leader_epoch", ">i4"), ("timestamp", ">i8"), ("tags", "u1")])
_ANSWERED = np.dtype(
    [
        ("partition_index", ">i4"),
        ("error_code", ">i2"),
        ("timestamp", ">i8"),
        ("offset", ">i8"),
        ("leader_epoch", ">i4"),
        ("tags", "u1"),
    ]
)
_NO_TAGS = b"\0"


@dataclass(frozen=True, slots=True, eq=False)
class OffsetColumns:
    """An answer: topics in the order that they were sent, `topic_rows` partitions of each, and a row for each partition."""

    topics: tuple[str, ...]
    topic_rows: LongColumn
    partition_index: IntColumn
    error_code: IntColumn
    offset: LongColumn
    """-1 where there is none, as with an error."""


def encode_list_offsets(
    version: int, topics: Sequence[str], topic_rows: LongColumn, partition_index: IntColumn, timestamp: int
) -> bytes:
    """Encode a body that asks as a client (replica_id -1, read_uncommitted), for any leader epoch.

    `topic_rows` has the count of each topic's partitions, which follow one another in `partition_index`. Raises CodecError,
    also for a version of before KIP-482.
    """
    if not _asks_as_known(version):
        raise CodecError("the partitions are not written from columns", message=REQUEST, version=version)
    rest = codec.encode(REQUEST, version, {"replica_id": -1, "isolation_level": 0, "topics": []})
    asked = np.zeros(len(partition_index), _ASKED)
    asked["partition_index"] = partition_index
    asked["current_leader_epoch"] = ANY_EPOCH
    asked["timestamp"] = timestamp
    text = asked.tobytes()
    parts = [rest[:TOPICS_AT], write_uvarint(len(topics) + 1)]
    begin = 0
    for name, rows in zip(topics, topic_rows.tolist(), strict=True):
        encoded, end = name.encode(), begin + rows * _ASKED.itemsize
        parts += (write_uvarint(len(encoded) + 1), encoded, write_uvarint(rows + 1), text[begin:end], _NO_TAGS)
        begin = end
    parts.append(rest[TOPICS_AT + 1 :])
    return b"".join(parts)


def decode_list_offsets(version: int, frame: bytes) -> OffsetColumns:
    """Decode a whole response (without its size). Raises CodecError."""
    return reading.decode_columns(ApiKey.LIST_OFFSETS, version, frame, _directly, _plainly)


def _plainly(body: Body) -> OffsetColumns:
    topics = body["topics"]
    partitions = [one for topic in topics for one in topic["partitions"]]
    return OffsetColumns(
        tuple(topic["name"] for topic in topics),
        np.array([len(topic["partitions"]) for topic in topics], np.int64),
        np.array([one["partition_index"] for one in partitions], np.int32),
        np.array([one["error_code"] for one in partitions], np.int32),
        np.array([one["offset"] for one in partitions], np.int64),
    )


def _directly(version: int, data: bytes) -> OffsetColumns:
    if not _answers_as_known(version):
        raise Unusual
    names: list[str] = []
    rows: list[int] = []
    parts: list[bytes] = []
    position = reading.topics_at(data, reading.HEADER_BYTES + 4, _ANSWERED, names, rows, parts)
    reading.expect_end(data, reading.no_tags(data, position))
    found = reading.fixed(parts, _ANSWERED)
    return OffsetColumns(
        tuple(names),
        np.array(rows, np.int64),
        found["partition_index"].astype(np.int32),
        found["error_code"].astype(np.int32),
        found["offset"].astype(np.int64),
    )


@cache
def _asks_as_known(version: int) -> bool:
    """Tell whether a version has just the fields that are written here."""
    return (
        version in schema.definition(REQUEST, version).flexible
        and reading.has_fields(REQUEST, version)[:3] == ("replica_id", "isolation_level", "topics")
        and reading.has_fields(REQUEST, version, "topics") == ("name", "partitions")
        and reading.has_fields(REQUEST, version, "topics", "partitions") == tuple(_ASKED.names or ())[:-1]
    )


@cache
def _answers_as_known(version: int) -> bool:
    """Tell whether a version has just the fields that are read here."""
    return (
        reading.has_fields(RESPONSE, version) == ("throttle_time_ms", "topics")
        and reading.has_fields(RESPONSE, version, "topics") == ("name", "partitions")
        and reading.has_fields(RESPONSE, version, "topics", "partitions") == tuple(_ANSWERED.names or ())[:-1]
    )
