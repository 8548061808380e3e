"""Column encoder of partition states, the bulk of LeaderAndIsr and UpdateMetadata: tens of millions of states a second.

The codec creates one Python object per field, which is too slow for a failover of 200,000 partitions. Here the states of a request
are numpy columns, and its bytes are written column by column. Partitions whose lists have the same lengths, which is nearly all of
them, have the same layout: each layout is one rectangle of bytes. Fields and their order come from the schema, so a changed version is
never encoded wrongly. The reference is `codec.encode` of the same states as dicts (tests).

Only flexible versions (KIP-482), the only ones that the controller sends.
"""

import dataclasses
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt

from kafka_wire import codec, schema
from kafka_wire.varints import write_uvarint

IntArray = npt.NDArray[np.int32]
ByteArray = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.int64]

NO_BROKER = -1
"""Pads lists of broker ids on the right."""
CHUNK_STATES = 8_192
"""States of mixed layouts that are copied to their positions at a time: the index of a state takes eight times its bytes."""
SCRATCH_BYTES = 4_194_304
"""80,000 states. Allocating memory takes ten times as long as filling it, so one buffer is kept for assembling states."""
LAYOUTS_KEPT = 256
"""A few kilobytes each; a cluster has one for each combination of replication factor and ISR size."""
STATES_PER_PART = 20_000
"""States that are encoded without a pause: about 3 ms in large topics, 15 ms if each topic has one partition."""
FIELD = "topic_states"
WIDTHS = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8}
NO_TAGS = b"\0"


class TopicStates(NamedTuple):
    """A topic and the count of its rows, which follow those of the topic before it."""

    name: str
    topic_id: UUID
    partitions: int


@dataclass(frozen=True, slots=True, eq=False)
class StateColumns:
    """States of many partitions, topic after topic, by the names of the schema's fields.

    `numbers` and `flags` have shape (n,); `lists` have shape (n, longest), padded with -1. A field of the version that is
    missing here is 0 or an empty list; a field that the version lacks is omitted. The encoded bytes of `shared` states are kept,
    because many brokers receive the same.
    """

    topics: Sequence[TopicStates]
    numbers: dict[str, IntArray]
    lists: dict[str, IntArray]
    flags: dict[str, npt.NDArray[np.bool_]]
    shared: bool = False
    _encoded: dict[tuple[str, int], bytes] = dataclasses.field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return sum(topic.partitions for topic in self.topics)

    def parts(self, message: str, version: int) -> Iterator[bytes]:
        """Encode the field `topic_states` of a message, in parts of about STATES_PER_PART states."""
        key = message, version
        if key in self._encoded:
            yield self._encoded[key]
            return
        parts = [_uvarint(len(self.topics) + 1)]
        yield parts[0]
        for some in self._split():
            with _scratch() as scratch:
                # The pieces are views of the scratch memory, so they are joined before it is released.
                parts.append(b"".join(_encode(some, message, version, scratch)))
            yield parts[-1]
        if self.shared:
            self._encoded[key] = b"".join(parts)

    def _split(self) -> "Iterator[StateColumns]":
        """Split between topics, as soon as a part has STATES_PER_PART states."""
        if len(self) <= STATES_PER_PART:
            yield self
            return
        first = begin = end = 0
        for place, topic in enumerate(self.topics, start=1):
            end += topic.partitions
            if end - begin >= STATES_PER_PART or place == len(self.topics):
                yield StateColumns(
                    self.topics[first:place],
                    {name: column[begin:end] for name, column in self.numbers.items()},
                    {name: column[begin:end] for name, column in self.lists.items()},
                    {name: column[begin:end] for name, column in self.flags.items()},
                )
                first, begin = place, end


def encode_request(message: str, version: int, head: codec.Body, states: StateColumns) -> bytes:
    """Encode a whole body: `head` has all fields except the states. Raises CodecError."""
    return b"".join(request_parts(message, version, head, states))


