"""What generated encoders and decoders call: the parts that are the same for every message.

Left out: which of them a message needs, in what order; that is decided where its source is made (source_encoder.py,
source_decoder.py). Nothing here names a field: a failure is explained by the plain twin (compiler.py).
"""

import struct
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from kafka_wire.failures import TooManyElements
from kafka_wire.plain_encoder import MAX_STRING_BYTES, is_default
from kafka_wire.schema import Field
from kafka_wire.varints import ONE_BYTE, read_uvarint, write_uvarint

# Compact lengths are sent plus one; up to this length that is one byte, found in SHORT_LENGTHS.
MAX_SHORT_LENGTH = 0x7E
SHORT_LENGTHS = ONE_BYTE[1:]

# Topic and directory ids come back in message after message, and making a UUID is the dearest thing in decoding one.
UUIDS_CACHED = 8192

# Replica lists, the commonest arrays by far, are shorter than this: one struct is kept for each length.
ARRAY_STRUCTS_KEPT = 64

# A cluster has few combinations of replica counts at a time; a run met with more of them packs the rest unkept.
RUN_PACKERS_KEPT = 256


class Malformed(ValueError):  # noqa: N818 -- never seen outside this package
    """Bytes that cannot be the message; raised by generated code, which knows neither field nor reason."""


class Unfit(ValueError):  # noqa: N818 -- never seen outside this package
    """A value that does not fit the schema; raised by generated code, which knows neither field nor reason."""


@lru_cache(UUIDS_CACHED)
def to_uuid(raw: bytes) -> uuid.UUID:
    """Return the uuid of 16 bytes."""
    return uuid.UUID(bytes=raw)


def compact_string_length(length: int) -> bytes:
    """Encode the length of a compact string that needs more than one byte."""
    if length > MAX_STRING_BYTES:
        raise Unfit
    return write_uvarint(length + 1)


def compact_length(length: int) -> bytes:
    """Encode the length of compact bytes, or the count of a compact array, that needs more than one byte."""
    return write_uvarint(length + 1)


def elements_of(values: object) -> Any:
    """Return a list or tuple as it is; refuse what can be iterated and is no array (str, bytes, dict)."""
    if isinstance(values, list | tuple):
        return values
    raise Unfit


def charge(budget: list[int], units: int) -> None:
    """Take units off a budget; raises TooManyElements when there are too few left. A null array (size -1) is not charged."""
    budget[0] -= units
    if budget[0] < 0:
        raise TooManyElements("has more elements than a request of its size may have")


class RunPackers(dict[tuple[int, ...], Callable[..., bytes]]):
    """The packers of a run with arrays of fixed-width elements in it, by the counts of these arrays.

    `layout` has one string for each part of the run: struct codes, or `[code]` for an array with its count in front. A
    packer takes the parts' values in order, an array as its count, as sent, and then its elements.
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
    """The unpackers of arrays of one fixed-width type, by their counts: bytes and position after the count to values.

    A count that the bytes left do not bear out ends in `struct.error`, before anything is set aside for its values.
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
    """Return a check of a body's keys: all known, and none that the version lacks with a value that would be lost."""
    known = frozenset(field.key for field in fields)
    lost = [field for field in fields if version not in field.versions and not field.ignorable]

    def check(body: Mapping[str, Any]) -> None:
        if not body.keys() <= known:
            raise Unfit
        for field in lost:
            if not is_default(field, body.get(field.key, field.default)):
                raise Unfit

    return check


def encode_tags(tags: list[tuple[int, bytes]]) -> bytes:
    """Encode tagged fields, given in the order of their tags."""
    encoded = [write_uvarint(tag) + write_uvarint(len(value)) + value for tag, value in tags]
    return write_uvarint(len(tags)) + b"".join(encoded)


def skip_tags(data: bytes, position: int) -> int:
    """Return the position after tagged fields of which none is known; their count stands at `position`."""
    count, position = read_uvarint(data, position)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            raise Malformed
    return position
