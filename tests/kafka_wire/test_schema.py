"""Schema tables: the codec's assumptions about them, and the merge of two releases."""

from collections.abc import Iterator

import pytest

from kafka_wire import schema
from kafka_wire.failures import CodecError
from kafka_wire.names import snake_case
from kafka_wire.plain_decoder import least_bytes
from kafka_wire.plain_encoder import FIXED_FORMATS
from kafka_wire.schema import LATEST, NO_VERSIONS, Field, Message, Versions

NEWER, OLDER = schema.RELEASES

RENAMED = {"candidate_epoch": "replica_epoch", "candidate_id": "replica_id"}
RENAMED |= {"candidate_directory_id": "replica_directory_id"}
"""VoteRequest's fields in the older release and in the newer one (KIP-996)."""

CHANGED_WHILE_UNSTABLE = {("ReadShareGroupStateSummaryResponse", 0)}
"""Versions whose bytes changed before any release enabled them."""


def in_both() -> list[str]:
    """Return the messages that both releases have."""
    return sorted(schema.release_messages(NEWER).keys() & schema.release_messages(OLDER).keys())


def shape(message: Message, version: int) -> list[tuple[object, ...]]:
    """Return everything that affects the bytes of one version, and the names of its fields."""
    return [(version in message.flexible,), *_shape(message.fields, version)]


def _shape(fields: tuple[Field, ...], version: int) -> Iterator[tuple[object, ...]]:
    for field in fields:
        if version in field.versions:
            name = RENAMED.get(field.key, field.key)
            tagged_default = field.default if field.tag is not None and not field.fields else None
            yield (name, field.kind, field.is_array, version in field.nullable, field.tag, tagged_default)
            yield from _shape(field.fields, version)
            yield (name, "ends")


def test_versions_of_both_releases_have_the_same_bytes() -> None:
    """So either definition may be used; test_java_judges.py compares with the code of both releases."""
    for name in in_both():
        newer, older = schema.release_messages(NEWER)[name], schema.release_messages(OLDER)[name]
        for version in sorted(set(newer.versions.all()) & set(older.versions.all())):
            if (name, version) not in CHANGED_WHILE_UNSTABLE:
                assert shape(older, version) == shape(newer, version), (name, version)


def test_only_unstable_versions_changed() -> None:
    """The request of the same API key is marked, and only its latest version."""
    for name, version in CHANGED_WHILE_UNSTABLE:
        request = schema.release_messages(OLDER)[name.removesuffix("Response") + "Request"]

        assert request.latest_unstable
        assert version == request.versions.highest


def test_every_version_of_either_release_is_defined() -> None:
    """By exactly one definition; newer releases drop versions only at the low end."""
    for name in schema.names():
        known = {
            version
            for release in schema.RELEASES
            if (message := schema.release_messages(release).get(name))
            for version in message.versions.all()
        }

        assert known == {version for message in schema.definitions(name) for version in message.versions.all()}
        assert sorted(known) == list(schema.known_versions(name).all())


def test_dropped_versions_are_defined_by_the_older_release() -> None:
    """A ZooKeeper-mode controller needs LeaderAndIsr, and AlterPartition 0-1 for older brokers."""
    assert schema.definition("LeaderAndIsrRequest", 7) == schema.release_messages(OLDER)["LeaderAndIsrRequest"]
    assert [definition.versions for definition in schema.definitions("AlterPartitionRequest")] == [
        Versions(2, 3),
        Versions(0, 1),
    ]


def structs(fields: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    """Yield the fields of a struct and of every struct in it."""
    yield fields
    for field in fields:
        if field.fields:
            yield from structs(field.fields)


def every_definition() -> list[Message]:
    """Return all definitions with versions."""
    return [message for name in schema.names() for message in schema.definitions(name)]


def test_no_two_fields_of_a_struct_share_a_key() -> None:
    """Kafka's names stay distinct in Python's spelling."""
    for message in every_definition():
        for fields in structs(message.fields):
            keys = [field.key for field in fields]
            assert sorted(set(keys)) == sorted(keys), message.name


def test_the_codec_supports_every_type() -> None:
    """A new type in a new release of Kafka is detected when its tables are extracted."""
    known = {*FIXED_FORMATS, "struct", "string", "bytes", "records", "uuid"}

    for message in every_definition():
        for fields in structs(message.fields):
            assert known >= {field.kind for field in fields}, message.name


def test_no_array_has_elements_of_zero_bytes() -> None:
    """So a count is never larger than the remaining bytes, and checking that is sufficient."""
    for message in every_definition():
        for version in message.versions.all():
            for fields in structs(message.fields):
                for field in fields:
                    if field.is_array and version in field.versions:
                        assert least_bytes(field.elements(), version, version in message.flexible) > 0, message.name


def test_no_tagged_struct_is_nullable() -> None:
    """The codec does not support it, because Kafka does not use it."""
    for message in every_definition():
        for fields in structs(message.fields):
            for field in fields:
                assert field.tag is None or field.kind != "struct" or field.nullable == NO_VERSIONS, message.name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", Versions(3, 3)),
        ("0-8", Versions(0, 8)),
        ("6+", Versions(6, LATEST)),
        ("none", NO_VERSIONS),
        (None, NO_VERSIONS),
    ],
)
def test_versions_are_parsed_in_kafkas_notation(text: str | None, expected: Versions) -> None:
    """MessageGenerator's Versions."""
    assert Versions.parse(text) == expected


def test_the_error_for_an_unknown_message_contains_its_name() -> None:
    """A typo in a name is detected at its first use."""
    with pytest.raises(CodecError, match="NoRequest: no such message"):
        schema.definitions("NoRequest")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("BrokerEpoch", "broker_epoch"),
        ("isKRaftController", "is_kraft_controller"),
        ("kRaftVersionFeature", "kraft_version_feature"),
        ("Isr", "isr"),
        ("V0Host", "v0_host"),
        ("Enable2Pc", "enable2_pc"),
        ("ResultsByTopicV3AndBelow", "results_by_topic_v3_and_below"),
    ],
)
def test_names_are_converted_to_snake_case(name: str, key: str) -> None:
    """One rule; KRaft is one word."""
    assert key == snake_case(name)
