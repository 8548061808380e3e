"""Decoding any bytes of a znode returns a value or raises FormatError."""

import contextlib
import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_zookeeper import formats
from kafka_zookeeper.formats import FormatError
from tests.effort import examples
from tests.kafka_zookeeper.test_golden_formats import GOLDEN

DECODERS = {
    "controller": formats.decode_controller,
    "controller id": formats.controller_id,
    "controller epoch": formats.decode_controller_epoch,
    "broker": partial(formats.decode_broker, 1),
    "topic": partial(formats.decode_topic, "t"),
    "state": partial(formats.decode_partition_state, "/p"),
    "config": partial(formats.decode_config, "/c"),
    "config change": partial(formats.decode_config_change, "n"),
    "ACLs": partial(formats.decode_acls, "/a"),
    "ACL change": partial(formats.decode_acl_change, "n"),
    "extended ACL change": partial(formats.decode_extended_acl_change, "n"),
    "reassignment": formats.decode_reassignment,
    "election": formats.decode_preferred_replica_election,
    "isr change": partial(formats.decode_isr_change, "n"),
    "log dir": partial(formats.decode_log_dir_event, "n"),
    "producer ids": formats.decode_producer_id_block,
    "features": formats.decode_features,
    "cluster id": formats.decode_cluster_id,
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["0", "1", "-1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


def _replace(document: object, steps: list[int], value: object) -> object:
    """Replace a part of a JSON value; `steps` is the path."""
    if isinstance(document, dict) and document and steps:
        key = list(document)[steps[0] % len(document)]
        return {**document, key: _replace(document[key], steps[1:], value)}
    if isinstance(document, list) and document and steps:
        place = steps[0] % len(document)
        return [*document[:place], _replace(document[place], steps[1:], value), *document[place + 1 :]]
    return value


@pytest.mark.parametrize("name", DECODERS)
@examples(20)
@given(data=st.none() | st.binary(max_size=64) | JSON.map(lambda value: json.dumps(value).encode()))
def test_garbage_is_a_format_error(name: str, data: bytes | None):
    """Random bytes, and random JSON."""
    with contextlib.suppress(FormatError):
        DECODERS[name](data)


@pytest.mark.parametrize("row", [row for row in GOLDEN if row[-1][0] in "{0123456789"], ids=lambda row: row[0])
@examples(20)
@given(steps=st.lists(st.integers(0, 20), min_size=1, max_size=4), value=JSON)
def test_a_document_with_one_replaced_part_is_a_format_error_or_an_encodable_value(
    row: tuple[object, ...], steps: list[int], value: object
):
    """A decoded value can be encoded, and is then decoded as the same value."""
    _, encode, decode, _, document = row
    broken = json.dumps(_replace(json.loads(str(document)), steps, value)).encode()

    with contextlib.suppress(FormatError):
        found = decode(broken)
        if getattr(found, "version", 2) in {2, 3, 4, 5}:
            str(found).encode("utf-8")
            again = encode(found)
            assert again == encode(decode(again))


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row[0])
@examples(20)
@given(place=st.integers(0, 400), byte=st.integers(0, 255))
def test_one_wrong_byte_is_a_format_error_or_another_value(row: tuple[object, ...], place: int, byte: int):
    """A damaged or changed document."""
    _, _, decode, _, document = row
    data = bytearray(str(document).encode())
    data[place % len(data)] = byte

    with contextlib.suppress(FormatError):
        decode(bytes(data))
