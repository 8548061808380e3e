"""Partition states from columns to bytes: the bulk of LeaderAndIsr and UpdateMetadata, tens of millions of states a second.

The codec makes one Python object a field, which a failover of 200,000 partitions cannot afford. Here a request's states
are numpy columns and its bytes are written column by column. Partitions whose lists have the same lengths have the same
layout, and nearly all have: each layout is one rectangle of bytes. The fields and their order are the schema's, so a
version that Kafka changes cannot be missed; the plain twin is `codec.encode` of the same states as dicts (tests).

Only flexible versions (KIP-482), which is all that a controller of today calls. Leaves out where the columns come from.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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

NOBODY = -1
"""Pads lists of broker ids on the right."""
CHUNK_STATES = 8_192
"""States that are put in their places at a time, where layouts are mixed: the index of one takes eight times its bytes."""
SCRATCH_BYTES = 4_194_304
"""80,000 states. New memory costs ten times what it takes to fill it, so one piece is kept to put states together in."""
LAYOUTS_KEPT = 256
"""A few kilobytes each; a cluster has as many as there are combinations of a replication factor and an ISR's size."""
STATES_PER_PART = 20_000
"""States that are encoded in one go: some 3 ms in large topics, 15 ms where each topic has one partition."""
FIELD = "topic_states"
WIDTHS = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8}
NO_TAGS = b"\0"


class TopicStates(NamedTuple):
    """One topic's share of the columns: the next so many of them."""

    name: str
    topic_id: UUID
    partitions: int


@dataclass(frozen=True, slots=True, eq=False)
class StateColumns:
    """States of many partitions, topic after topic, by the names of the schema's fields.

    `numbers` and `flags` have shape (n,); `lists` have shape (n, longest), padded with -1. A field that the version has
    and that is missing here is 0, or an empty list; one that the version lacks is left out. Where the states are `shared`,
    since many brokers are told the same, their bytes are kept.
    """

    topics: Sequence[TopicStates]
    numbers: dict[str, IntArray]
    lists: dict[str, IntArray]
    flags: dict[str, npt.NDArray[np.bool_]]
    shared: bool = False
    _encoded: dict[tuple[str, int], bytes] = field(default_factory=dict, init=False)

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
                # Joined before the scratch memory is lent again: the pieces are views of it.
                parts.append(b"".join(_encode(some, message, version, scratch)))
            yield parts[-1]
        if self.shared:
            self._encoded[key] = b"".join(parts)

    def _split(self) -> "Iterator[StateColumns]":
        """Cut between topics, as soon as a part has STATES_PER_PART states."""
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
    """Encode a whole body: `head` has every other field than the states. Raises CodecError."""
    return b"".join(request_parts(message, version, head, states))


def request_parts(message: str, version: int, head: codec.Body, states: StateColumns) -> Iterator[bytes]:
    """Encode a whole body in parts, each of about STATES_PER_PART states: bytes to be joined. Raises CodecError."""
    rest = codec.encode(message, version, {**head, FIELD: []})
    begin = _states_offset(message, version)
    yield rest[:begin]
    yield from states.parts(message, version)
    # The empty array is one byte there.
    yield rest[begin + 1 :]


@contextmanager
def _scratch() -> Iterator[ByteArray]:
    """Lend the piece of memory that is kept; whoever comes while it is lent gets a new one."""
    try:
        piece = _KEPT.pop()
    except IndexError:
        piece = np.empty(SCRATCH_BYTES, dtype=np.uint8)
    try:
        yield piece
    finally:
        _KEPT.append(piece)


_KEPT: deque[ByteArray] = deque(maxlen=1)


def _room(scratch: ByteArray, size: int) -> ByteArray:
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
    """Write all states one after another; returns the bytes, where each topic's states begin, and the end."""
    # Plain numbers: a request has few topics, and numpy's first step costs as much as a thousand of these.
    first = [0]
    for topic in states.topics:
        first.append(first[-1] + topic.partitions)
    count = first[-1]
    lengths = [_lengths(states.lists.get(name), count) for name in _list_names(message, version)]
    if all(type(length) is int for length in lengths):
        layout = _layout(message, version, tuple(map(int, lengths)))
        text = layout.write(states, slice(None), _room(scratch, count * layout.size))
        return text, [row * layout.size for row in first]
    places = [(rows, _layout(message, version, found)) for rows, found in _places_by_layout(count, lengths)]
    sizes = np.zeros(count, dtype=np.int64)
    for rows, layout in places:
        sizes[rows] = layout.size
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    text = np.empty(int(offsets[-1]), dtype=np.uint8)
    for all_rows, layout in places:
        for start in range(0, len(all_rows), CHUNK_STATES):
            rows = all_rows[start : start + CHUNK_STATES]
            written = layout.write(states, rows, _room(scratch, len(rows) * layout.size))
            text[offsets[rows, None] + np.arange(layout.size)] = written.reshape(len(rows), layout.size)
    return text, offsets[first].tolist()


