"""What the decoders into columns share: a walk over flexible messages (KIP-482) that takes no more than what is usual.

A broker's answer about 200,000 partitions would be millions of Python objects as dicts. The decoders beside this module
(metadata_columns, offset_columns, log_dir_columns) pass over the bytes, and have numpy read what has a fixed layout. What
is unusual (a tagged field, a null, a version of before KIP-482, a malformed message) ends in `Unusual`: the codec then reads
the whole message, or says what is wrong with it. So the codec is the plain twin of every one of them, and the tests hold
them to it.

Leaves out which message has which fields: each decoder knows its own, and `has_fields` holds it to the schema.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kafka_wire import codec, schema
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.failures import CodecError
from kafka_wire.plain_encoder import MAX_STRING_BYTES
from kafka_wire.varints import read_uvarint

IntColumn = npt.NDArray[np.int32]
LongColumn = npt.NDArray[np.int64]

NOBODY = -1
"""Pads lists of broker ids on the right."""
MAX_PLAIN_BYTES = 4 * 1024 * 1024
"""What is read by the codec may take 120 times its bytes in memory; usual answers, however large, never come to this."""
HEADER_BYTES = 5
"""Of a flexible response: the correlation id, and a count of tagged fields, which is 0."""

_OF_BEFORE = b"\1" * HEADER_BYTES
"""Stands for a header of before KIP-482: never what is read directly."""
_T = TypeVar("_T")


class Unusual(Exception):  # noqa: N818 -- never seen outside this package: the codec is asked then
    """The message has something in it that is not read into columns directly."""


def decode_columns(
    key: ApiKey,
    version: int,
    frame: bytes,
    directly: Callable[[int, bytes], _T],
    plainly: Callable[[Body], _T],
) -> _T:
    """Decode a whole response (without its size), directly where that can be. Raises CodecError."""
    try:
        no_tags(frame if _is_flexible(key, version) else _OF_BEFORE, HEADER_BYTES - 1)
        return directly(version, frame)
    except (Unusual, IndexError, UnicodeDecodeError, CodecError):
        if len(frame) > MAX_PLAIN_BYTES:
            reason = f"{len(frame)} bytes in an unusual form; at most {MAX_PLAIN_BYTES} are read so"
            raise CodecError(reason, message=f"{key.message}Response", version=version) from None
    return plainly(codec.decode_response(key, version, frame)[1])


@cache
def has_fields(message: str, version: int, *path: str) -> tuple[str, ...]:
    """List the fields that a version has, in order, of a message or of the struct at `path` in it."""
    fields = schema.definition(message, version).fields
    for name in path:
        (fields,) = (one.fields for one in fields if one.key == name)
    return tuple(one.key for one in fields if version in one.versions)


def count_at(data: bytes, position: int) -> tuple[int, int]:
    """Read the count of an array; returns it and the position behind it."""
    count, position = read_uvarint(data, position)
    if count == 0 or count > len(data):  # null, or more elements than there are bytes
        raise Unusual
    return count - 1, position


def string_end(data: bytes, position: int) -> tuple[int, int]:
    """Return where a string's text begins and where it ends."""
    size, position = read_uvarint(data, position)
    end = position + size - 1
    if not 0 < size <= MAX_STRING_BYTES + 1 or end > len(data):
        raise Unusual
    return position, end


def string_at(data: bytes, position: int) -> tuple[str, int]:
    """Read a string that is not null; returns it and the position behind it."""
    position, end = string_end(data, position)
    return data[position:end].decode(), end


def nullable_string_at(data: bytes, position: int) -> tuple[str | None, int]:
    """Read a string or null; returns it and the position behind it."""
    return (None, position + 1) if data[position] == 0 else string_at(data, position)


def int_at(data: bytes, position: int, size: int) -> int:
    """Read a signed number of that many bytes."""
    if position + size > len(data):
        raise Unusual
    return int.from_bytes(data[position : position + size], "big", signed=True)


def no_tags(data: bytes, position: int) -> int:
    """Return the position behind a count of tagged fields that is 0."""
    if data[position]:
        raise Unusual
    return position + 1


def expect_end(data: bytes, position: int) -> None:
    """Have the message end here."""
    if position != len(data):
        raise Unusual


def fixed(parts: list[bytes], layout: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Read structs of one fixed layout that lie in pieces, which are used up.

    Each struct ends in a count of tagged fields, which must be 0.
    """
    found = np.frombuffer(b"".join(parts), layout)
    parts.clear()
    if found["tags"].any():
        raise Unusual
    return found


def topics_at(
    data: bytes, position: int, layout: np.dtype[np.void], names: list[str], rows: list[int], parts: list[bytes]
) -> int:
    """Read an array of topics: names, how many structs of one fixed layout follow each, and these as bytes for `fixed`.

    What is found goes to the ends of the three lists; returns the position behind the array.
    """
    count, position = count_at(data, position)
    for _ in range(count):
        name, position = string_at(data, position)
        structs, position = count_at(data, position)
        end = position + structs * layout.itemsize
        if end > len(data):
            raise Unusual
        names.append(name)
        rows.append(structs)
        parts.append(data[position:end])
        position = no_tags(data, end)
    return position


def padded(lists: Sequence[Sequence[int]]) -> IntColumn:
    """Return lists of broker ids as one array of shape (n, longest).

    >>> padded([[1, 2], [3]]).tolist()
    [[1, 2], [3, -1]]
    """
    found = np.full((len(lists), max(map(len, lists), default=0)), NOBODY, np.int32)
    for row, ids in enumerate(lists):
        found[row, : len(ids)] = ids
    return found


@cache
def _is_flexible(key: ApiKey, version: int) -> bool:
    first = codec.flexible_from(f"{key.message}Response")
    return first is not None and version >= first
