"""Decoding and encoding that keep unknown tagged fields of a message (KIP-482).

The codec skips them, which is right for a request. A metadata record is written again in a snapshot, where a skipped field would be lost, so
both the bytes and the numbers of such fields are kept here. Only tags of the message itself are kept: one in a struct within it raises
CodecError. Source: `_unknownTaggedFields` of Kafka's generated messages.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from kafka_wire import compiler, plain_decoder, schema
from kafka_wire.api import Body
from kafka_wire.failures import CodecError
from kafka_wire.runtime import encode_tags
from kafka_wire.schema import Field, Message
from kafka_wire.source_decoder import Module
from kafka_wire.varints import read_uvarint

UnknownTags = tuple[tuple[int, bytes], ...]
"""Numbers and contents of tagged fields, in the order of the numbers."""

_Read = Callable[[bytes, int, int], tuple[list[dict[str, Any]], int]]


class _Decoder(NamedTuple):
    """Parts of a decoder of one version: the fields without tags, the tagged ones by number, and defaults of the rest."""

    definition: Message
    read_untagged: _Read
    tagged: dict[int, tuple[Field, _Read]]
    defaulted: tuple[Field, ...]


def decode(name: str, version: int, data: bytes, position: int = 0) -> tuple[Body, UnknownTags]:
    """Decode a message that ends with `data`; returns it and its unknown tagged fields. Raises CodecError."""
    decoder = _decoder(name, version)
    try:
        (body,), end = decoder.read_untagged(data, position, 1)
        for field in decoder.defaulted:
            body[field.key] = plain_decoder.fresh_default(field)
        unknown, end = _read_tags(decoder, body, data, end) if data[end] else ((), end + 1)
    except compiler.DECODE_FAILURES as failure:
        plain_decoder.decode(decoder.definition, version, data, position)
        reason = failure.reason if isinstance(failure, CodecError) else f"cannot be decoded: {failure!r}"
        raise CodecError(reason, message=name, version=version) from failure
    if end != len(data):
        raise CodecError(f"{len(data) - end} extra bytes after the message", message=name, version=version)
    return body, unknown


def encode(name: str, version: int, body: Mapping[str, Any], unknown: UnknownTags = ()) -> bytes:
    """Encode a message with unknown tagged fields. Raises CodecError, also for a number that the version knows."""
    encoded = compiler.encoder(name, version)(body)
    if not unknown:
        return encoded
    decoder = _decoder(name, version)
    known = decoder.tagged.keys() & {number for number, _ in unknown}
    if known:
        raise CodecError(f"tag {min(known)} is not unknown", message=name, version=version)
    _, end = decoder.read_untagged(encoded, 0, 1)
    tags = [(number, content) for number, content, _ in _tags_at(encoded, end)[0]]
    return encoded[:end] + encode_tags(sorted([*tags, *unknown]))


def _tags_at(data: bytes, position: int) -> tuple[list[tuple[int, bytes, int]], int]:
    """Return the number, content and position of each tagged field, and the position after them. Raises CodecError, IndexError."""
    count, position = read_uvarint(data, position)
    found = []
    for _ in range(count):
        number, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        if position + size > len(data):
            raise CodecError(f"tag {number} needs {size} bytes, {len(data) - position} are left")
        found.append((number, data[position : position + size], position))
        position += size
    return found, position


def _read_tags(decoder: _Decoder, body: Body, data: bytes, position: int) -> tuple[UnknownTags, int]:
    found, end = _tags_at(data, position)
    unknown: list[tuple[int, bytes]] = []
    for number, content, start in found:
        if number not in decoder.tagged:
            unknown.append((number, content))
            continue
        field, read = decoder.tagged[number]
        (value,), used = read(data, start, 1)
        if used != start + len(content):
            raise CodecError(f"tag {number} has {len(content)} bytes, but its value has {used - start}")
        body[field.key] = value[field.key]
    return tuple(unknown), end


@cache
def _decoder(name: str, version: int) -> _Decoder:
    definition = schema.definition(name, version)
    assert version in definition.flexible, f"{name} {version} is not flexible (KIP-482)"
    here = [field for field in definition.fields if version in field.versions]
    untagged = tuple(field for field in here if field.tag is None)
    tagged = {field.tag: field for field in here if field.tag is not None}
    return _Decoder(
        definition,
        _reader(definition, version, untagged),
        {
            number: (field, _reader(definition, version, (replace(field, tag=None),)))
            for number, field in tagged.items()
        },
        tuple(field for field in definition.fields if field not in untagged),
    )


def _reader(definition: Message, version: int, fields: tuple[Field, ...]) -> _Read:
    """Return the generated reader of some fields of a message, which no tagged fields follow."""
    module = Module(version, flexible=True)
    root = module.add_struct(fields, ends=False)
    module.namespace["skip_tags"] = _refuse_tags
    title = f"<reader of {definition.name} v{version}>"
    read: _Read = compiler.compiled(title, "\n\n".join(module.functions), module.namespace)[f"read_{root}"]
    return read


def _refuse_tags(data: bytes, position: int) -> int:
    (number, *_), *_ = _tags_at(data, position)[0]
    raise CodecError(f"unknown tag {number} in a struct")
