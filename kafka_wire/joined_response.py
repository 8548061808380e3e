"""Encoder of a response whose main array arrives in parts: each part is encoded separately, and the bytes are joined.

A large response is never held as Python objects as a whole. slices.py splits the requests.
"""

import struct
from dataclasses import replace
from functools import cache

from kafka_wire import codec, schema
from kafka_wire.api import ApiKey, Body
from kafka_wire.compiler import Encoder, encoder_of
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.failures import CodecError
from kafka_wire.schema import Field
from kafka_wire.varints import read_uvarint, write_uvarint

_COUNT = struct.Struct(">i")


class JoinedResponse:
    """One response joined from parts. `field` is the main array; all other fields are those of the last part."""

    def __init__(self, key: ApiKey, version: int, correlation_id: int, field: str) -> None:
        self._field = field
        self._before, self._array, self._after = _parts(key.message + "Response", version, field)
        self._flexible = codec.is_flexible_response(key, version)
        self._header = codec.response_header(key, version, correlation_id)
        self._around = b"", b""
        self._elements: list[bytes | memoryview] = []
        self._count = 0

    def add(self, body: Body | EncodedBody) -> None:
        """Add a part, and encode it if it is not encoded. Raises CodecError as codec.encode_response."""
        if isinstance(body, EncodedBody):
            self._add_encoded(body)
            return
        before, after = self._before[1], self._after[1]
        if unknown := body.keys() - before - after - {self._field}:
            raise CodecError(f"unknown keys {sorted(unknown)}")
        head = self._before[0]({key: value for key, value in body.items() if key in before})
        tail = self._after[0]({key: value for key, value in body.items() if key in after})
        # Each part of a flexible message ends with the count of its tagged fields: only the last one is sent.
        self._around = head[:-1] if self._flexible else head, tail
        array = self._array[0]({self._field: body[self._field]})
        begin = read_uvarint(array, 0)[1] if self._flexible else _COUNT.size
        self._elements.append(memoryview(array)[begin : len(array) - self._flexible])
        self._count += len(body[self._field])

    def _add_encoded(self, body: EncodedBody) -> None:
        place = body.array
        if place is None:
            raise CodecError("an encoded part has no array position")
        pieces = [memoryview(piece) for piece in body.pieces]
        end = len(pieces[-1]) - place.trailing_bytes
        self._around = bytes(pieces[0][: place.count_offset]), bytes(pieces[-1][end:])
        pieces[-1] = pieces[-1][:end]
        pieces[0] = pieces[0][place.elements_offset :]
        self._elements += pieces
        self._count += place.count

    def finish(self) -> bytes:
        """Return the response frame, without its size."""
        count = write_uvarint(self._count + 1) if self._flexible else _COUNT.pack(self._count)
        return b"".join((self._header, self._around[0], count, *self._elements, self._around[1]))


_Part = tuple[Encoder, frozenset[str]]


@cache
def _parts(name: str, version: int, field: str) -> tuple[_Part, _Part, _Part]:
    """Return the encoders of the fields before the array, of the array, and of the fields after it, with their keys."""
    fields = schema.definition(name, version).fields
    (index,) = (index for index, other in enumerate(fields) if other.key == field)
    before = tuple(other for other in fields[:index] if other.tag is None)
    after = (*(other for other in fields[:index] if other.tag is not None), *fields[index + 1 :])
    return _part(name, version, before), _part(name, version, (fields[index],)), _part(name, version, after)


def _part(name: str, version: int, fields: tuple[Field, ...]) -> _Part:
    definition = replace(schema.definition(name, version), fields=fields)
    return encoder_of(definition, version), frozenset(field.key for field in fields)
