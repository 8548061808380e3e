"""Topics written by tools or brokers below 2.8 get an id, which real brokers of 3.9 adopt (KIP-516)."""

import base64
import json
from collections.abc import Iterator
from uuid import UUID

import pytest
from confluent_kafka import TopicCollection

from kafka_zookeeper.formats.topics import decode_topic, decode_topic_id
from lab.processes.waiting import wait_until
from tests.integration.clusters import held_cluster
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = pytest.mark.kafka

OLD = {"version": 2, "partitions": {"0": [1, 2], "1": [2, 1]}, "adding_replicas": {}, "removing_replicas": {}}
"""A topic as Kafka 2.7 writes it: without an id."""


@pytest.fixture(scope="module")
def two() -> Iterator[Held]:
    """Two brokers of 3.9 under a Steward controller."""
    with held_cluster((1, 2)) as held:
        yield held


def write_as_kafka_2_7(held: Held, topic: str) -> None:
    """Write a topic's configuration and assignment as AdminZkClient of Kafka 2.7 does."""
    client = held.cluster.zookeeper.client
    client.create(f"{CHROOT}/config/topics/{topic}", b'{"version":1,"config":{}}')
    client.create(f"{CHROOT}/brokers/topics/{topic}", json.dumps(OLD).encode())


def id_in_zookeeper(held: Held, topic: str) -> UUID | None:
    """The id in the topic's znode."""
    data, _ = held.cluster.zookeeper.client.get(f"{CHROOT}/brokers/topics/{topic}")
    return decode_topic(topic, data).topic_id


def ids_on_disk(held: Held, topic: str) -> list[UUID]:
    """The ids in partition.metadata of all replicas, on all brokers."""
    found = []
    for broker in (1, 2):
        for file in held.cluster.broker(broker).data_folder.rglob(f"{topic}-*/partition.metadata"):
            lines = dict(line.split(": ", 1) for line in file.read_text().splitlines() if ": " in line)
            found.append(decode_topic_id(str(file), lines["topic_id"]))
    return found


def has_ids(held: Held, topic: str) -> bool:
    """Whether the znode and all four replicas on disk have the same id."""
    topic_id = id_in_zookeeper(held, topic)
    return topic_id is not None and ids_on_disk(held, topic) == [topic_id] * 4


def test_a_topic_that_an_old_tool_creates_gets_an_id_that_brokers_write_to_disk(two: Held) -> None:
    """KafkaController.processTopicChange with usesTopicId: znode, partition.metadata and clients' Metadata agree."""
    write_as_kafka_2_7(two, "by-an-old-tool")

    wait_until(lambda: has_ids(two, "by-an-old-tool"), timeout_s=PATIENCE_S, what="an id in ZooKeeper and on disk")

    two.cluster.wait_until_in_sync("by-an-old-tool")
    described = two.admin.describe_topics(TopicCollection(["by-an-old-tool"]))["by-an-old-tool"].result(PATIENCE_S)
    # This client prints ids in the other base64 alphabet.
    assert id_in_zookeeper(two, "by-an-old-tool") == UUID(bytes=base64.b64decode(f"{described.topic_id}=="))


def test_topics_without_an_id_get_one_at_a_take_over(two: Held) -> None:
    """KafkaController.initializeControllerContext: the topic was created, without an id, while no controller was active."""
    two.cluster.broker(1).stop()
    two.cluster.broker(2).stop()
    two.controller.stop()
    write_as_kafka_2_7(two, "without-a-controller")
    two.controller.start()
    two.cluster.start_brokers()

    wait_until(
        lambda: has_ids(two, "without-a-controller"), timeout_s=PATIENCE_S, what="an id in ZooKeeper and on disk"
    )

    two.cluster.wait_until_in_sync("without-a-controller")
