"""Round trips of every version of every message, with equal results of both codecs."""

import pytest

from kafka_wire import codec, compiler, plain_decoder, plain_encoder, schema
from tests.kafka_wire.bodies import UNLIMITED, Body, complete, for_bodies, messages_of_apis, versions_of


@pytest.mark.parametrize("api", messages_of_apis())
def test_encoded_bodies_are_decoded_again(api: str) -> None:
    """The decoded body also has the defaults of missing fields; the plain codec writes and reads the same bytes."""
    for name in messages_of_apis()[api]:
        for version in versions_of(name):
            for_bodies(name, version, check_both_codecs)


def check_both_codecs(name: str, version: int, body: Body) -> None:
    """Encode and decode with each, which must produce the same bytes; the decoder of views the same body."""
    definition = schema.definition(name, version)
    encoded = codec.encode(name, version, body)
    expected = complete(definition.fields, version, body)

    assert codec.decode(name, version, encoded) == expected
    assert compiler.bounded_decoder(name, version, views=True)(memoryview(encoded), 0, UNLIMITED) == (
        expected,
        len(encoded),
    )
    assert plain_decoder.decode(definition, version, encoded) == (expected, len(encoded))
    assert encoded == plain_encoder.encode(definition, version, body)
    assert encoded == codec.encode(name, version, expected)
