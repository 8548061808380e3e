"""Old, unusual and invalid documents are decoded as in Kafka 3.9.2; each expectation is the result of its decoder.

If Kafka's decoder throws, this one raises FormatError; if its JSON parser finds no JSON, `not_json` is True.
"""

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kafka_zookeeper import formats
from kafka_zookeeper.formats import (
    NO_CONTROLLER,
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    FormatError,
    PartitionState,
    TopicAssignment,
    TopicPartition,
)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b'{"brokerid":1}', 1),
        (b'{"version":1,"brokerid":2,"timestamp":"1"}', 2),
        (b'{"version":2,"brokerid":1000,"timestamp":"1","kraftControllerEpoch":-1}', 1000),
        (b'  {"brokerid":5}', 5),
        (b'{"brokerid":1} garbage', 1),
        (b'{"brokerid":1}}', 1),
        (b'{"brokerid":1,"brokerid":2}', 2),
        (b'{"brokerid":-1}', NO_CONTROLLER),
        (b"x", NO_CONTROLLER),
        (b"\x00", NO_CONTROLLER),
        (b"\xff\xfe\x00", NO_CONTROLLER),
        (b'{"brokerid":1', NO_CONTROLLER),
        (b'{"brokerid":NaN}', NO_CONTROLLER),
        (b"{'brokerid':1}", NO_CONTROLLER),
        (b'{"brokerid":01}', NO_CONTROLLER),
        (b"[" * 100_000, NO_CONTROLLER),
    ],
)
def test_the_controllers_broker_id(document: bytes, expected: int):
    """ControllerZNode.decode, with KafkaController's -1 for None."""
    assert formats.controller_id(document) == expected


@pytest.mark.parametrize(
    "document",
    [
        None,
        b"",
        b"{}",
        b"[]",
        b"5",
        b"null",
        b'{"brokerid":null}',
        b'{"brokerid":1.0}',
        b'{"brokerid":"1"}',
        b'{"brokerid":true}',
        b'{"brokerid":3000000000}',
    ],
)
def test_a_controller_without_an_id_is_an_error(document: bytes | None):
    """ControllerZNode.decode throws, and a broker's election fails."""
    with pytest.raises(FormatError, match=r"^znode /controller: ") as raised:
        formats.controller_id(document)

    assert not raised.value.not_json


def test_an_older_controller_znode_has_no_kraft_epoch():
    """JSON version 1, before Kafka 3.4: ZKControllerRegistration has None there."""
    expected = ControllerRegistration(2, 1529210278988, None)

    assert formats.decode_controller(b'{"version":1,"brokerid":2,"timestamp":"1529210278988"}') == expected


@pytest.mark.parametrize(
    ("document", "expected"), [(b"5", 5), (b"05", 5), (b"+5", 5), (b"0", 0), (b"2147483647", 2**31 - 1)]
)
def test_the_controller_epoch_is_a_java_int(document: bytes, expected: int):
    """Integer.parseInt."""
    assert formats.decode_controller_epoch(document) == expected


@pytest.mark.parametrize("document", [None, b"", b" 5", b"5\n", b"2147483648", b"5.0", b"-1", "\u0665".encode()])
def test_an_invalid_controller_epoch_is_an_error(document: bytes | None):
    """Integer.parseInt throws; epochs are never negative."""
    with pytest.raises(FormatError, match="/controller_epoch"):
        formats.decode_controller_epoch(document)


def test_a_partition_state_may_have_no_isr_and_any_version():
    """TopicPartitionStateZNode.decode checks neither."""
    document = b'{"controller_epoch":1,"leader":1,"version":9,"leader_epoch":0,"isr":[]}'

    assert formats.decode_partition_state("/p", document) == PartitionState(1, 0, (), 1)


ASSIGNED = [
    (b"{}", TopicAssignment({})),
    (b'{"version":1,"partitions":{"0":[1]}}', TopicAssignment({0: (1,)})),
    (
        b'{"version":2,"partitions":{"0":[1]},"adding_replicas":{"0":[]},"removing_replicas":{}}',
        TopicAssignment({0: (1,)}),
    ),
    (b'{"partitions":{"1":[1],"01":[2]}}', TopicAssignment({1: (2,)})),
    (
        b'{"partitions":{},"topic_id":"AAAAAAAAAAEAAAAAAAAAAg=="}',
        TopicAssignment({}, topic_id=uuid.UUID(int=2**64 + 2)),
    ),
]


@pytest.mark.parametrize(("document", "expected"), ASSIGNED)
def test_topics_of_every_json_version(document: bytes, expected: TopicAssignment):
    """TopicZNode.decode reads the fields and ignores the version."""
    assert formats.decode_topic("t", document) == expected


