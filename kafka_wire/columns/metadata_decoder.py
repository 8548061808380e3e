"""Decoder of Metadata responses into columns: leader, replicas and ISR of 200,000 partitions in a tenth of a second.

The lists of neighbouring partitions nearly always have the same lengths: neighbours of one layout are one piece of bytes, and numpy
reads all pieces of a layout at once. The scan for the pieces reads four bytes of each partition.

Authorized operations and offline replicas are not returned. The reference is `codec.decode_response`. Source: MetadataResponse
9 to 13 (KIP-482, KIP-516).
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_wire.api import ApiKey, Body
from kafka_wire.columns import reading
from kafka_wire.columns.reading import NO_BROKER, IntColumn, LongColumn, UnsupportedLayout

MESSAGE = "MetadataResponse"
PARTITION_FIELDS = (
    "error_code",
    "partition_index",
    "leader_id",
    "leader_epoch",
    "replica_nodes",
    "isr_nodes",
    "offline_replicas",
)
PARTITION_HEAD_BYTES = 14
"""The four numbers before the lists."""
MAX_SHORT_COUNT = 0x80
"""Counts of ids, plus one, below this take one byte; a partition with more replicas has an unsupported layout."""

Layout = tuple[int, int, int]
"""Lengths of a partition's three lists."""


class MetadataBroker(NamedTuple):
    """Address of one broker for clients."""

    node_id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True, eq=False)
class MetadataColumns:
    """Cluster metadata of a broker. Rows are partitions, topic after topic, in the order of the response.

    `topic_rows` has the row count of each topic. The other columns have shape (n,), except for the lists of ids, which have
    shape (n, longest) and are padded with -1.
    """

    brokers: tuple[MetadataBroker, ...]
    cluster_id: str | None
    controller_id: int
    error_code: int
    """Error of the whole response; 0 in versions below 13, which have none."""
    topics: tuple[str, ...]
    topic_error_code: IntColumn
    topic_rows: LongColumn
    partition_error_code: IntColumn
    partition_index: IntColumn
    leader_id: IntColumn
    leader_epoch: IntColumn
    replica_nodes: IntColumn
    isr_nodes: IntColumn


def decode_metadata(version: int, frame: bytes) -> MetadataColumns:
    """Decode a whole response frame (without its size). Raises CodecError."""
    return reading.decode_columns(ApiKey.METADATA, version, frame, _from_frame, _from_body)


def _from_body(body: Body) -> MetadataColumns:
    topics = body["topics"]
    partitions = [partition for topic in topics for partition in topic["partitions"]]

    def column(key: str) -> IntColumn:
        return np.array([partition[key] for partition in partitions], np.int32)

    return MetadataColumns(
        tuple(
            MetadataBroker(broker["node_id"], broker["host"], broker["port"], broker["rack"])
            for broker in body["brokers"]
        ),
        body["cluster_id"],
        body["controller_id"],
        body["error_code"],
        tuple(topic["name"] or "" for topic in topics),
        np.array([topic["error_code"] for topic in topics], np.int32),
        np.array([len(topic["partitions"]) for topic in topics], np.int64),
        *map(column, PARTITION_FIELDS[:4]),
        *(reading.padded([partition[key] for partition in partitions]) for key in PARTITION_FIELDS[4:6]),
    )


@cache
def _is_known(version: int) -> bool:
    """Return whether a version has exactly the fields that `_from_frame` reads."""
    head = ("throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics")
    topic = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    return (
        reading.field_names(MESSAGE, version) in {head, (*head, "error_code")}
        and reading.field_names(MESSAGE, version, "brokers") == ("node_id", "host", "port", "rack")
        and reading.field_names(MESSAGE, version, "topics") == topic
        and reading.field_names(MESSAGE, version, "topics", "partitions") == PARTITION_FIELDS
    )


def _from_frame(version: int, data: bytes) -> MetadataColumns:
    if not _is_known(version):
        raise UnsupportedLayout
    brokers, position = _brokers(data, reading.HEADER_BYTES + 4)
    cluster_id, position = reading.nullable_string_at(data, position)
    controller_id, position = reading.int_at(data, position, 4), position + 4
    count, position = reading.count_at(data, position)
    names, errors, rows = [], [], []
    pieces = _Pieces()
    for _ in range(count):
        errors.append(reading.int_at(data, position, 2))
        name, position = reading.string_at(data, position + 2)
        names.append(name)
        partitions, position = reading.count_at(data, position + 17)  # after topic_id and is_internal
        rows.append(partitions)
        position = reading.no_tags(data, pieces.add(data, position, partitions) + 4)
    error_code = 0
    if reading.field_names(MESSAGE, version)[-1] == "error_code":
        error_code, position = reading.int_at(data, position, 2), position + 2
    reading.expect_end(data, reading.no_tags(data, position))
    columns = pieces.columns()
    return MetadataColumns(
        brokers,
        cluster_id,
        controller_id,
        error_code,
        tuple(names),
        np.array(errors, np.int32),
        np.array(rows, np.int64),
        *columns,
    )


