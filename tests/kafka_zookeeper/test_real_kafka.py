"""Znodes of real brokers are decoded, and encoded again byte for byte."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats.partition_columns import decode_partition_states, encode_partition_states
from kafka_zookeeper.session import ZooKeeperSession
from lab.peers.cluster import KafkaCluster
from tests.kafka_zookeeper.conftest import OpenSession

pytestmark = pytest.mark.kafka

TOPIC = "znodes-of-real-kafka"
Codec = tuple[Callable[[Any], bytes], Callable[[bytes | None], Any]]


def _codec(path: str) -> Codec | None:
    """Return the encoder and the decoder of a znode, None for znodes without data."""
    parent, _, name = path.rpartition("/")
    single: dict[str, Codec] = {
        paths.CONTROLLER: (formats.encode_controller, formats.decode_controller),
        paths.CONTROLLER_EPOCH: (formats.encode_controller_epoch, formats.decode_controller_epoch),
        paths.FEATURE: (formats.encode_features, formats.decode_features),
        paths.CLUSTER_ID: (formats.encode_cluster_id, formats.decode_cluster_id),
        paths.PRODUCER_ID_BLOCK: (formats.encode_producer_id_block, formats.decode_producer_id_block),
    }
    below: dict[str, Codec] = {
        paths.TOPICS: (formats.encode_topic, partial(formats.decode_topic, name)),
        "/config/topics": (formats.encode_config, partial(formats.decode_config, path)),
        "/config/brokers": (formats.encode_config, partial(formats.decode_config, path)),
        paths.CONFIG_CHANGES: (formats.encode_config_change, partial(formats.decode_config_change, name)),
    }
    if parent == paths.BROKER_IDS:
        return formats.encode_broker, partial(formats.decode_broker, int(name))
    if name == "state":
        return formats.encode_partition_state, partial(formats.decode_partition_state, path)
    return single.get(path) or below.get(parent)


async def _walk(session: ZooKeeperSession) -> list[str]:
    found, level = ["/"], ["/"]
    while level:
        children = await session.multi_children(level)
        level = [
            paths.child(parent, name) for parent, names in zip(level, children, strict=True) for name in names or []
        ]
        found += level
    return found


def _use(cluster: KafkaCluster) -> None:
    """Make the brokers write every kind of znode: a topic with configs, a broker's config, producer ids."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap()})
    topic = NewTopic(
        TOPIC,
        num_partitions=13,
        replication_factor=3,
        config={"retention.ms": "600000", "cleanup.policy": "compact,delete"},
    )
    for future in admin.create_topics([topic]).values():
        future.result()
    entry = ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
    producer = Producer({"bootstrap.servers": cluster.bootstrap(), "enable.idempotence": True})
    producer.produce(TOPIC, b"x")
    assert producer.flush(60) == 0
    cluster.wait_until_in_sync(TOPIC)


async def test_every_znode_of_real_brokers_is_decoded_and_encoded_unchanged(
    kafka_cluster: KafkaCluster, open_session: OpenSession
):
    """Kafka 3.9.2, inter.broker.protocol.version 3.9."""
    _use(kafka_cluster)
    session = await open_session(kafka_cluster.zookeeper_connect)
    everything = await _walk(session)
    nodes = dict(zip(everything, await session.multi_get(everything), strict=True))

    judged = []
    for path, node in nodes.items():
        codec = _codec(path)
        if codec is None or node is None:
            continue
        encode, decode = codec
        assert node.data == encode(decode(node.data)), path
        judged.append(path)

    without_data = {path for path in nodes if path not in judged and (node := nodes[path]) and node.data}
    assert without_data == set()
    assert {
        paths.CONTROLLER,
        paths.CONTROLLER_EPOCH,
        paths.FEATURE,
        paths.CLUSTER_ID,
        paths.PRODUCER_ID_BLOCK,
        paths.broker(1),
        paths.config("brokers", "1"),
        paths.topic(TOPIC),
        paths.topic_config(TOPIC),
        *paths.partition_states(TOPIC, range(13)),
    } <= set(judged)


async def test_the_column_codec_reads_the_states_of_a_real_topic(
    kafka_cluster: KafkaCluster, open_session: OpenSession
):
    """The usual form of the column decoder is the one that Kafka writes."""
    session = await open_session(kafka_cluster.zookeeper_connect)
    topics = await session.children(paths.TOPICS) or []
    partitions = await session.multi_children([paths.partitions(topic) for topic in topics])
    where = [
        paths.partition_state(topic, int(index))
        for topic, names in zip(topics, partitions, strict=True)
        for index in names or []
    ]
    documents = [None if node is None else node.data for node in await session.multi_get(where)]

    columns = decode_partition_states(where, documents)

    assert columns.errors == {}
    epochs = set(columns.controller_epoch[columns.present].tolist())
    for epoch in epochs:
        written = encode_partition_states(columns.leader, columns.leader_epoch, epoch, columns.isr, columns.isr_offsets)
        rows = [row for row in range(len(where)) if columns.present[row] and columns.controller_epoch[row] == epoch]
        assert [documents[row] for row in rows] == [written[row] for row in rows]