V1 = b'{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"2"}'
V2 = b'{"version":2,"host":"h","port":1,"jmx_port":9999,"timestamp":"2","endpoints":["PLAINTEXT://a:9092", "SSL://b:9093"]}'
V4 = (
    b'{"version":4,"jmx_port":1,"endpoints":["client://[::1]:1"],"listener_security_protocol_map":{"Client":"sasl_ssl"},'
    b'"rack":null}'
)
V7 = b'{"version":7,"jmx_port":-1,"endpoints":["PLAINTEXT://:9092"],"rack":"r","features":null,"more":[]}'


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (V1, BrokerRegistration(1, (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),), None, {}, 9999, 2, 1)),
        (
            V2,
            BrokerRegistration(
                1,
                (Endpoint("PLAINTEXT", "a", 9092, "PLAINTEXT"), Endpoint("SSL", "b", 9093, "SSL")),
                None,
                {},
                9999,
                2,
                2,
            ),
        ),
        (V4, BrokerRegistration(1, (Endpoint("CLIENT", "::1", 1, "SASL_SSL"),), None, {}, 1, -1, 4)),
        (V7, BrokerRegistration(1, (Endpoint("PLAINTEXT", "", 9092, "PLAINTEXT"),), "r", {}, -1, -1, 7)),
    ],
)
def test_brokers_of_every_json_version(document: bytes, expected: BrokerRegistration):
    """BrokerIdZNode.decode: from version 1, including versions above 5."""
    assert formats.decode_broker(1, document) == expected


@pytest.mark.parametrize("document", [None, b"", b"zzz", b"{}", b"[]", b'{"config":[]}'])
def test_a_config_without_content_configures_nothing(document: bytes | None):
    """ConfigEntityZNode.decode."""
    assert formats.decode_config("/config/topics/t", document) == {}


def test_an_old_change_notification_contains_type_and_entity():
    """JSON version 1, before Kafka 0.10.1 (ZkConfigManager still accepts it)."""
    document = b'{"version":1,"entity_type":"topics","entity_name":"t"}'

    assert formats.decode_config_change("config_change_0000000001", document) == "topics/t"