def _brokers(data: bytes, position: int) -> tuple[tuple[MetadataBroker, ...], int]:
    count, position = reading.count_at(data, position)
    found = []
    for _ in range(count):
        node_id = reading.int_at(data, position, 4)
        host, position = reading.string_at(data, position + 4)
        port = reading.int_at(data, position, 4)
        rack, position = reading.nullable_string_at(data, position + 4)
        position = reading.no_tags(data, position)
        found.append(MetadataBroker(node_id, host, port, rack))
    return tuple(found), position


class _Pieces:
    """Partitions found so far: pieces of bytes by layout, with their rows."""

    def __init__(self) -> None:
        self.rows = 0
        self.parts: defaultdict[Layout, list[bytes]] = defaultdict(list)
        self.spans: defaultdict[Layout, list[tuple[int, int]]] = defaultdict(list)

    def add(self, data: bytes, position: int, count: int) -> int:
        """Add the partitions of a topic; returns the position after them."""
        while count:
            replicas_at = position + PARTITION_HEAD_BYTES
            replicas = data[replicas_at]
            isr_at = replicas_at + 4 * replicas - 3
            isr = data[isr_at]
            offline_at = isr_at + 4 * isr - 3
            offline = data[offline_at]
            size = offline_at + 4 * offline - 2 - position
            if not (0 < replicas < MAX_SHORT_COUNT and 0 < isr < MAX_SHORT_COUNT and 0 < offline < MAX_SHORT_COUNT):
                raise UnsupportedLayout
            begin, neighbours = position, 0
            to_replicas, to_isr, to_offline = PARTITION_HEAD_BYTES, isr_at - position, offline_at - position
            while True:
                position += size
                neighbours += 1
                if neighbours == count or not (
                    data[position + to_replicas] == replicas
                    and data[position + to_isr] == isr
                    and data[position + to_offline] == offline
                ):
                    break
            if position > len(data):
                raise UnsupportedLayout
            layout = replicas - 1, isr - 1, offline - 1
            self.parts[layout].append(data[begin:position])
            self.spans[layout].append((self.rows, neighbours))
            self.rows += neighbours
            count -= neighbours
        return position

    def columns(self) -> tuple[IntColumn, ...]:
        """Return four columns of numbers, then replicas and ISRs."""
        numbers = np.empty((4, self.rows), np.int32)
        widths = [max((layout[at] for layout in self.parts), default=0) for at in (0, 1)]
        replicas, isr = (np.full((self.rows, width), NO_BROKER, np.int32) for width in widths)
        for layout, parts in self.parts.items():
            found = reading.fixed(parts, _struct(layout))
            rows = _rows(self.spans[layout])
            for at, name in enumerate(PARTITION_FIELDS[:4]):
                numbers[at, rows] = found[name]
            replicas[rows, : layout[0]] = found["replica_nodes"]
            isr[rows, : layout[1]] = found["isr_nodes"]
        return (*numbers, replicas, isr)


def _rows(spans: list[tuple[int, int]]) -> slice | npt.NDArray[np.int64]:
    """Return the rows of spans (first, count), which are in order."""
    first, count = spans[0][0], sum(length for _, length in spans)
    if spans[-1][0] + spans[-1][1] - first == count:  # there are no gaps
        return slice(first, first + count)
    begins, lengths = np.array(spans, np.int64).T
    within = np.arange(count) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows: npt.NDArray[np.int64] = np.repeat(begins, lengths) + within
    return rows


@cache
def _struct(layout: Layout) -> np.dtype[np.void]:
    """Return the numpy type of a layout; there is one for each combination of replication factor and ISR size."""
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [("error_code", ">i2")]
    fields += [(name, ">i4") for name in PARTITION_FIELDS[1:4]]
    for name, length in zip(PARTITION_FIELDS[4:], layout, strict=True):
        fields += [(f"{name}_count", "u1"), (name, ">i4", (length,))]
    return np.dtype([*fields, ("tags", "u1")])
