"""Unknown tagged fields that are kept (KIP-482). The codec is the twin for messages without them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import codec, schema, unknown_tags
from kafka_wire.failures import CodecError
from tests.effort import examples
from tests.kafka_wire.bodies import bodies

RECORDS = sorted(message.name for message in schema.release_messages("4.3.1").values() if message.kind == "metadata")
CHANGE = "PartitionChangeRecord"
TAGS = st.dictionaries(st.integers(40, 70_000), st.binary(max_size=200), max_size=3).map(
    lambda found: tuple(sorted(found.items()))
)


@pytest.mark.parametrize("name", RECORDS)
@examples(5)
@given(data=st.data())
def test_a_message_is_read_as_by_the_codec_and_its_unknown_tags_are_kept(name: str, data: st.DataObject) -> None:
    """In every version."""
    for version in schema.known_versions(name).all():
        body: dict[str, Any] = data.draw(bodies(name, version))
        tags = data.draw(TAGS)
        plain = codec.encode(name, version, body)
        written = unknown_tags.encode(name, version, body, tags)

        assert unknown_tags.encode(name, version, body) == plain
        assert unknown_tags.decode(name, version, written) == (codec.decode(name, version, plain), tags)
        assert codec.decode(name, version, written) == codec.decode(name, version, plain)


def test_unknown_tags_are_in_the_order_of_their_numbers() -> None:
    """Among known ones: the leader has tag 1."""
    body = {"partition_id": 0, "topic_id": UUID(int=0), "leader": 3}
    written = unknown_tags.encode(CHANGE, 0, body, ((0x7F, b"x"), (0x80, b"")))

    assert written[20:] == b"\x03" + b"\x01\x04\x00\x00\x00\x03" + b"\x7f\x01x" + b"\x80\x01\x00"


def test_a_known_number_is_not_encoded_as_unknown() -> None:
    """It would be there twice."""
    with pytest.raises(CodecError, match="PartitionChangeRecord v0: tag 1 is not unknown"):
        unknown_tags.encode(CHANGE, 0, {"partition_id": 0}, ((1, b"x"),))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-1], "PartitionChangeRecord v0: leader: "),
        (lambda data: data + b"\0", "PartitionChangeRecord v0: 1 extra bytes after the message"),
        (lambda data: data.replace(b"\x01\x01\x04", b"\x01\x01\x03"), "PartitionChangeRecord v0: leader: "),
        (lambda data: data[:10], "PartitionChangeRecord v0: topic_id: needs 16 bytes, 6 are left"),
    ],
    ids=["short", "long", "size", "cut"],
)
def test_a_damaged_message_is_explained(damage: Any, reason: str) -> None:
    """As by the codec."""
    data = codec.encode(CHANGE, 0, {"partition_id": 0, "leader": 3})

    with pytest.raises(CodecError) as refused:
        unknown_tags.decode(CHANGE, 0, damage(data))
    assert str(refused.value).startswith(reason)
