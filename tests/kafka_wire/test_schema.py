"""The schema tables: what the codec takes for granted about them, and how two generations become one."""

from collections.abc import Iterator

import pytest

from kafka_wire import schema
from kafka_wire.failures import CodecError
from kafka_wire.names import snake_case
from kafka_wire.plain_decoder import least_bytes
from kafka_wire.plain_encoder import FIXED_FORMATS
from kafka_wire.schema import LATEST, NO_VERSIONS, Field, Message, Versions

NEWER, OLDER = schema.GENERATIONS

RENAMED = {"candidate_epoch": "replica_epoch", "candidate_id": "replica_id"}
RENAMED |= {"candidate_directory_id": "replica_directory_id"}
"""VoteRequest's fields in the older generation and in the newer (KIP-996)."""

CHANGED_WHILE_UNSTABLE = {("ReadShareGroupStateSummaryResponse", 0)}
"""Versions that got other bytes before any release had them switched on."""


def in_both() -> list[str]:
    """Return the messages that both generations have."""
    return sorted(schema.generation(NEWER).keys() & schema.generation(OLDER).keys())


def shape(message: Message, version: int) -> list[tuple[object, ...]]:
    """Return all that decides the bytes of one version, and the names of its fields."""
    return [(version in message.flexible,), *_shape(message.fields, version)]


def _shape(fields: tuple[Field, ...], version: int) -> Iterator[tuple[object, ...]]:
    for field in fields:
        if version in field.versions:
            name = RENAMED.get(field.key, field.key)
            tagged_default = field.default if field.tag is not None and not field.fields else None
            yield (name, field.kind, field.is_array, version in field.nullable, field.tag, tagged_default)
            yield from _shape(field.fields, version)
            yield (name, "ends")


def test_versions_that_both_generations_have_are_the_same_bytes() -> None:
    """So it does not matter which definition serves them; test_java_judges.py asks both generations' own code."""
    for name in in_both():
        newer, older = schema.generation(NEWER)[name], schema.generation(OLDER)[name]
        for version in sorted(set(newer.versions.all()) & set(older.versions.all())):
            if (name, version) not in CHANGED_WHILE_UNSTABLE:
                assert shape(older, version) == shape(newer, version), (name, version)


def test_only_versions_marked_unstable_changed() -> None:
    """The mark is on the request of the same api key, and only the latest version bears it."""
    for name, version in CHANGED_WHILE_UNSTABLE:
        request = schema.generation(OLDER)[name.removesuffix("Response") + "Request"]

        assert request.latest_unstable
        assert version == request.versions.highest


def test_every_version_of_either_generation_is_served() -> None:
    """By exactly one definition; newer Kafkas drop versions at the low end alone."""
    for name in schema.names():
        known = {
            version
            for generation in schema.GENERATIONS
            if (message := schema.generation(generation).get(name))
            for version in message.versions.all()
        }

        assert known == {version for message in schema.definitions(name) for version in message.versions.all()}
        assert sorted(known) == list(schema.known_versions(name).all())


def test_what_newer_kafkas_dropped_is_served_by_the_older_definition() -> None:
    """A ZooKeeper-mode controller needs LeaderAndIsr, and AlterPartition 0-1 for older brokers."""
    assert schema.definition("LeaderAndIsrRequest", 7) == schema.generation(OLDER)["LeaderAndIsrRequest"]
    assert [one.versions for one in schema.definitions("AlterPartitionRequest")] == [Versions(2, 3), Versions(0, 1)]


def structs(fields: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    """Yield the fields of a struct and of every struct in it."""
    yield fields
    for field in fields:
        if field.fields:
            yield from structs(field.fields)


def every_definition() -> list[Message]:
    """Return every definition that serves some version."""
    return [message for name in schema.names() for message in schema.definitions(name)]


def test_no_two_fields_of_a_struct_share_a_key() -> None:
    """Kafka's spellings stay apart after they are turned into Python's."""
    for message in every_definition():
        for fields in structs(message.fields):
            keys = [field.key for field in fields]
            assert sorted(set(keys)) == sorted(keys), message.name


def test_every_type_is_one_that_the_codec_has() -> None:
    """A new Kafka with a new type is to be noticed when its tables are drawn."""
    known = {*FIXED_FORMATS, "struct", "string", "bytes", "records", "uuid"}

    for message in every_definition():
        for fields in structs(message.fields):
            assert known >= {field.kind for field in fields}, message.name


def test_no_array_has_elements_of_zero_bytes() -> None:
    """So a count is never larger than the bytes that are left, and checking that is enough."""
    for message in every_definition():
        for version in message.versions.all():
            for fields in structs(message.fields):
                for field in fields:
                    if field.is_array and version in field.versions:
                        assert least_bytes(field.elements(), version, version in message.flexible) > 0, message.name


def test_no_tagged_struct_may_be_null() -> None:
    """The engines have no bytes for it, for Kafka has none in use."""
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
def test_versions_are_read_in_kafkas_notation(text: str | None, expected: Versions) -> None:
    """MessageGenerator's Versions."""
    assert Versions.parse(text) == expected


def test_an_unknown_message_is_named() -> None:
    """A typo in a name is found at its first use."""
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
def test_names_are_spelled_as_pythons_are(name: str, key: str) -> None:
    """One rule, and KRaft is one word."""
    assert key == snake_case(name)
