"""Decoder of DescribeLogDirs responses into columns: the size of each replica in each log directory of a broker.

Replicas have a fixed layout, so numpy reads those of a topic as one piece. Cordoned log directories are not reported. The reference
is `codec.decode_response`. Source: DescribeLogDirsResponse 2 to 5 (KIP-113, KIP-827).
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_wire.api import ApiKey, Body
from kafka_wire.columns import reading
from kafka_wire.columns.reading import IntColumn, LongColumn, UnsupportedLayout

MESSAGE = "DescribeLogDirsResponse"
_REPLICA = np.dtype(
    [
        ("partition_index", ">i4"),
        ("partition_size", ">i8"),
        ("offset_lag", ">i8"),
        ("is_future_key", "u1"),
        ("tags", "u1"),
    ]
)
_TAILS = {
    (): 0,
    ("total_bytes", "usable_bytes"): 16,
    ("total_bytes", "usable_bytes", "is_cordoned"): 17,
}
"""Fields after the topics of a log directory, and their size in bytes."""


class LogDir(NamedTuple):
    """A log directory of a broker; sizes are -1 if the broker does not report them."""

    path: str
    error_code: int
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class LogDirColumns:
    """A response: log directories, the topics of each in the same order with `topic_rows` replicas each, and a row for each replica."""

    error_code: int
    """Error of the whole response; 0 in versions below 3, which have none."""
    log_dirs: tuple[LogDir, ...]
    topics: tuple[str, ...]
    """A topic is listed once for each log directory that holds replicas of it."""
    topic_rows: LongColumn
    partition_index: IntColumn
    size_bytes: LongColumn
    is_future: npt.NDArray[np.bool_]
    """True for a future replica: the copy that is being created by a move between log directories."""


def decode_log_dirs(version: int, frame: bytes) -> LogDirColumns:
    """Decode a whole response frame (without its size). Raises CodecError."""
    return reading.decode_columns(ApiKey.DESCRIBE_LOG_DIRS, version, frame, _from_frame, _from_body)


def _from_body(body: Body) -> LogDirColumns:
    topics = [topic for result in body["results"] for topic in result["topics"]]
    replicas = [partition for topic in topics for partition in topic["partitions"]]
    return LogDirColumns(
        body["error_code"],
        tuple(
            LogDir(result["log_dir"], result["error_code"], result["total_bytes"], result["usable_bytes"])
            for result in body["results"]
        ),
        tuple(topic["name"] for topic in topics),
        np.array([len(topic["partitions"]) for topic in topics], np.int64),
        np.array([replica["partition_index"] for replica in replicas], np.int32),
        np.array([replica["partition_size"] for replica in replicas], np.int64),
        np.array([replica["is_future_key"] for replica in replicas], np.bool_),
    )


def _from_frame(version: int, data: bytes) -> LogDirColumns:
    tail = _tail(version)
    position = reading.HEADER_BYTES + 4
    error_code = 0
    if "error_code" in reading.field_names(MESSAGE, version):
        error_code, position = reading.int_at(data, position, 2), position + 2
    count, position = reading.count_at(data, position)
    log_dirs: list[LogDir] = []
    names: list[str] = []
    rows: list[int] = []
    parts: list[bytes] = []
    for _ in range(count):
        dir_error = reading.int_at(data, position, 2)
        path, position = reading.string_at(data, position + 2)
        position = reading.topics_at(data, position, _REPLICA, names, rows, parts)
        total, usable = (reading.int_at(data, position + at, 8) if tail else -1 for at in (0, 8))
        log_dirs.append(LogDir(path, dir_error, total, usable))
        position = reading.no_tags(data, position + tail)
    reading.expect_end(data, reading.no_tags(data, position))
    found = reading.fixed(parts, _REPLICA)
    return LogDirColumns(
        error_code,
        tuple(log_dirs),
        tuple(names),
        np.array(rows, np.int64),
        found["partition_index"].astype(np.int32),
        found["partition_size"].astype(np.int64),
        found["is_future_key"] != 0,
    )


@cache
def _tail(version: int) -> int:
    """Return the count of bytes after a log directory's topics; raises UnsupportedLayout for a version with unknown fields."""
    result = reading.field_names(MESSAGE, version, "results")
    if not (
        reading.field_names(MESSAGE, version)
        in {("throttle_time_ms", "results"), ("throttle_time_ms", "error_code", "results")}
        and result[:3] == ("error_code", "log_dir", "topics")
        and result[3:] in _TAILS
        and reading.field_names(MESSAGE, version, "results", "topics") == ("name", "partitions")
        and reading.field_names(MESSAGE, version, "results", "topics", "partitions") == tuple(_REPLICA.names or ())[:-1]
    ):
        raise UnsupportedLayout
    return _TAILS[result[3:]]
