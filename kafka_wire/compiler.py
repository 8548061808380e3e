"""Encoders and decoders for one version of one message, compiled at first use and kept.

The source is made from the schema tables alone (source_encoder.py, source_decoder.py): no byte of a peer and no word of a user
ever comes near `exec`. A compiled function that fails says only that it did; the plain twin (plain_encoder.py,
plain_decoder.py) then walks the same value again, slowly, to say which field and why.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kafka_wire import plain_decoder, plain_encoder, schema
from kafka_wire.failures import CodecError, TooManyElements
from kafka_wire.schema import Message
from kafka_wire.source_decoder import decoder_source
from kafka_wire.source_encoder import encoder_source

Encoder = Callable[[Mapping[str, Any]], bytes]
Decoder = Callable[[bytes, int], tuple[dict[str, Any], int]]

BoundedDecoder = Callable[[bytes, int, int], tuple[dict[str, Any], int]]

# The plain twin explains a malformed request up to this size: it is slow, and a peer chooses what it has to walk.
EXPLAINED_BYTES = 4_096

# What Python raises when generated code meets a value of the wrong type, a number out of range, or the end of the bytes.
_ENCODE_FAILURES = (struct.error, TypeError, AttributeError, ValueError, OverflowError, KeyError)
_DECODE_FAILURES = (struct.error, IndexError, ValueError)


@cache
def encoder(name: str, version: int) -> Encoder:
    """Return the encoder of one version; raises CodecError when the message or the version is unknown."""
    return encoder_of(schema.definition(name, version), version)


def encoder_of(definition: Message, version: int) -> Encoder:
    """Return the encoder of a definition, which may have some of a message's fields only."""
    name = definition.name
    fast = compiled(f"<encoder of {name} v{version}>", *encoder_source(definition, version))["encode"]

    def encode(body: Mapping[str, Any]) -> bytes:
        try:
            return fast(body)  # type: ignore[no-any-return]
        except _ENCODE_FAILURES as failure:
            plain_encoder.encode(definition, version, body)
            raise CodecError(f"cannot be encoded: {failure!r}", message=name, version=version) from failure

    return encode


@cache
def decoder(name: str, version: int) -> Decoder:
    """Return the decoder of one version: bytes and position to body and position after it; raises as encoder."""
    definition = schema.definition(name, version)
    fast = compiled(f"<decoder of {name} v{version}>", *decoder_source(definition, version))["decode"]

    def decode(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        try:
            return fast(data, position)  # type: ignore[no-any-return]
        except _DECODE_FAILURES as failure:
            plain_decoder.decode(definition, version, data, position)
            raise CodecError(f"cannot be decoded: {failure!r}", message=name, version=version) from failure

    return decode


@cache
def bounded_decoder(name: str, version: int) -> BoundedDecoder:
    """Return the bounded decoder of one version: bytes, position and units to body and position after it.

    Raises TooManyElements before it builds more than the units allow, else as encoder. See source_decoder.element_units.
    """
    definition = schema.definition(name, version)
    namespace = compiled(f"<bounded decoder of {name} v{version}>", *decoder_source(definition, version, bounded=True))
    fast, budget = namespace["decode"], namespace["budget"]

    def decode(data: bytes, position: int, units: int) -> tuple[dict[str, Any], int]:
        budget[0] = units
        try:
            return fast(data, position)  # type: ignore[no-any-return]
        except TooManyElements:
            raise TooManyElements(f"more than {units} units of elements", message=name, version=version) from None
        except _DECODE_FAILURES as failure:
            if len(data) <= EXPLAINED_BYTES:
                plain_decoder.decode(definition, version, data, position)
            raise CodecError(f"cannot be decoded: {failure!r}", message=name, version=version) from failure

    return decode


def compiled(title: str, source: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Run generated source in its namespace, and return that."""
    exec(compile(source, title, "exec"), namespace)  # noqa: S102 -- the source is made of our own tables
    return namespace
