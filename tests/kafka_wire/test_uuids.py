"""Ids as text, as Kafka's Uuid writes and reads them."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire.uuids import decode_uuid, encode_uuid


@given(st.uuids())
def test_an_id_is_read_as_it_is_written(value: uuid.UUID) -> None:
    """Kafka's Uuid.toString and Uuid.fromString."""
    assert decode_uuid(encode_uuid(value)) == value


@pytest.mark.parametrize(
    "text", ["", "x", "AAAA", "A" * 21, "A" * 21 + "!", "A" * 21 + "=", "A" * 23, "Ä" + "A" * 21, "A" * 44]
)
def test_another_text_is_no_id(text: str) -> None:
    """Too short, too long, other characters, padding at a wrong place."""
    with pytest.raises(ValueError, match="is not an id of 22 characters"):
        decode_uuid(text)
