"""Bytes of metadata records. Sources: AbstractApiMessageSerde, MetadataRecordSerde and MetadataVersion of Kafka 4.3.1."""

from __future__ import annotations

import dataclasses
import uuid

import pytest
from hypothesis import given

from kafka_metadata import records
from kafka_metadata.failures import MetadataError
from kafka_metadata.record_codec import decode_record, encode_record, record_frame
from kafka_metadata.records import RECORD_CLASSES, MetadataRecord
from kafka_wire import schema
from tests.effort import examples
from tests.kafka_metadata.record_values import metadata_version_of, record_logs

TOPIC_ID = uuid.UUID(int=7)
TOPIC = records.TopicRecord("topic", TOPIC_ID)
BROKER = records.RegisterBrokerRecord(1, uuid.UUID(int=2), 3, (records.EndPoint("PLAINTEXT", "host", 9092, 0),))
OFFSET = 42


def refusal(value: bytes) -> str:
    """Return why a value is refused at OFFSET."""
    with pytest.raises(MetadataError) as refused:
        decode_record(value, OFFSET)
    return str(refused.value)


def test_there_is_a_class_for_each_of_kafkas_types_in_the_order_of_their_keys() -> None:
    """MetadataRecordType: 26 types."""
    kafka = sorted(
        (message.api_key, message.name)
        for message in schema.release_messages("4.3.1").values()
        if message.kind == "metadata" and message.api_key is not None
    )

    assert [record_class.__name__ for record_class in RECORD_CLASSES] == [name for _, name in kafka]
    assert len(kafka) == 26


@pytest.mark.parametrize("record_class", RECORD_CLASSES, ids=lambda one: one.__name__)
def test_a_class_has_the_fields_of_kafkas_schema(record_class: type[MetadataRecord]) -> None:
    """And the unknown tagged fields."""
    (definition,) = schema.definitions(record_class.__name__)

    fields = {field.name for field in dataclasses.fields(record_class)}
    assert fields == {field.key for field in definition.fields} | {"unknown_tags"}


@examples(25)
@given(record_logs())
def test_a_record_is_read_as_it_was_written_at_every_metadata_version(log: list[MetadataRecord]) -> None:
    """Metadata versions 7 to 30."""
    version = metadata_version_of(log)
    values = [encode_record(record, version) for record in log]

    assert [decode_record(value, offset) for offset, value in enumerate(values)] == log


@pytest.mark.parametrize(("version", "written"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)])
def test_the_version_of_a_record_follows_from_the_metadata_version(version: int, written: int) -> None:
    """MetadataVersion.registerBrokerRecordVersion: after the frame's version and the type."""
    assert encode_record(BROKER, version)[2] == written


@pytest.mark.parametrize(
    ("changes", "written"),
    [
        ({"fenced": 1}, 0),
        ({"in_controlled_shutdown": 1}, 1),
        ({"log_dirs": (TOPIC_ID,)}, 2),
        ({"cordoned_log_dirs": ()}, 3),
    ],
    ids=str,
)
def test_a_change_of_a_registration_has_the_lowest_version_with_its_fields(
    changes: dict[str, object], written: int
) -> None:
    """The versions that ReplicationControlManager writes."""
    assert encode_record(records.BrokerRegistrationChangeRecord(1, 2, **changes), 30)[2] == written


def test_a_record_that_the_metadata_version_lacks_is_not_written() -> None:
    """MetadataVersion.isScramSupported."""
    with pytest.raises(MetadataError) as refused:
        encode_record(records.RemoveUserScramCredentialRecord("ann", 1), 10)

    assert str(refused.value) == (
        "RemoveUserScramCredentialRecord cannot be written: metadata.version 3.5-IV1 does not have it."
    )


def test_a_field_that_the_metadata_version_lacks_is_not_dropped() -> None:
    """UnsupportedVersionException in Java."""
    with pytest.raises(
        MetadataError, match=r"PartitionChangeRecord cannot be written at metadata.version 3.7-IV0: .*directories"
    ):
        encode_record(records.PartitionChangeRecord(0, TOPIC_ID, directories=(TOPIC_ID,)), 15)


def test_an_unknown_type_is_refused_with_its_offset() -> None:
    """Kafka 4.4 has type 29."""
    assert refusal(b"\x01\x1d\x00\x00") == (
        "The metadata record at offset 42 cannot be read: type 29 is unknown (the types 0 to 28 are known); "
        "run a newer version of Steward."
    )


