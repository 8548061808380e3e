"""Runtime functions of the generated encoders and decoders: the parts that are the same for every message.

Errors raised here name no field: the plain encoder or decoder explains them (compiler.py).
"""

import struct
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from kafka_wire.failures import TooManyElements
from kafka_wire.plain_encoder import MAX_STRING_BYTES, is_default
from kafka_wire.schema import Field
from kafka_wire.varints import ONE_BYTE, Buffer, read_uvarint, write_uvarint

MAX_SHORT_LENGTH = 0x7E
"""Compact lengths are sent plus one; up to this length they take one byte, which is looked up in SHORT_LENGTHS."""
SHORT_LENGTHS = ONE_BYTE[1:]

UUIDS_CACHED = 8192
"""The same topic and directory ids occur in many messages, and creating a UUID is the slowest step of decoding."""

ARRAY_STRUCTS_KEPT = 64
"""Replica lists, by far the most frequent arrays, are shorter than this: one struct is kept for each length."""

RUN_PACKERS_KEPT = 256
"""A cluster has few combinations of replica counts at a time; further combinations are packed without being cached."""


class Malformed(ValueError):  # noqa: N818 -- internal
    """Bytes that are not a valid message; raised by generated code, which knows neither field nor reason."""


class InvalidValue(ValueError):  # noqa: N818 -- internal
    """A value that does not match the schema; raised by generated code, which knows neither field nor reason."""


@lru_cache(UUIDS_CACHED)
def to_uuid(raw: bytes) -> uuid.UUID:
    """Return the UUID of 16 bytes."""
    return uuid.UUID(bytes=raw)


def compact_string_length(length: int) -> bytes:
    """Encode the length of a compact string that needs more than one byte."""
    if length > MAX_STRING_BYTES:
        raise InvalidValue
    return write_uvarint(length + 1)


def compact_length(length: int) -> bytes:
    """Encode the length of compact bytes, or the count of a compact array, that needs more than one byte."""
    return write_uvarint(length + 1)


def elements_of(values: object) -> Any:
    """Return a list or tuple unchanged; raise InvalidValue for other iterables (str, bytes, dict)."""
    if isinstance(values, list | tuple):
        return values
    raise InvalidValue


def charge(budget: list[int], units: int) -> None:
    """Subtract units from a budget; raises TooManyElements when it is exhausted. A null array (size -1) is not charged."""
    budget[0] -= units
    if budget[0] < 0:
        raise TooManyElements("has more elements than the limit")


class RunPackers(dict[tuple[int, ...], Callable[..., bytes]]):
    """Packers of a run that contains arrays of fixed-width elements, by the counts of these arrays.

    `layout` has one string for each part of the run: struct codes, or `[code]` for an array with its count in front. A
    packer takes the values of the parts in order, for an array its count as sent and then its elements.
    """

    def __init__(self, layout: tuple[str, ...], flexible: bool) -> None:
        super().__init__()
        self.layout = layout
        self.count_code = "B" if flexible else "i"
        self.highest_count = MAX_SHORT_LENGTH if flexible else 0x7FFFFFFF

    def __missing__(self, counts: tuple[int, ...]) -> Callable[..., bytes]:
        if max(counts) > self.highest_count:
            return partial(self._pack_long, counts)
        left = iter(counts)
        codes = (f"{self.count_code}{next(left)}{part[1]}" if part[0] == "[" else part for part in self.layout)
        pack = struct.Struct(">" + "".join(codes)).pack
        if len(self) < RUN_PACKERS_KEPT and max(counts) < ARRAY_STRUCTS_KEPT:
            self[counts] = pack
        return pack

    def _pack_long(self, counts: tuple[int, ...], *values: Any) -> bytes:
        """Pack a run with a compact count that needs more than one byte."""
        out, position, left = bytearray(), 0, iter(counts)
        for part in self.layout:
            if part[0] == "[":
                end = position + 1 + next(left)
                out += write_uvarint(values[position])
                out += struct.pack(f">{end - position - 1}{part[1]}", *values[position + 1 : end])
            else:
                end = position + len(struct.unpack(">" + part, bytes(struct.calcsize(">" + part))))
                out += struct.pack(">" + part, *values[position:end])
            position = end
        return bytes(out)


class ArrayUnpackers(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """Unpackers of arrays of one fixed-width type, by their counts: (bytes, position after the count) to values.

    A count that exceeds the remaining bytes raises `struct.error`, before memory is allocated for its values.
    """

    def __init__(self, code: str) -> None:
        super().__init__()
        self.code = code

    def __missing__(self, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        unpack = struct.Struct(f">{count}{self.code}").unpack_from
        if count < ARRAY_STRUCTS_KEPT:
            self[count] = unpack
        return unpack


def body_check(fields: tuple[Field, ...], version: int) -> Callable[[Mapping[str, Any]], None]:
    """Return a check of a body's keys: all are known, and no non-default value is in a field that the version lacks."""
    known = frozenset(field.key for field in fields)
    lost = [field for field in fields if version not in field.versions and not field.ignorable]

    def check(body: Mapping[str, Any]) -> None:
        if not body.keys() <= known:
            raise InvalidValue
        for field in lost:
            if not is_default(field, body.get(field.key, field.default)):
                raise InvalidValue

    return check


def encode_tags(tags: list[tuple[int, bytes]]) -> bytes:
    """Encode tagged fields, given in the order of their tags."""
    encoded = [write_uvarint(tag) + write_uvarint(len(value)) + value for tag, value in tags]
    return write_uvarint(len(tags)) + b"".join(encoded)


def skip_tags(data: Buffer, position: int) -> int:
    """Return the position after unknown tagged fields, whose count is at `position`."""
    count, position = read_uvarint(data, position)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            raise Malformed
    return position
