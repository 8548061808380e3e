"""Compiled encoders and decoders, one for each version of a message, generated at first use and cached.

The source is generated from the schema tables only (source_encoder.py, source_decoder.py): no input from peers or users reaches
`exec`. When a compiled function fails, the interpreting one (plain_encoder.py, plain_decoder.py) processes the same value again,
slowly, and reports the field and the reason.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from kafka_wire import plain_decoder, plain_encoder, schema
from kafka_wire.failures import CodecError, TooManyElements
from kafka_wire.schema import Message
from kafka_wire.source_decoder import decoder_source
from kafka_wire.source_encoder import encoder_source

Encoder = Callable[[Mapping[str, Any]], bytes]
Encoded = TypeVar("Encoded")
PiecesEncoder = Callable[[Mapping[str, Any]], list[Any]]
Decoder = Callable[[bytes, int], tuple[dict[str, Any], int]]
BoundedDecoder = Callable[[bytes | memoryview, int, int], tuple[dict[str, Any], int]]

EXPLAINED_BYTES = 4_096
"""Largest malformed request whose error is explained: the plain decoder is slow, and the peer chooses its input."""

_ENCODE_FAILURES = (struct.error, TypeError, AttributeError, ValueError, OverflowError, KeyError)
"""Raised by generated encoders for a value of the wrong type or a number out of range."""
DECODE_FAILURES = (struct.error, IndexError, ValueError)
"""Raised by fast decoders at the end of the bytes or for an invalid value."""


@cache
def encoder(name: str, version: int) -> Encoder:
    """Return the encoder of one version; raises CodecError for an unknown message or version."""
    return encoder_of(schema.definition(name, version), version)


def encoder_of(definition: Message, version: int) -> Encoder:
    """Return the encoder of a definition, which may have only some fields of a message."""
    space = compiled(f"<encoder of {definition.name} v{version}>", *encoder_source(definition, version))
    return _explaining(space["encode"], definition, version)


@cache
def pieces_encoder(name: str, version: int) -> PiecesEncoder:
    """Return an encoder to pieces that are not joined: values of byte fields are pieces unchanged, and only need a length."""
    definition = schema.definition(name, version)
    space = compiled(f"<pieces encoder of {name} v{version}>", *encoder_source(definition, version))
    return _explaining(space["encode_pieces"], definition, version)


def _explaining(
    fast: Callable[[Mapping[str, Any]], Encoded], definition: Message, version: int
) -> Callable[[Mapping[str, Any]], Encoded]:
    """Return an encoder whose failures are explained by the plain encoder."""

    def encode(body: Mapping[str, Any]) -> Encoded:
        try:
            return fast(body)
        except _ENCODE_FAILURES as failure:
            plain_encoder.encode(definition, version, body)
            raise CodecError(f"cannot be encoded: {failure!r}", message=definition.name, version=version) from failure

    return encode


@cache
def decoder(name: str, version: int) -> Decoder:
    """Return the decoder of one version: (bytes, position) to (body, position after it). Raises the errors of `encoder`."""
    definition = schema.definition(name, version)
    fast = compiled(f"<decoder of {name} v{version}>", *decoder_source(definition, version))["decode"]

    def decode(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        try:
            return fast(data, position)  # type: ignore[no-any-return]
        except DECODE_FAILURES as failure:
            plain_decoder.decode(definition, version, data, position)
            raise CodecError(f"cannot be decoded: {failure!r}", message=name, version=version) from failure

    return decode


@cache
def bounded_decoder(name: str, version: int, *, views: bool = False) -> BoundedDecoder:
    """Return the bounded decoder of one version: (bytes, position, units) to (body, position after it).

    The decoder raises TooManyElements before it exceeds the units (source_decoder.element_units). With `views` it takes a memoryview. Raises
    the errors of `encoder`.
    """
    definition = schema.definition(name, version)
    title = f"<bounded decoder of {name} v{version}>"
    namespace = compiled(title, *decoder_source(definition, version, bounded=True, views=views))
    fast, budget = namespace["decode"], namespace["budget"]

    def decode(data: bytes | memoryview, position: int, units: int) -> tuple[dict[str, Any], int]:
        budget[0] = units
        try:
            return fast(data, position)  # type: ignore[no-any-return]
        except TooManyElements:
            reason = f"its elements cost more than the limit of {units} units"
            raise TooManyElements(reason, message=name, version=version) from None
        except DECODE_FAILURES as failure:
            raise malformed(definition, version, data, position, failure) from failure

    return decode


def malformed(
    definition: Message, version: int, data: bytes | memoryview, position: int, failure: Exception
) -> CodecError:
    """Return the error of a message that a fast decoder could not decode; for a short message, the plain decoder's."""
    if len(data) <= EXPLAINED_BYTES:
        try:
            plain_decoder.decode(definition, version, bytes(data), position)
        except CodecError as error:
            return error
    return CodecError(f"cannot be decoded: {failure!r}", message=definition.name, version=version)


def compiled(title: str, source: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Execute generated source in its namespace, and return the namespace."""
    exec(compile(source, title, "exec"), namespace)  # noqa: S102 -- the source is generated from the schema tables
    return namespace