def test_a_newer_version_is_refused_with_its_offset_and_type() -> None:
    """It may have fields that must not be ignored."""
    assert refusal(b"\x01\x05\x03") == (
        "The metadata record at offset 42 cannot be read: version 3 of type 5 (PartitionChangeRecord) is unknown (the versions 0 to 2 "
        "are known); run a newer version of Steward."
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "it is cut short"),
        (b"\x01\x02", "it is cut short"),
        (b"\x00\x02\x00", "its frame version is 0, only 1 is known"),
        (b"\x01\x02\x00\x06topi", "TopicRecord v0: name: needs 5 bytes, 4 are left"),
        (encode_record(TOPIC, 30)[:-1], "TopicRecord v0: tags: a varint exceeds the end"),
        (encode_record(TOPIC, 30) + b"!", "TopicRecord v0: 1 extra bytes after the message"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_records_are_refused_with_the_reason(value: bytes, reason: str) -> None:
    """MetadataParseException in Java."""
    assert refusal(value) == f"The metadata record at offset 42 cannot be read: {reason}."


def test_unknown_tagged_fields_are_kept_and_written_again() -> None:
    """KIP-482: a later Kafka may add one without a new version."""
    value = record_frame("TopicRecord", 0, {"name": "topic", "topic_id": TOPIC_ID}, ((3, b"new"), (200, b"")))
    found = decode_record(value, OFFSET)

    assert found == dataclasses.replace(TOPIC, unknown_tags=((3, b"new"), (200, b"")))
    assert encode_record(found, 30) == value


def test_unknown_tagged_fields_stay_in_order_among_known_ones() -> None:
    """The numbers of tagged fields increase."""
    broker = dataclasses.replace(BROKER, log_dirs=(TOPIC_ID,), unknown_tags=((7, b"seven"),))
    value = encode_record(broker, 30)

    assert decode_record(value, OFFSET) == broker
    assert value.endswith(b"\x02\x00\x11\x02" + TOPIC_ID.bytes + b"\x07\x05seven")


def test_an_unknown_tagged_field_of_a_change_is_refused() -> None:
    """It cannot be merged into the partition, so it would be lost."""
    value = record_frame("PartitionChangeRecord", 2, {"partition_id": 0, "topic_id": TOPIC_ID}, ((9, b"new"),))

    assert refusal(value) == (
        "The metadata record at offset 42 cannot be read: the tagged field 9 of PartitionChangeRecord is unknown; "
        "run a newer version of Steward."
    )


def test_a_tagged_field_of_a_later_version_is_refused() -> None:
    """Version 1 has no eligible leader replicas, and a controller acts on them."""
    value = record_frame(
        "PartitionRecord", 1, {"partition_id": 0, "topic_id": TOPIC_ID}, ((1, b"\x02\x00\x00\x00\x01"),)
    )

    assert refusal(value) == (
        "The metadata record at offset 42 cannot be read: version 1 of PartitionRecord has the tagged field 1, which is "
        "eligible_leader_replicas of a later version."
    )


def test_an_unknown_tagged_field_in_a_struct_is_refused() -> None:
    """A listener, for example, would lose it."""
    value = encode_record(BROKER, 30)
    listener = b"\x0aPLAINTEXT\x05host\x23\x84\x00\x00"
    assert listener + b"\x00" in value

    assert refusal(value.replace(listener + b"\x00", listener + b"\x01\x05\x01x")) == (
        "The metadata record at offset 42 cannot be read: RegisterBrokerRecord v4: unknown tag 5 in a struct."
    )


def test_keys_of_a_credential_are_not_printed() -> None:
    """No log has them."""
    credential = records.UserScramCredentialRecord("ann", 1, b"salt", b"stored", b"server", 4096)

    assert repr(credential) == "UserScramCredentialRecord(name='ann', mechanism=1)"


def test_values_of_configs_are_not_printed() -> None:
    """RecordRedactor prints those that are no passwords; here none is."""
    config = records.ConfigRecord(records.ResourceType.BROKER, "1", "ssl.key.password", "secret")

    assert "secret" not in repr(config)
    assert "ssl.key.password" in repr(config)