BROKEN: list[tuple[Callable[[bytes], Any], bytes, str]] = [
    (partial(formats.decode_partition_state, "/p"), b"zzz", "not JSON"),
    (partial(formats.decode_partition_state, "/p"), b'{"leader":1}', "'isr' is missing"),
    (
        partial(formats.decode_partition_state, "/p"),
        b'{"controller_epoch":1,"leader":1,"leader_epoch":0,"isr":["1"]}',
        "a broker of 'isr' must be an integer",
    ),
    (
        partial(formats.decode_partition_state, "/p"),
        b'{"controller_epoch":1,"leader":1,"leader_epoch":0,"isr":null}',
        "'isr' must be a JSON array",
    ),
    (
        partial(formats.decode_partition_state, "/p"),
        b'{"controller_epoch":1,"leader":1,"leader_epoch":0,"isr":[1],"leader_recovery_state":2}',
        "leader_recovery_state must be 0 or 1",
    ),
    (partial(formats.decode_topic, "t"), b"[]", "must be a JSON object"),
    (
        partial(formats.decode_topic, "t"),
        b'{"partitions":{"x":[1]}}',
        "a partition in partitions must be a number from 0, found 'x'",
    ),
    (partial(formats.decode_topic, "t"), b'{"partitions":{"2147483648":[1]}}', "a number from 0, found '2147483648'"),
    (partial(formats.decode_topic, "t"), b'{"partitions":null}', "must be a JSON object, found None"),
    (partial(formats.decode_topic, "t"), b'{"partitions":{"0":null}}', "must be a JSON array"),
    (
        partial(formats.decode_topic, "t"),
        b'{"partitions":{"0":[true]}}',
        "the broker ids in partitions must be integers",
    ),
    (partial(formats.decode_topic, "t"), b'{"partitions":{"0":[-1]}}', "the broker ids in partitions must be integers"),
    (partial(formats.decode_topic, "t"), b'{"partitions":{},"topic_id":"zz"}', "must be 16 bytes"),
    (partial(formats.decode_topic, "t"), b'{"partitions":{},"topic_id":null}', "must be a JSON string"),
    (partial(formats.decode_broker, 3), b'{"version":0,"jmx_port":1}', "from 1 to"),
    (partial(formats.decode_broker, 3), b'{"version":3,"endpoints":[]}', "'jmx_port' is missing"),
    (
        partial(formats.decode_broker, 3),
        b'{"version":3,"jmx_port":1,"endpoints":["FOO://h:1"]}',
        "no security protocol",
    ),
    (partial(formats.decode_broker, 3), b'{"version":3,"jmx_port":1,"endpoints":["SSL:h:1"]}', "LISTENER://host:port"),
    (partial(formats.decode_broker, 3), b'{"version":3,"jmx_port":1,"endpoints":["SSL://h:65536"]}', "LISTENER://"),
    (
        partial(formats.decode_broker, 3),
        b'{"version":3,"jmx_port":1,"endpoints":["SSL://h:1","ssl://h:2"]}',
        "two endpoints",
    ),
    (
        partial(formats.decode_broker, 3),
        b'{"version":4,"jmx_port":1,"endpoints":[],"listener_security_protocol_map":{"A":"zz"}}',
        "unknown security protocol 'zz'",
    ),
    (partial(formats.decode_config, "/c"), b'{"config":{"a":1}}', "config 'a' must be a JSON string"),
    (partial(formats.decode_config_change, "n"), b'{"version":3,"entity_path":"a/b"}', "version must be 1 or 2"),
    (partial(formats.decode_config_change, "n"), b'{"version":2,"entity_path":"a"}', "TYPE/NAME"),
    (partial(formats.decode_config_change, "n"), b'{"version":1,"entity_type":"users","entity_name":"a"}', "'users'"),
    (
        formats.decode_reassignment,
        b'{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["any"]}]}',
        "unknown field 'log_dirs'",
    ),
    (formats.decode_reassignment, b'{"partitions":[{"topic":"a","partition":0}]}', "'replicas' is missing"),
    (formats.decode_preferred_replica_election, b'{"partitions":{}}', "must be a JSON array"),
    (partial(formats.decode_isr_change, "n"), b'{"partitions":[{"topic":"a","partition":-1}]}', "from 0 to"),
    (partial(formats.decode_log_dir_event, "n"), b"{}", "'broker' is missing"),
    (formats.decode_producer_id_block, b"", "found no data"),
    (formats.decode_producer_id_block, b'{"broker":1,"block_start":"5","block_end":"4"}', "must have 1 to"),
    (
        formats.decode_producer_id_block,
        b'{"broker":1,"block_start":"0","block_end":"9223372036854775808"}',
        "block_end",
    ),
    (formats.decode_features, b'{"version":3,"status":1,"features":{}}', "version must be 1 or 2"),
    (formats.decode_features, b'{"version":2,"status":2,"features":{}}', "'status'"),
    (
        formats.decode_features,
        b'{"version":2,"status":1,"features":{"x":{"max_version_level":0}}}',
        "max_version_level",
    ),
    (
        formats.decode_features,
        b'{"version":1,"status":1,"features":{"x":{"max_version_level":1,"min_version_level":2}}}',
        "max_version_level",
    ),
    (formats.decode_cluster_id, b'{"version":"1"}', "'id' is missing"),
    (formats.decode_cluster_id, b'{"id":"\\ud800"}', "half of a surrogate pair"),
]


@pytest.mark.parametrize(("decode", "document", "reason"), BROKEN, ids=[f"{row[1][:60]!r}" for row in BROKEN])
def test_the_error_for_an_invalid_document_has_its_path_and_reason(
    decode: Callable[[bytes], Any], document: bytes, reason: str
):
    """Kafka's decoder throws on each of these, or its controller cannot use the value."""
    with pytest.raises(FormatError, match=r"^znode /") as raised:
        decode(document)

    assert reason in raised.value.reason


def test_a_reassignment_keeps_its_order():
    """The old tools write a list, which the controller processes in order."""
    document = b'{"version":1,"partitions":[{"topic":"b","partition":1,"replicas":[2]},{"topic":"a","partition":0,"replicas":[1]}]}'

    assert list(formats.decode_reassignment(document)) == [TopicPartition("b", 1), TopicPartition("a", 0)]


def test_an_error_contains_little_of_the_document():
    """A megabyte of garbage must not become a megabyte of log."""
    with pytest.raises(FormatError) as raised:
        formats.decode_topic("t", b"x" * 1_000_000)

    assert len(str(raised.value)) < 300


def test_a_document_above_the_limit_is_not_parsed():
    """The limit is checked before the parser."""
    with pytest.raises(FormatError, match="bytes are more than"):
        formats.decode_topic("t", b" " * (16 * 1024 * 1024) + b"{}")


@pytest.mark.parametrize(
    ("name", "expected"), [("plain-1.0_x", "plain-1.0_x"), ("CN=a b/*~+", "CN%3Da%20b%2F%2A%7E%2B"), ("é", "%C3%A9")]
)
def test_names_of_users_are_sanitized_for_paths(name: str, expected: str):
    """Kafka's Sanitizer: URL encoding, with %20 for the blank and %2A for the star."""
    assert formats.sanitize(name) == expected
    assert name == formats.desanitize(expected)