def _lengths(ids: IntArray | None, count: int) -> int | Lengths:
    """Count the ids of each row; one number where all rows have as many."""
    if ids is None:
        return 0
    width = ids.shape[1]
    while width:
        filled = np.count_nonzero(ids[:, width - 1] != NOBODY)
        if filled == count:
            # Padding stands on the right: a last slot that is never empty makes every row full.
            return int(width)
        if filled:
            break
        width -= 1
    if not width:
        return 0
    lengths = np.zeros(count, dtype=np.int64)
    for slot in ids[:, :width].T:
        lengths += slot != NOBODY
    return lengths


def _places_by_layout(count: int, lengths: Sequence[int | Lengths]) -> Iterator[tuple[Lengths, tuple[int, ...]]]:
    """Give the places of the states by layout, and its lists' lengths."""
    key = np.zeros(count, dtype=np.int64)
    for length in lengths:
        key = key * (int(np.max(length)) + 1) + length
    for one in np.unique(key).tolist():
        rows = np.flatnonzero(key == one)
        yield rows, tuple(int(np.broadcast_to(length, count)[rows[0]]) for length in lengths)


class _Layout:
    """The form of states whose lists have certain lengths: a packed record of big-endian numbers.

    Every byte of a length and every slot of a list is a field of its own: numpy fills these ten times faster than fields
    that are arrays themselves.
    """

    def __init__(self, fields: Sequence[schema.Field], lengths: Mapping[str, int]) -> None:
        formats: list[tuple[str, str]] = []
        self._constants: list[tuple[str, int]] = []
        self._slots: list[tuple[str, str, int]] = []
        self._fields: list[str] = []
        for one in fields:
            if one.is_array:
                for place, byte in enumerate(write_uvarint(lengths[one.key] + 1)):
                    formats.append((f"{one.key} length {place}", "u1"))
                    self._constants.append((formats[-1][0], byte))
                for slot in range(lengths[one.key]):
                    formats.append((f"{one.key} {slot}", ">i4"))
                    self._slots.append((formats[-1][0], one.key, slot))
            else:
                formats.append((one.key, ">i4" if one.kind == "int32" else "u1"))
                self._fields.append(one.key)
        # No tagged field: a zero, like everything that nothing is written to.
        self._record = np.dtype([*formats, ("tags", "u1")])
        self.size = self._record.itemsize

    def write(self, states: StateColumns, rows: slice | Lengths, text: ByteArray) -> ByteArray:
        """Write some of the states into `text`, of shape (bytes,), and return it."""
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
    """Tell where the states begin: all that stands before them has a fixed width (tested against the codec)."""
    offset = 0
    for one in schema.definition(message, version).fields:
        if version not in one.versions or one.tag is not None:
            continue
        if one.key == FIELD:
            return offset
        offset += WIDTHS[one.kind]
    raise AssertionError(f"{message} {version} has no field {FIELD}")


@cache
def _fields(message: str, version: int) -> tuple[schema.Field, ...]:
    """List the fields of one topic's states that a version has."""
    definition = schema.definition(message, version)
    assert version in definition.flexible, f"{message} {version} is written in a form of before KIP-482"
    (states,) = (one for one in definition.fields if one.key == FIELD)
    return tuple(one for one in states.fields if version in one.versions)


@cache
def _state_fields(message: str, version: int) -> tuple[schema.Field, ...]:
    """List the fields of one partition's state that a version has."""
    (partitions,) = (one for one in _fields(message, version) if one.key == "partition_states")
    return tuple(one for one in partitions.fields if version in one.versions)


@cache
def _has_id(message: str, version: int) -> bool:
    """Tell whether a version names topics by their ids as well."""
    return any(one.key == "topic_id" for one in _fields(message, version))


@cache
def _list_names(message: str, version: int) -> tuple[str, ...]:
    """List those fields of one partition's state that are lists of ids."""
    return tuple(one.key for one in _state_fields(message, version) if one.is_array)
