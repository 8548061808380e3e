"""Invalid bytes from hostile or faulty peers: both decoders raise a CodecError."""

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import ApiKey, codec, compiler, plain_decoder, schema
from kafka_wire.codec import CodecError
from tests.effort import examples
from tests.kafka_wire.bodies import UNLIMITED, Body, for_bodies, messages_of_apis, versions_of

# Lengths and counts that an attacker would choose: the largest, the smallest, an endless one.
NASTY = [
    bytes.fromhex(digits) for digits in ("7fffffff", "80000000", "ffffffff0f", "ffffffffff", "7fff", "8000", "ff", "00")
]

MUTATIONS = 8
"""Mutants of each body, from a random generator that is seeded with the body's bytes."""


@pytest.mark.parametrize("api", messages_of_apis())
def test_both_decoders_agree_on_mutated_messages(api: str) -> None:
    """Changed, truncated, extended or with an extreme length: both raise CodecError or return the same body."""
    for name in messages_of_apis()[api]:
        for version in versions_of(name):
            for_bodies(name, version, check_mutants)


def check_mutants(name: str, version: int, body: Body) -> None:
    """Compare both decoders on several mutants of a body."""
    encoded = codec.encode(name, version, body)
    chance = random.Random(encoded)
    for _ in range(MUTATIONS):
        mutant = mutated(encoded, chance)
        both(name, version, mutant)


def both(name: str, version: int, data: bytes) -> None:
    """Decode with both decoders, and as a view: all must return the same body or raise an error."""
    definition = schema.definition(name, version)
    try:
        expected, end = plain_decoder.decode(definition, version, data)
    except CodecError:
        end = -1
    if end == len(data):
        assert repr(expected) == repr(codec.decode(name, version, data))  # repr: a NaN is not equal to itself
        return
    if end == -1:
        with pytest.raises(CodecError) as refusal:
            compiler.bounded_decoder(name, version, views=True)(memoryview(data), 0, UNLIMITED)
        assert "cannot be decoded" not in refusal.value.reason
    with pytest.raises(CodecError) as refusal:
        codec.decode(name, version, data)
    assert (name, version) == (refusal.value.message, refusal.value.version)
    assert "cannot be decoded" not in refusal.value.reason  # the plain decoder found the reason


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with one mutation."""
    at = chance.randrange(len(data) + 1)
    nasty = chance.choice(NASTY)
    return chance.choice(
        [
            data[:at],
            data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :],
            data[:at] + nasty + data[at + len(nasty) :],
            data[:at] + nasty + data[at:],
            data + nasty,
        ]
    )


@examples(300)
@given(st.sampled_from(schema.names()), st.data(), st.binary(max_size=60))
def test_both_decoders_agree_on_random_bytes(name: str, data: st.DataObject, garbage: bytes) -> None:
    """Bytes that were never a message."""
    both(name, data.draw(st.sampled_from(versions_of(name))), garbage)


@examples(300)
@given(st.binary(max_size=60))
def test_only_codec_errors_escape_from_frames(garbage: bytes) -> None:
    """The server decodes any frame with any API key."""
    for decode in (codec.peek_header, codec.decode_request):
        try:
            decode(garbage)
        except CodecError:
            continue


@pytest.mark.parametrize(
    ("name", "version", "data"),
    [
        ("LeaderAndIsrRequest", 1, "000003e8 00000002 7fffffff"),
        ("LeaderAndIsrRequest", 7, "000003e8 00 00000002 0000000000000009 00 ffffffff0f"),
        ("StopReplicaRequest", 0, "000003e8 00000002 00 7fffffff"),
        ("DeleteTopicsRequest", 1, "7fffffff"),
        ("ElectLeadersRequest", 1, "00 00000001 0001 74 7fffffff"),
        ("SaslAuthenticateRequest", 0, "7fffffff"),
        ("ProduceRequest", 3, "ffff 0001 00000000 00000001 0001 74 00000001 00000000 7fffffff"),
        ("MetadataRequest", 12, "ffffffff0f"),
        ("FetchRequest", 17, "00000000" * 8 + "01 01 01  7f 00 ffffffff0f"),
    ],
)
def test_no_memory_is_allocated_for_an_announced_count(name: str, version: int, data: str) -> None:
    """Rejecting two billion announced elements in a few bytes takes no memory."""
    raw = bytes.fromhex(data)
    with pytest.raises(CodecError):
        codec.decode(name, version, raw)  # compiles the decoder, so that only the decoding is measured

    tracemalloc.start()
    with pytest.raises(CodecError):
        codec.decode(name, version, raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1_000_000


def test_a_request_over_the_limit_is_not_decoded() -> None:
    """Two hundred thousand empty assignments are 400 kB on the wire and a hundred times that in memory."""
    body: Body = {"topics": [{"assignments": [{}] * 200_000}]}
    frame = codec.encode_request(ApiKey.CREATE_PARTITIONS, 3, 1, None, body)

    with pytest.raises(CodecError, match="exceeds the limit of 100000"):
        codec.decode_request(frame, max_bytes=100_000)


def test_the_error_contains_the_field() -> None:
    """The path of the first invalid field."""
    whole = codec.encode("LeaderAndIsrRequest", 7, {"topic_states": [{"topic_name": "t" * 40}]})

    with pytest.raises(CodecError) as refusal:
        codec.decode("LeaderAndIsrRequest", 7, whole[:50])
    assert str(refusal.value) == "LeaderAndIsrRequest v7: topic_states[0].topic_name: needs 40 bytes, 30 are left"
    with pytest.raises(CodecError, match="LeaderAndIsrRequest v7: 3 extra bytes after the message"):
        codec.decode("LeaderAndIsrRequest", 7, whole + b"abc")


def test_unknown_tags_are_skipped_and_their_lengths_checked() -> None:
    """KIP-482: a newer peer may add tagged fields to any struct of a flexible version."""
    whole = codec.encode("ApiVersionsRequest", 3, {})
    tagged = whole[:-1] + bytes.fromhex("02  05 03 616263  8001 00")

    assert codec.decode("ApiVersionsRequest", 3, whole) == codec.decode("ApiVersionsRequest", 3, tagged)
    with pytest.raises(CodecError, match="tag 5"):
        codec.decode("ApiVersionsRequest", 3, whole[:-1] + bytes.fromhex("01 05 04 616263"))


def test_a_known_tag_must_have_its_length() -> None:
    """Otherwise the next field or the value itself would be read from wrong bytes."""
    whole = codec.encode("ApiVersionsResponse", 3, {"finalized_features_epoch": 3})
    assert "01 01 08 0000000000000003".replace(" ", "") == whole[-11:].hex()

    for wrong in ("01 01 07 0000000000000003", "01 01 09 0000000000000003 00"):
        with pytest.raises(CodecError, match="finalized_features_epoch: tag 1 has"):
            codec.decode("ApiVersionsResponse", 3, whole[:-11] + bytes.fromhex(wrong))