def request_parts(message: str, version: int, head: codec.Body, states: StateColumns) -> Iterator[bytes]:
    """Encode a whole body in parts of about STATES_PER_PART states: bytes to be joined. Raises CodecError."""
    rest = codec.encode(message, version, {**head, FIELD: []})
    begin = _states_offset(message, version)
    yield rest[:begin]
    yield from states.parts(message, version)
    # `rest` contains an empty array of states, which is one byte.
    yield rest[begin + 1 :]


@contextmanager
def _scratch() -> Iterator[ByteArray]:
    """Provide the kept scratch buffer, or a new one while that is in use."""
    try:
        piece = _KEPT.pop()
    except IndexError:
        piece = np.empty(SCRATCH_BYTES, dtype=np.uint8)
    try:
        yield piece
    finally:
        _KEPT.append(piece)


_KEPT: deque[ByteArray] = deque(maxlen=1)


def _buffer(scratch: ByteArray, size: int) -> ByteArray:
    return scratch[:size] if size <= len(scratch) else np.empty(size, dtype=np.uint8)


def _encode(states: StateColumns, message: str, version: int, scratch: ByteArray) -> list[bytes | memoryview]:
    has_id = _has_id(message, version)
    text, bounds = _partitions(states, message, version, scratch)
    view = text.data
    parts: list[bytes | memoryview] = []
    for (name, topic_id, partitions), begin, end in zip(states.topics, bounds[:-1], bounds[1:], strict=True):
        encoded = name.encode()
        identity = topic_id.bytes if has_id else b""
        parts += (
            b"".join((_uvarint(len(encoded) + 1), encoded, identity, _uvarint(partitions + 1))),
            view[begin:end],
            NO_TAGS,
        )
    return parts


def _partitions(states: StateColumns, message: str, version: int, scratch: ByteArray) -> tuple[ByteArray, list[int]]:
    """Encode all states; returns the bytes, the offset of each topic's states, and the end."""
    # Python integers: a request has few topics, and a numpy call costs as much as a thousand of these additions.
    first = [0]
    for topic in states.topics:
        first.append(first[-1] + topic.partitions)
    count = first[-1]
    lengths = [list_lengths(states.lists.get(name), count) for name in _list_names(message, version)]
    if all(type(length) is int for length in lengths):
        layout = _layout(message, version, tuple(map(int, lengths)))
        text = layout.write(states, slice(None), _buffer(scratch, count * layout.size))
        return text, [row * layout.size for row in first]
    places = [(rows, _layout(message, version, found)) for rows, found in rows_by_layout(count, lengths)]
    sizes = np.zeros(count, dtype=np.int64)
    for rows, layout in places:
        sizes[rows] = layout.size
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    text = np.empty(int(offsets[-1]), dtype=np.uint8)
    for all_rows, layout in places:
        for start in range(0, len(all_rows), CHUNK_STATES):
            rows = all_rows[start : start + CHUNK_STATES]
            written = layout.write(states, rows, _buffer(scratch, len(rows) * layout.size))
            text[offsets[rows, None] + np.arange(layout.size)] = written.reshape(len(rows), layout.size)
    return text, offsets[first].tolist()


def list_lengths(ids: IntArray | None, count: int) -> int | Lengths:
    """Count the ids of each row; returns one number if all rows have the same count."""
    if ids is None:
        return 0
    width = ids.shape[1]
    while width:
        filled = np.count_nonzero(ids[:, width - 1] != NO_BROKER)
        if filled == count:
            # Padding is on the right: if the last slot is never empty, every row is full.
            return int(width)
        if filled:
            break
        width -= 1
    if not width:
        return 0
    lengths = np.zeros(count, dtype=np.int64)
    for slot in ids[:, :width].T:
        lengths += slot != NO_BROKER
    return lengths


