"""Every version of every message comes back as it went, and the two engines agree on it."""

import pytest

from kafka_wire import codec, plain_decoder, plain_encoder, schema
from tests.kafka_wire.bodies import Body, complete, for_bodies, messages_of_apis, versions_of


@pytest.mark.parametrize("api", messages_of_apis())
def test_what_is_encoded_is_decoded_again(api: str) -> None:
    """A body comes back with the defaults of the fields that it left out; the plain twins make and read the same bytes."""
    for name in messages_of_apis()[api]:
        for version in versions_of(name):
            for_bodies(name, version, come_back_from_both_engines)


def come_back_from_both_engines(name: str, version: int, body: Body) -> None:
    """Encode and decode with each, and hold them to the same bytes."""
    definition = schema.definition(name, version)
    encoded = codec.encode(name, version, body)
    expected = complete(definition.fields, version, body)

    assert codec.decode(name, version, encoded) == expected
    assert plain_decoder.decode(definition, version, encoded) == (expected, len(encoded))
    assert encoded == plain_encoder.encode(definition, version, body)
    assert encoded == codec.encode(name, version, expected)
