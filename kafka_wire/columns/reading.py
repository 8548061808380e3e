"""Shared parts of the decoders of large responses into columns.

A response about 200,000 partitions would be millions of Python objects as dicts. The column decoders (metadata_decoder,
offsets, log_dirs) scan the bytes and have numpy read the parts of fixed layout. They support the usual form of a
flexible message (KIP-482). Anything else (a tagged field, a null, an older version, a malformed message) raises
`UnsupportedLayout`: the codec then decodes the whole message, or reports what is wrong with it. The codec is therefore the
reference of all of them, and the tests compare them with it.

Each decoder knows the fields of its own message; `field_names` compares them with the schema.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kafka_wire import codec, schema
from kafka_wire.api import ApiKey, Body
from kafka_wire.failures import CodecError
from kafka_wire.plain_encoder import MAX_STRING_BYTES
from kafka_wire.varints import read_uvarint

IntColumn = npt.NDArray[np.int32]
LongColumn = npt.NDArray[np.int64]

NO_BROKER = -1
"""Pads lists of broker ids on the right."""
MAX_PLAIN_BYTES = 4 * 1024 * 1024
"""Largest message that falls back to the codec, where it may take 120 times its bytes in memory. Responses in the usual form have
no such limit."""
HEADER_BYTES = 5
"""Header of a flexible response: the correlation id, and the count of tagged fields, which is 0."""

_CLASSIC_HEADER = b"\1" * HEADER_BYTES
"""Represents a header from before KIP-482, which is never read into columns directly."""
_T = TypeVar("_T")


class UnsupportedLayout(Exception):  # noqa: N818 -- internal: the codec decodes the message instead
    """The message contains something that the column decoders do not read."""


def decode_columns(
    key: ApiKey,
    version: int,
    frame: bytes,
    from_frame: Callable[[int, bytes], _T],
    from_body: Callable[[Body], _T],
) -> _T:
    """Decode a whole response frame (without its size), by the codec if `from_frame` cannot. Raises CodecError."""
    try:
        no_tags(frame if _is_flexible(key, version) else _CLASSIC_HEADER, HEADER_BYTES - 1)
        return from_frame(version, frame)
    except (UnsupportedLayout, IndexError, UnicodeDecodeError, CodecError):
        if len(frame) > MAX_PLAIN_BYTES:
            reason = f"{len(frame)} bytes in an unusual form exceed the limit of {MAX_PLAIN_BYTES}"
            raise CodecError(reason, message=f"{key.message}Response", version=version) from None
    return from_body(codec.decode_response(key, version, frame)[1])


@cache
def field_names(message: str, version: int, *path: str) -> tuple[str, ...]:
    """List the fields of a version in order, for a message or for the struct at `path` in it."""
    fields = schema.definition(message, version).fields
    for name in path:
        (fields,) = (field.fields for field in fields if field.key == name)
    return tuple(field.key for field in fields if version in field.versions)


def count_at(data: bytes, position: int) -> tuple[int, int]:
    """Read the count of an array; returns it and the position after it."""
    count, position = read_uvarint(data, position)
    if count == 0 or count > len(data):  # null, or more elements than there are bytes
        raise UnsupportedLayout
    return count - 1, position


def string_end(data: bytes, position: int) -> tuple[int, int]:
    """Return the start and the end of a string's text."""
    size, position = read_uvarint(data, position)
    end = position + size - 1
    if not 0 < size <= MAX_STRING_BYTES + 1 or end > len(data):
        raise UnsupportedLayout
    return position, end


def string_at(data: bytes, position: int) -> tuple[str, int]:
    """Read a string that is not null; returns it and the position after it."""
    position, end = string_end(data, position)
    return data[position:end].decode(), end


def nullable_string_at(data: bytes, position: int) -> tuple[str | None, int]:
    """Read a string or null; returns it and the position after it."""
    return (None, position + 1) if data[position] == 0 else string_at(data, position)


def int_at(data: bytes, position: int, size: int) -> int:
    """Read a signed number of `size` bytes."""
    if position + size > len(data):
        raise UnsupportedLayout
    return int.from_bytes(data[position : position + size], "big", signed=True)


def no_tags(data: bytes, position: int) -> int:
    """Require a count of tagged fields of 0; returns the position after it."""
    if data[position]:
        raise UnsupportedLayout
    return position + 1


def expect_end(data: bytes, position: int) -> None:
    """Require the message to end at `position`."""
    if position != len(data):
        raise UnsupportedLayout


def fixed(parts: list[bytes], layout: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Read structs of one fixed layout from `parts`, which is cleared.

    Each struct ends in a count of tagged fields, which must be 0.
    """
    found = np.frombuffer(b"".join(parts), layout)
    parts.clear()
    if found["tags"].any():
        raise UnsupportedLayout
    return found


def topics_at(
    data: bytes, position: int, layout: np.dtype[np.void], names: list[str], rows: list[int], parts: list[bytes]
) -> int:
    """Read an array of topics: their names, the count of their structs of one fixed layout, and these structs as bytes for `fixed`.

    Appends to the three lists; returns the position after the array.
    """
    count, position = count_at(data, position)
    for _ in range(count):
        name, position = string_at(data, position)
        structs, position = count_at(data, position)
        end = position + structs * layout.itemsize
        if end > len(data):
            raise UnsupportedLayout
        names.append(name)
        rows.append(structs)
        parts.append(data[position:end])
        position = no_tags(data, end)
    return position


def padded(lists: Sequence[Sequence[int]]) -> IntColumn:
    """Return lists of broker ids as one array of shape (n, longest), padded with -1.

    >>> padded([[1, 2], [3]]).tolist()
    [[1, 2], [3, -1]]
    """
    found = np.full((len(lists), max(map(len, lists), default=0)), NO_BROKER, np.int32)
    for row, ids in enumerate(lists):
        found[row, : len(ids)] = ids
    return found


@cache
def _is_flexible(key: ApiKey, version: int) -> bool:
    first = codec.flexible_from(f"{key.message}Response")
    return first is not None and version >= first
