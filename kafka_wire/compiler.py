"""Encoders and decoders for one version of one message, made at first use and kept."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from kafka_wire import plain_decoder, plain_encoder, schema


@cache
def encoder(name: str, version: int) -> Callable[[Mapping[str, Any]], bytes]:
    """Return the encoder of one version; raises CodecError when the message or the version is unknown."""
    return partial(plain_encoder.encode, schema.definition(name, version), version)


@cache
def decoder(name: str, version: int) -> Callable[[bytes, int], tuple[dict[str, Any], int]]:
    """Return the decoder of one version: bytes and position to body and position after it; raises as encoder."""
    return partial(plain_decoder.decode, schema.definition(name, version), version)
