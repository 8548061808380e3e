"""Encoder of Metadata responses from numpy columns, for every version of the schema.

The codec creates one Python object per field, which takes seconds for 200,000 partitions. Here the partitions of a piece are
written column by column: partitions whose lists have the same lengths form one rectangle of bytes. Fields and their order
come from the schema. The reference is `codec.encode` of the same response as dicts (tests).

A response is `prefix`, then for each topic `topic_head`, its partitions and `topic_tail`, then `suffix`.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt

from kafka_wire import codec, schema
from kafka_wire.encoded_body import ArrayPlace
from kafka_wire.varints import write_uvarint

MESSAGE = "MetadataResponse"
NOT_REQUESTED = -(2**31)
"""Value of authorized operations that the request did not ask for (KIP-430)."""
LAYOUTS_CACHED = 1_024
"""A few kilobytes each. A cluster has one per version and combination of list lengths, usually fewer than a hundred."""
NO_BROKER = -1
"""Pads lists of broker ids on the right."""
NUMBER_FORMATS = {"int16": (">i2", 2), "int32": (">i4", 4)}

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]


class TopicHead(NamedTuple):
    """Fields of a topic before its partitions."""

    error_code: int
    name: str | None
    topic_id: UUID
    is_internal: bool
    partitions: int
    """Count of the partitions that follow."""


@dataclass(frozen=True, slots=True, eq=False)
class MetadataPartitions:
    """Columns of consecutive partitions: numbers have shape (n,), lists of ids (n, longest), padded with -1."""

    error_code: IntArray
    partition_index: IntArray
    leader_id: IntArray
    leader_epoch: IntArray
    replica_nodes: IntArray
    isr_nodes: IntArray
    offline_replicas: IntArray

    def __len__(self) -> int:
        return len(self.partition_index)


def prefix_and_suffix(version: int, body: Mapping[str, object], topics: int) -> tuple[bytes, bytes]:
    """Encode all fields but the topics; the first part ends with the count of topics. Raises CodecError."""
    encoded = codec.encode(MESSAGE, version, {**body, "topics": []})
    trailing = _bytes_after_topics(version)
    count = write_uvarint(topics + 1) if _is_flexible(version) else struct.pack(">i", topics)
    empty_count_bytes = 1 if _is_flexible(version) else 4
    end = len(encoded) - trailing
    return encoded[: end - empty_count_bytes] + count, encoded[end:]


def array_place(version: int, body: Mapping[str, object], topics: int) -> ArrayPlace:
    """Return the position of the topics in an encoded response with the prefix and suffix of `prefix_and_suffix`."""
    before, after = prefix_and_suffix(version, body, topics)
    count_bytes = len(write_uvarint(topics + 1)) if _is_flexible(version) else 4
    return ArrayPlace(topics, len(before) - count_bytes, len(before), len(after))


def topic_head(version: int, head: TopicHead) -> bytes:
    """Encode a topic up to its partitions. Raises CodecError for a null name in a version without null names."""
    if head.name is None:
        return _plain_topic_head(version, head)
    name, is_flexible = head.name.encode(), _is_flexible(version)
    parts = [head.error_code.to_bytes(2, "big", signed=True)]
    parts.append(_uvarint(len(name) + 1) if is_flexible else len(name).to_bytes(2, "big"))
    parts.append(name)
    if version >= _first_version("topic_id"):
        parts.append(head.topic_id.bytes)
    if version >= _first_version("is_internal"):
        parts.append(b"\1" if head.is_internal else b"\0")
    parts.append(_uvarint(head.partitions + 1) if is_flexible else head.partitions.to_bytes(4, "big"))
    return b"".join(parts)


def topic_tail(version: int, operations: int = NOT_REQUESTED) -> bytes:
    """Encode the fields of a topic after its partitions."""
    tail = struct.pack(">i", operations) if version >= _first_version("topic_authorized_operations") else b""
    return tail + (b"\0" if _is_flexible(version) else b"")


def encode_partitions(version: int, partitions: MetadataPartitions) -> tuple[bytes, list[int]]:
    """Encode consecutive partitions; returns the bytes, and the offsets of all partitions and of the end."""
    count = len(partitions)
    names = _list_names(version)
    lengths = [_lengths(getattr(partitions, name)) for name in names]
    key: LongArray = np.zeros(count, dtype=np.int64)
    for of_list in lengths:
        key = key * (int(of_list.max(initial=0)) + 1) + of_list
    layouts = []
    sizes = np.zeros(count, dtype=np.int64)
    for value in np.unique(key).tolist():
        rows = np.flatnonzero(key == value)
        layout = _layout(version, tuple(int(length[rows[0]]) for length in lengths))
        sizes[rows] = layout.size_bytes
        layouts.append((rows, layout))
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    if len(layouts) == 1:
        return layouts[0][1].write(partitions, slice(None), count).tobytes(), offsets.tolist()
    text = np.empty(int(offsets[-1]), dtype=np.uint8)
    for rows, layout in layouts:
        written = layout.write(partitions, rows, len(rows))
        text[offsets[rows, None] + np.arange(layout.size_bytes)] = written.reshape(len(rows), layout.size_bytes)
    return text.tobytes(), offsets.tolist()


class _Layout:
    """Packed numpy record of a partition with given list lengths.

    Every byte of a length and every slot of a list is its own numpy field: these are filled ten times faster than array fields.
    """

    def __init__(self, version: int, lengths: Mapping[str, int]) -> None:
        formats: list[tuple[str, str]] = []
        self._constants: list[tuple[str, int]] = []
        self._slots: list[tuple[str, str, int]] = []
        self._numbers: list[str] = []
        is_flexible = _is_flexible(version)
        for field in _partition_fields(version):
            if field.is_array:
                length = lengths[field.key]
                encoded = write_uvarint(length + 1) if is_flexible else struct.pack(">i", length)
                for place, byte in enumerate(encoded):
                    formats.append((f"{field.key} length {place}", "u1"))
                    self._constants.append((formats[-1][0], byte))
                for slot in range(length):
                    formats.append((f"{field.key} {slot}", ">i4"))
                    self._slots.append((formats[-1][0], field.key, slot))
            else:
                formats.append((field.key, NUMBER_FORMATS[field.kind][0]))
                self._numbers.append(field.key)
        if is_flexible:
            formats.append(("tags", "u1"))
            self._constants.append(("tags", 0))
        self._record = np.dtype(formats)
        self.size_bytes = self._record.itemsize

    def write(self, partitions: MetadataPartitions, rows: slice | LongArray, count: int) -> npt.NDArray[np.uint8]:
        """Encode some of the partitions; returns their bytes."""
        table = np.empty(count, dtype=self._record)
        for name, byte in self._constants:
            table[name] = byte
        for name, ids, slot in self._slots:
            table[name] = getattr(partitions, ids)[rows, slot]
        for name in self._numbers:
            table[name] = getattr(partitions, name)[rows]
        return table.view(np.uint8)


@lru_cache(maxsize=LAYOUTS_CACHED)
def _layout(version: int, lengths: tuple[int, ...]) -> _Layout:
    return _Layout(version, dict(zip(_list_names(version), lengths, strict=True)))


def _lengths(ids: IntArray) -> LongArray:
    lengths = np.zeros(len(ids), dtype=np.int64)
    for slot in ids.T:
        lengths += slot != NO_BROKER
    return lengths


def _plain_topic_head(version: int, head: TopicHead) -> bytes:
    """Encode the head of a topic without a name, which only responses to requests by topic id contain."""
    topic = {"error_code": head.error_code, "name": None, "topic_id": head.topic_id, "is_internal": head.is_internal}
    whole = codec.encode(MESSAGE, version, {"topics": [topic]})
    begin = len(prefix_and_suffix(version, {}, 0)[0])
    end = len(whole) - _bytes_after_topics(version) - len(topic_tail(version)) - 1
    return whole[begin:end] + _uvarint(head.partitions + 1)


def _uvarint(value: int) -> bytes:
    return _SMALL[value] if value < len(_SMALL) else write_uvarint(value)


_SMALL: Sequence[bytes] = tuple(write_uvarint(value) for value in range(256))


@cache
def _is_flexible(version: int) -> bool:
    return version in schema.definition(MESSAGE, version).flexible


@cache
def _bytes_after_topics(version: int) -> int:
    """Count the bytes after the topics: numbers of fixed width, and in flexible versions the count of tagged fields."""
    fields = schema.definition(MESSAGE, version).fields
    (place,) = (place for place, field in enumerate(fields) if field.key == "topics")
    after = (field for field in fields[place + 1 :] if version in field.versions)
    return sum(NUMBER_FORMATS[field.kind][1] for field in after) + _is_flexible(version)


@cache
def _topic_fields() -> tuple[schema.Field, ...]:
    (topics,) = (field for field in schema.definitions(MESSAGE)[0].fields if field.key == "topics")
    return topics.fields


@cache
def _first_version(key: str) -> int:
    """Return the first version with this field of a topic."""
    return next(field.versions.lowest for field in _topic_fields() if field.key == key)


@cache
def _partition_fields(version: int) -> tuple[schema.Field, ...]:
    (partitions,) = (field for field in _topic_fields() if field.key == "partitions")
    return tuple(field for field in partitions.fields if version in field.versions)


@cache
def _list_names(version: int) -> tuple[str, ...]:
    return tuple(field.key for field in _partition_fields(version) if field.is_array)
