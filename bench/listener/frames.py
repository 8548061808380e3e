"""Hostile request frames of any API, built from the schema tables: one array filled with its smallest possible elements."""

import struct
from collections.abc import Iterator, Sequence

from kafka_wire import ApiKey, schema
from kafka_wire.compiler import bounded_decoder
from kafka_wire.failures import CodecError
from kafka_wire.plain_encoder import FIXED_FORMATS
from kafka_wire.schema import Field
from kafka_wire.varints import write_uvarint

CLIENT_ID = b"bench"
SEARCH_STEP_BYTES = 64

Path = tuple[str, ...]


def versions(key: ApiKey) -> Sequence[int]:
    """Return the lowest and the highest version of an API; none where the tables have no request of it."""
    try:
        lowest, highest = schema.known_versions(key.message + "Request")
    except CodecError:
        return ()
    return sorted({lowest, highest})


def arrays(key: ApiKey, version: int) -> list[Path]:
    """List the arrays of a request, nested ones by their path."""
    return list(_arrays(schema.definition(key.message + "Request", version).fields, version))


def _arrays(fields: Sequence[Field], version: int, way: Path = ()) -> Iterator[Path]:
    for field in fields:
        if version in field.versions and field.tag is None and field.is_array:
            yield (*way, field.key)
            yield from _arrays(field.fields, version, (*way, field.key))


def frame(key: ApiKey, version: int, array: Path, size: int, most: int | None = None) -> bytes:
    """Return a frame of about `size` bytes: its array holds as many smallest elements as fit, at most so many."""
    head = header(key, version)
    body = _fields(schema.definition(key.message + "Request", version).fields, key, version, array, size, most)
    return head + body


def padded(key: ApiKey, version: int, size: int) -> bytes:
    """Return a frame of an API without arrays: the smallest request, and zeros after it."""
    definition = schema.definition(key.message + "Request", version)
    smallest = header(key, version) + _fields(definition.fields, key, version, (), 0, None)
    return smallest + bytes(max(0, size - len(smallest)))


def largest_decoded(key: ApiKey, version: int, array: Path, size: int, units: int) -> bytes:
    """Return the largest frame up to `size` whose body may still be decoded at a cost of `units`."""
    lowest, highest, offset = 0, size, len(header(key, version))
    decode = bounded_decoder(key.message + "Request", version)
    while highest - lowest > SEARCH_STEP_BYTES:
        middle = (lowest + highest) // 2
        try:
            decode(frame(key, version, array, middle), offset, units)
            lowest = middle
        except CodecError:
            highest = middle
    return frame(key, version, array, lowest)


def header(key: ApiKey, version: int) -> bytes:
    """Return a request's header."""
    start = struct.pack(">hhi", key, version, 1)
    if key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return start
    return start + struct.pack(">h", len(CLIENT_ID)) + CLIENT_ID + (b"\0" if _is_flexible(key, version) else b"")


def _is_flexible(key: ApiKey, version: int) -> bool:
    return version in schema.definition(key.message + "Request", version).flexible


def _fields(fields: Sequence[Field], key: ApiKey, version: int, array: Path, size: int, most: int | None) -> bytes:
    flexible = _is_flexible(key, version)
    parts = []
    for field in fields:
        if version not in field.versions or field.tag is not None:
            continue
        if not array or field.key != array[0]:
            parts.append(_smallest(field, version, flexible))
        elif len(array) > 1:
            parts.append(_count(1, flexible) + _fields(field.fields, key, version, array[1:], size, most))
        else:
            element = _smallest(field.elements(), version, flexible)
            count = max(1, size // len(element))
            count = count if most is None else min(count, most)
            parts.append(_count(count, flexible) + element * count)
    return b"".join(parts) + (b"\0" if flexible else b"")


def _count(count: int, flexible: bool) -> bytes:
    return write_uvarint(count + 1) if flexible else struct.pack(">i", count)


def _smallest(field: Field, version: int, flexible: bool) -> bytes:
    if field.is_array:
        return _count(0, flexible)
    if field.kind == "struct":
        if version in field.nullable:
            return b"\xff"
        inner = (candidate for candidate in field.fields if version in candidate.versions and candidate.tag is None)
        return b"".join(_smallest(candidate, version, flexible) for candidate in inner) + (b"\0" if flexible else b"")
    if field.kind in FIXED_FORMATS:
        return bytes(struct.calcsize(">" + FIXED_FORMATS[field.kind]))
    if field.kind == "uuid":
        return bytes(16)
    if flexible and not field.never_flexible:
        return b"\2a" if field.kind == "string" else b"\1"
    return b"\0\1a" if field.kind == "string" else bytes(4)