def rows_by_layout(count: int, lengths: Sequence[int | Lengths]) -> Iterator[tuple[Lengths, tuple[int, ...]]]:
    """Yield the rows of each layout, with the lengths of its lists."""
    key = np.zeros(count, dtype=np.int64)
    for length in lengths:
        key = key * (int(np.max(length)) + 1) + length
    for shape in np.unique(key).tolist():
        rows = np.flatnonzero(key == shape)
        yield rows, tuple(int(np.broadcast_to(length, count)[rows[0]]) for length in lengths)


class _Layout:
    """Packed numpy record of a state with given list lengths, in big-endian numbers.

    Every byte of a length and every slot of a list is its own numpy field: these are filled ten times faster than array fields.
    """

    def __init__(self, fields: Sequence[schema.Field], lengths: Mapping[str, int]) -> None:
        formats: list[tuple[str, str]] = []
        self._constants: list[tuple[str, int]] = []
        self._slots: list[tuple[str, str, int]] = []
        self._fields: list[str] = []
        for field in fields:
            if field.is_array:
                for place, byte in enumerate(write_uvarint(lengths[field.key] + 1)):
                    formats.append((f"{field.key} length {place}", "u1"))
                    self._constants.append((formats[-1][0], byte))
                for slot in range(lengths[field.key]):
                    formats.append((f"{field.key} {slot}", ">i4"))
                    self._slots.append((formats[-1][0], field.key, slot))
            else:
                formats.append((field.key, ">i4" if field.kind == "int32" else "u1"))
                self._fields.append(field.key)
        # The count of tagged fields is 0, like every field that is not written.
        self._record = np.dtype([*formats, ("tags", "u1")])
        self.size = self._record.itemsize

    def write(self, states: StateColumns, rows: slice | Lengths, text: ByteArray) -> ByteArray:
        """Encode some of the states into `text`, of shape (bytes,), and return it."""
        text.fill(0)
        table = text.view(self._record)
        for name, byte in self._constants:
            table[name] = byte
        for name, ids, slot in self._slots:
            table[name] = states.lists[ids][rows, slot]
        for name in self._fields:
            if name in states.numbers:
                table[name] = states.numbers[name][rows]
            elif name in states.flags:
                table[name] = states.flags[name][rows]
        return text


@lru_cache(maxsize=LAYOUTS_KEPT)
def _layout(message: str, version: int, lengths: tuple[int, ...]) -> _Layout:
    return _Layout(_state_fields(message, version), dict(zip(_list_names(message, version), lengths, strict=True)))


def _uvarint(value: int) -> bytes:
    return _SMALL[value] if value < len(_SMALL) else write_uvarint(value)


_SMALL = tuple(write_uvarint(value) for value in range(256))


@cache
def _states_offset(message: str, version: int) -> int:
    """Return the offset of the states: all fields before them have a fixed width (tested against the codec)."""
    offset = 0
    for field in schema.definition(message, version).fields:
        if version not in field.versions or field.tag is not None:
            continue
        if field.key == FIELD:
            return offset
        offset += WIDTHS[field.kind]
    raise AssertionError(f"{message} {version} has no field {FIELD}")


@cache
def _fields(message: str, version: int) -> tuple[schema.Field, ...]:
    """List the fields of one topic's states that a version has."""
    definition = schema.definition(message, version)
    assert version in definition.flexible, f"{message} {version} is not flexible (KIP-482)"
    (states,) = (field for field in definition.fields if field.key == FIELD)
    return tuple(field for field in states.fields if version in field.versions)


@cache
def _state_fields(message: str, version: int) -> tuple[schema.Field, ...]:
    """List the fields of one partition's state that a version has."""
    (partitions,) = (field for field in _fields(message, version) if field.key == "partition_states")
    return tuple(field for field in partitions.fields if version in field.versions)


@cache
def _has_id(message: str, version: int) -> bool:
    """Return whether a version contains topic ids."""
    return any(field.key == "topic_id" for field in _fields(message, version))


@cache
def _list_names(message: str, version: int) -> tuple[str, ...]:
    """List the fields of a partition's state that are lists of ids."""
    return tuple(field.key for field in _state_fields(message, version) if field.is_array)
