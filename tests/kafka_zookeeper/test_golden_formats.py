"""Golden documents of Kafka 3.9.2, from a real ZooKeeper or from its encoder (kafka.zk.ZkData)."""

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kafka_zookeeper import formats
from kafka_zookeeper.formats import (
    AclEntry,
    AclResource,
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    FeatureStatus,
    FinalizedFeatures,
    PartitionState,
    ProducerIdBlock,
    TopicAssignment,
    TopicPartition,
    VersionRange,
)

_INTERNAL = Endpoint("INTERNAL", "127.0.0.1", 52577, "PLAINTEXT")
_CLIENT = Endpoint("CLIENT", "127.0.0.1", 53799, "PLAINTEXT")
_SSL = Endpoint("SSL", "h1", 9093, "SSL")
_PLAIN_V6 = Endpoint("PLAIN", "::1", 9092, "PLAINTEXT")
_ID = uuid.UUID("a8fbfea1-e3f1-4821-b713-8e3f0969d4d9")

GOLDEN: list[tuple[str, Callable[[Any], bytes], Callable[[bytes], Any], Any, str]] = [
    (
        "controller",
        formats.encode_controller,
        formats.decode_controller,
        ControllerRegistration(1, 1795251002013),
        '{"version":2,"brokerid":1,"timestamp":"1795251002013","kraftControllerEpoch":-1}',
    ),
    (
        "controller, JSON version 1",
        formats.encode_controller,
        formats.decode_controller,
        ControllerRegistration(0, 1529210278988, None),
        '{"version":1,"brokerid":0,"timestamp":"1529210278988"}',
    ),
    (
        "controller of a migration",
        formats.encode_controller,
        formats.decode_controller,
        ControllerRegistration(7, 1, 5),
        '{"version":2,"brokerid":7,"timestamp":"1","kraftControllerEpoch":5}',
    ),
    (
        "ACLs",
        formats.encode_acls,
        partial(formats.decode_acls, "/a"),
        frozenset(
            {
                AclEntry("User:alice", "Allow", "Read", "*"),
                AclEntry('User:b\u00fcb "x"', "Deny", "AlterConfigs", "10.0.0.1"),
            }
        ),
        (
            '{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*","operation":"Read"},'
            '{"principal":"User:b\u00fcb \\"x\\"","permissionType":"Deny","host":"10.0.0.1","operation":"AlterConfigs"}],"version":1}'
        ),
    ),
    (
        "an ACL",
        formats.encode_acls,
        partial(formats.decode_acls, "/a"),
        frozenset({AclEntry("User:*", "Deny", "All", "*")}),
        '{"acls":[{"principal":"User:*","permissionType":"Deny","host":"*","operation":"All"}],"version":1}',
    ),
    (
        "change of literal ACLs",
        formats.encode_acl_change,
        partial(formats.decode_acl_change, "n"),
        AclResource("TransactionalId", "a:b"),
        "TRANSACTIONAL_ID:a:b",
    ),
    (
        "change of prefixed ACLs",
        formats.encode_acl_change,
        partial(formats.decode_extended_acl_change, "n"),
        AclResource("Topic", "or", "PREFIXED"),
        '{"version":1,"resourceType":"TOPIC","name":"or","patternType":"PREFIXED"}',
    ),
    ("controller epoch", formats.encode_controller_epoch, formats.decode_controller_epoch, 12, "12"),
    (
        "partition state",
        formats.encode_partition_state,
        partial(formats.decode_partition_state, "/p"),
        PartitionState(leader=1, leader_epoch=0, isr=(1, 2), controller_epoch=1),
        '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}',
    ),
    (
        "partition state without a leader",
        formats.encode_partition_state,
        partial(formats.decode_partition_state, "/p"),
        PartitionState(leader=-1, leader_epoch=2, isr=(2,), controller_epoch=1),
        '{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":2,"isr":[2]}',
    ),
    (
        "partition state after an unclean election",
        formats.encode_partition_state,
        partial(formats.decode_partition_state, "/p"),
        PartitionState(leader=3, leader_epoch=7, isr=(3, 1), controller_epoch=12, leader_recovery_state=1),
        '{"controller_epoch":12,"leader":3,"version":1,"leader_recovery_state":1,"leader_epoch":7,"isr":[3,1]}',
    ),
    (
        "topic",
        formats.encode_topic,
        partial(formats.decode_topic, "t"),
        TopicAssignment(
            {partition: (1 + partition % 3, 1 + (partition + 1) % 3) for partition in range(12)}, topic_id=_ID
        ),
        (
            '{"partitions":{"11":[3,1],"0":[1,2],"1":[2,3],"2":[3,1],"3":[1,2],"4":[2,3],"5":[3,1],"6":[1,2],"7":[2,3],'
            '"8":[3,1],"9":[1,2],"10":[2,3]},"topic_id":"qPv-oePxSCG3E44_CWnU2Q","adding_replicas":{},'
            '"removing_replicas":{},"version":3}'
        ),
    ),
    (
        "topic under reassignment, without an id",
        formats.encode_topic,
        partial(formats.decode_topic, "t"),
        TopicAssignment({0: (1,), 1: (1,)}, {0: (2,)}, {0: (3,)}),
        '{"partitions":{"0":[1],"1":[1]},"adding_replicas":{"0":[2]},"removing_replicas":{"0":[3]},"version":3}',
    ),
    (
        "broker, JSON version 5",
        formats.encode_broker,
        partial(formats.decode_broker, 1),
        BrokerRegistration(1, (_INTERNAL, _CLIENT), "r1", timestamp_ms=1795251001935),
        (
            '{"features":{},"listener_security_protocol_map":{"INTERNAL":"PLAINTEXT","CLIENT":"PLAINTEXT"},'
            '"endpoints":["INTERNAL://127.0.0.1:52577","CLIENT://127.0.0.1:53799"],"rack":"r1","jmx_port":-1,"port":52577,'
            '"host":"127.0.0.1","version":5,"timestamp":"1795251001935"}'
        ),
    ),
    (
        "broker with features and an IPv6 address",
        formats.encode_broker,
        partial(formats.decode_broker, 1),
        BrokerRegistration(1, (_SSL, _PLAIN_V6), "r", {"f": VersionRange(1, 3)}, timestamp_ms=1795251178280),
        (
            '{"features":{"f":{"min_version":1,"max_version":3}},"listener_security_protocol_map":{"SSL":"SSL",'
            '"PLAIN":"PLAINTEXT"},"endpoints":["SSL://h1:9093","PLAIN://[::1]:9092"],"rack":"r","jmx_port":-1,"port":9092,'
            '"host":"::1","version":5,"timestamp":"1795251178280"}'
        ),
    ),
    (
        "broker, JSON version 4, nothing for old clients",
        formats.encode_broker,
        partial(formats.decode_broker, 1),
        BrokerRegistration(1, (_SSL,), timestamp_ms=1795251178276, version=4),
        (
            '{"listener_security_protocol_map":{"SSL":"SSL"},"endpoints":["SSL://h1:9093"],"jmx_port":-1,"port":-1,'
            '"host":null,"version":4,"timestamp":"1795251178276"}'
        ),
    ),
    (
        "broker, JSON version 2",
        formats.encode_broker,
        partial(formats.decode_broker, 1),
        BrokerRegistration(1, (_SSL,), timestamp_ms=1795251178275, version=2),
        '{"endpoints":["SSL://h1:9093"],"jmx_port":-1,"port":-1,"host":null,"version":2,"timestamp":"1795251178275"}',
    ),
    (
        "topic config",
        formats.encode_config,
        partial(formats.decode_config, "/c"),
        {
            "retention.ms": "9",
            "cleanup.policy": "compact,delete",
            "segment.bytes": "1000000",
            "min.insync.replicas": "1",
        },
        (
            '{"version":1,"config":{"cleanup.policy":"compact,delete","min.insync.replicas":"1","retention.ms":"9",'
            '"segment.bytes":"1000000"}}'
        ),
    ),
    (
        "config with every kind of character",
        formats.encode_config,
        partial(formats.decode_config, "/c"),
        {"ké": 'a"\\\n\x01/\u2028\U0001f600'},
        '{"version":1,"config":{"ké":"a\\"\\\\\\n\\u0001/\u2028\\uD83D\\uDE00"}}',
    ),
    (
        "config change",
        formats.encode_config_change,
        partial(formats.decode_config_change, "config_change_0000000000"),
        "brokers/<default>",
        '{"version":2,"entity_path":"brokers/<default>"}',
    ),
    (
        "ISR change",
        formats.encode_isr_change,
        partial(formats.decode_isr_change, "isr_change_0000000000"),
        (TopicPartition('bé"', 10), TopicPartition("a", 0)),
        '{"version":1,"partitions":[{"topic":"bé\\"","partition":10},{"topic":"a","partition":0}]}',
    ),
    (
        "log directory event",
        formats.encode_log_dir_event,
        partial(formats.decode_log_dir_event, "log_dir_event_0000000000"),
        4,
        '{"version":1,"broker":4,"event":1}',
    ),
    (
        "reassignment by an old tool",
        formats.encode_reassignment,
        formats.decode_reassignment,
        {TopicPartition("a", 0): (1, 2), TopicPartition("b", 1): ()},
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2]},'
            '{"topic":"b","partition":1,"replicas":[]}]}'
        ),
    ),
    (
        "preferred election by an old tool",
        formats.encode_preferred_replica_election,
        formats.decode_preferred_replica_election,
        (TopicPartition("a", 0), TopicPartition("b", 10)),
        '{"version":1,"partitions":[{"topic":"a","partition":0},{"topic":"b","partition":10}]}',
    ),
    (
        "producer ids",
        formats.encode_producer_id_block,
        formats.decode_producer_id_block,
        ProducerIdBlock(3, 5000000000, 5000000999),
        '{"version":1,"broker":3,"block_start":"5000000000","block_end":"5000000999"}',
    ),
    (
        "no features",
        formats.encode_features,
        formats.decode_features,
        FinalizedFeatures(),
        '{"features":{},"version":2,"status":1}',
    ),
    (
        "features, JSON version 2",
        formats.encode_features,
        formats.decode_features,
        FinalizedFeatures(FeatureStatus.ENABLED, {"metadata.version": 3, "x": 1}),
        '{"features":{"metadata.version":{"max_version_level":3},"x":{"max_version_level":1}},"version":2,"status":1}',
    ),
    (
        "features, JSON version 1",
        formats.encode_features,
        formats.decode_features,
        FinalizedFeatures(FeatureStatus.ENABLED, {"metadata.version": 3, "x": 1}, version=1),
        (
            '{"features":{"metadata.version":{"max_version_level":3,"min_version_level":3},'
            '"x":{"max_version_level":1,"min_version_level":1}},"version":1,"status":1}'
        ),
    ),
    (
        "cluster id",
        formats.encode_cluster_id,
        formats.decode_cluster_id,
        "8UdCSlUET12g2HZApFgv6A",
        '{"version":"1","id":"8UdCSlUET12g2HZApFgv6A"}',
    ),
]


@pytest.mark.parametrize(
    ("encode", "decode", "value", "document"), [row[1:] for row in GOLDEN], ids=[row[0] for row in GOLDEN]
)
def test_a_document_equals_kafkas_byte_for_byte(
    encode: Callable[[Any], bytes], decode: Callable[[bytes], Any], value: object, document: str
):
    """Encoded as Kafka does, and decoded as the same value."""
    assert document.encode() == encode(value)
    assert value == decode(document.encode())
