"""Column encoder of ListOffsets requests and column decoder of their responses.

Partitions have a fixed layout in both, so numpy writes and reads those of a topic as one piece. Versions before KIP-482 are decoded
by the codec and not encoded. The references are `codec.encode` and `codec.decode_response`. Source: ListOffsetsRequest and
ListOffsetsResponse 6 to 11 (KIP-79, KIP-320).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from kafka_wire import codec, schema
from kafka_wire.api import ApiKey, Body
from kafka_wire.columns import reading
from kafka_wire.columns.reading import IntColumn, LongColumn, UnsupportedLayout
from kafka_wire.failures import CodecError
from kafka_wire.varints import write_uvarint

REQUEST, RESPONSE = "ListOffsetsRequest", "ListOffsetsResponse"
LATEST, EARLIEST = -1, -2
"""Timestamps that request the end and the start of a log (ListOffsetsRequest.LATEST_TIMESTAMP, EARLIEST_TIMESTAMP)."""
ANY_EPOCH = -1
"""The request accepts any leader epoch."""
TOPICS_OFFSET = 5
"""Position of the topics: after replica_id and isolation_level. An empty array of topics is one byte."""

_REQUESTED = np.dtype(
    [("partition_index", ">i4"), ("current_leader_epoch", ">i4"), ("timestamp", ">i8"), ("tags", "u1")]
)
_RETURNED = np.dtype(
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
    """A response: topics in its order, `topic_rows` partitions of each, and a row for each partition."""

    topics: tuple[str, ...]
    topic_rows: LongColumn
    partition_index: IntColumn
    error_code: IntColumn
    offset: LongColumn
    """-1 if there is none, for example for an error."""


def encode_list_offsets(
    version: int, topics: Sequence[str], topic_rows: LongColumn, partition_index: IntColumn, timestamp: int
) -> bytes:
    """Encode the body of a client's request (replica_id -1, read_uncommitted) for any leader epoch.

    `topic_rows` has the count of each topic's partitions, which are consecutive in `partition_index`. Raises CodecError,
    also for a version before KIP-482.
    """
    if not _is_known_request(version):
        raise CodecError("this version cannot be encoded from columns", message=REQUEST, version=version)
    rest = codec.encode(REQUEST, version, {"replica_id": -1, "isolation_level": 0, "topics": []})
    requested = np.zeros(len(partition_index), _REQUESTED)
    requested["partition_index"] = partition_index
    requested["current_leader_epoch"] = ANY_EPOCH
    requested["timestamp"] = timestamp
    text = requested.tobytes()
    parts = [rest[:TOPICS_OFFSET], write_uvarint(len(topics) + 1)]
    begin = 0
    for name, rows in zip(topics, topic_rows.tolist(), strict=True):
        encoded, end = name.encode(), begin + rows * _REQUESTED.itemsize
        parts += (write_uvarint(len(encoded) + 1), encoded, write_uvarint(rows + 1), text[begin:end], _NO_TAGS)
        begin = end
    parts.append(rest[TOPICS_OFFSET + 1 :])
    return b"".join(parts)


def decode_list_offsets(version: int, frame: bytes) -> OffsetColumns:
    """Decode a whole response frame (without its size). Raises CodecError."""
    return reading.decode_columns(ApiKey.LIST_OFFSETS, version, frame, _from_frame, _from_body)


def _from_body(body: Body) -> OffsetColumns:
    topics = body["topics"]
    partitions = [partition for topic in topics for partition in topic["partitions"]]
    return OffsetColumns(
        tuple(topic["name"] for topic in topics),
        np.array([len(topic["partitions"]) for topic in topics], np.int64),
        np.array([partition["partition_index"] for partition in partitions], np.int32),
        np.array([partition["error_code"] for partition in partitions], np.int32),
        np.array([partition["offset"] for partition in partitions], np.int64),
    )


def _from_frame(version: int, data: bytes) -> OffsetColumns:
    if not _is_known_response(version):
        raise UnsupportedLayout
    names: list[str] = []
    rows: list[int] = []
    parts: list[bytes] = []
    position = reading.topics_at(data, reading.HEADER_BYTES + 4, _RETURNED, names, rows, parts)
    reading.expect_end(data, reading.no_tags(data, position))
    found = reading.fixed(parts, _RETURNED)
    return OffsetColumns(
        tuple(names),
        np.array(rows, np.int64),
        found["partition_index"].astype(np.int32),
        found["error_code"].astype(np.int32),
        found["offset"].astype(np.int64),
    )


@cache
def _is_known_request(version: int) -> bool:
    """Return whether a version has exactly the fields that are encoded here."""
    return (
        version in schema.definition(REQUEST, version).flexible
        and reading.field_names(REQUEST, version)[:3] == ("replica_id", "isolation_level", "topics")
        and reading.field_names(REQUEST, version, "topics") == ("name", "partitions")
        and reading.field_names(REQUEST, version, "topics", "partitions") == tuple(_REQUESTED.names or ())[:-1]
    )


@cache
def _is_known_response(version: int) -> bool:
    """Return whether a version has exactly the fields that are decoded here."""
    return (
        reading.field_names(RESPONSE, version) == ("throttle_time_ms", "topics")
        and reading.field_names(RESPONSE, version, "topics") == ("name", "partitions")
        and reading.field_names(RESPONSE, version, "topics", "partitions") == tuple(_RETURNED.names or ())[:-1]
    )
