"""A stock Kafka cluster as its owner uses it, without the operator: topics, data, settings, throttles."""

from __future__ import annotations

import contextlib

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from lab.peers.cluster import KafkaCluster
from lab.peers.kraft import KraftCluster
from lab.processes.waiting import wait_until

Brokers = KafkaCluster | KraftCluster
"""In ZooKeeper mode, or with a quorum of their own."""

PATIENCE_S = 30.0
METADATA_ATTEMPTS = 5
RECORD_BYTES = 10_000

DYNAMIC_BROKER_CONFIG = 2
"""ConfigSource (KIP-226): set on this broker by an Admin client."""


class Stock:
    """One cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def replicas(self, topic: str) -> list[list[int]]:
        """Return the replicas of each partition, as Metadata shows them."""
        partitions = self._metadata(topic).topics[topic].partitions
        return [partitions[index].replicas for index in sorted(partitions)]

    def in_sync(self, topic: str) -> list[list[int]]:
        """Return the replicas in sync of each partition, ascending, as Metadata shows them."""
        partitions = self._metadata(topic).topics[topic].partitions
        return [sorted(partitions[index].isrs) for index in sorted(partitions)]

    def _metadata(self, topic: str) -> ClusterMetadata:
        """Ask for a topic's metadata. librdkafka keeps a request to a broker that has died until its time is up, so it is asked again."""
        for _ in range(METADATA_ATTEMPTS - 1):
            with contextlib.suppress(KafkaException):
                return self.admin.list_topics(topic, timeout=PATIENCE_S / METADATA_ATTEMPTS)
        return self.admin.list_topics(topic, timeout=PATIENCE_S / METADATA_ATTEMPTS)

    def exists(self, topic: str) -> bool:
        """Return whether a topic exists."""
        return topic in self.admin.list_topics(timeout=PATIENCE_S).topics

    def topics(self) -> list[str]:
        """Return the topics."""
        return list(self.admin.list_topics(timeout=PATIENCE_S).topics)

    def delete(self, topic: str) -> None:
        """Delete a topic and wait until it is gone."""
        self.admin.delete_topics([topic])[topic].result(PATIENCE_S)
        wait_until(lambda: not self.exists(topic), timeout_s=PATIENCE_S, what=f"{topic} is gone")

    def broker_config(self, broker_id: int, name: str) -> str | None:
        """Return a setting that is set on a broker itself, None if it is not."""
        resource = ConfigResource(ResourceType.BROKER, str(broker_id))
        found = (
            self.admin.describe_configs([resource])[resource].result(PATIENCE_S).get(name)
        )  # a rate only if it is set
        return found.value if found is not None and found.source == DYNAMIC_BROKER_CONFIG else None

    def create(self, topic: str, replicas: list[list[int]]) -> None:
        """Create a topic with exactly these replicas."""
        self.admin.create_topics([NewTopic(topic, num_partitions=len(replicas), replica_assignment=replicas)])[
            topic
        ].result(PATIENCE_S)
        wait_until(lambda: self.replicas(topic) == replicas, timeout_s=PATIENCE_S, what=f"the brokers know {topic}")

    def fill(self, topic: str, records: int) -> None:
        """Write records of 10 kB, spread over the partitions, each a batch of its own: a fetch returns whole batches."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all", "batch.num.messages": 1})
        for number in range(records):
            producer.produce(topic, value=b"x" * RECORD_BYTES, key=str(number).encode())
        assert producer.flush(PATIENCE_S) == 0

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset of partition 0 for a consumer group that has no members."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        consumer.close()

    def config(self, topic: str) -> dict[str, str]:
        """Return the settings that are set on a topic itself."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        found = self.admin.describe_configs([resource])[resource].result(PATIENCE_S)
        return {name: entry.value for name, entry in found.items() if entry.source == 1}

    def set_config(self, topic: str, name: str, value: str) -> None:
        """Set one setting behind the operator's back."""
        self._alter(ConfigResource(ResourceType.TOPIC, topic), name, value)

    def throttle(self, broker_id: int, topic: str, bytes_per_s: int | None) -> None:
        """Slow down what a broker fetches of a topic to catch up, or (None) no longer."""
        self._alter(
            ConfigResource(ResourceType.BROKER, str(broker_id)),
            "follower.replication.throttled.rate",
            None if bytes_per_s is None else str(bytes_per_s),
        )
        name = "follower.replication.throttled.replicas"
        self._alter(ConfigResource(ResourceType.TOPIC, topic), name, None if bytes_per_s is None else "*")

    def _alter(self, resource: ConfigResource, name: str, value: str | None) -> None:
        kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        resource.add_incremental_config(ConfigEntry(name, value, incremental_operation=kind))
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
