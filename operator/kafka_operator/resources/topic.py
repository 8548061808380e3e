"""The Topic resource."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_operator.names import MANAGED_CONFIG, ClusterRef, Key, Kind
from kafka_operator.resources.metadata import Condition, Metadata, Patch, RawObject, read_conditions, read_metadata


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """What is written to `status`; None where nothing is known."""

    observed_generation: int | None = None
    topic_name: str | None = None
    topic_id: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    conditions: tuple[Condition, ...] = ()

    def to_patch(self) -> Patch:
        """Return the whole status as a merge patch: what is not known is taken away."""
        return {
            "observedGeneration": self.observed_generation,
            "topicName": self.topic_name,
            "topicId": self.topic_id,
            "partitions": self.partitions,
            "replicationFactor": self.replication_factor,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True)
class Topic:
    """A Topic as its user wrote it, with what we wrote to it."""

    metadata: Metadata
    cluster: ClusterRef
    name: str
    """The name in Kafka: spec.topicName, or else metadata.name."""
    partitions: int
    replication_factor: int
    config: tuple[tuple[str, str], ...]
    retain: bool
    """Whether the Kafka topic stays when this resource goes (deletionPolicy Retain)."""
    status: TopicStatus

    @property
    def key(self) -> Key:
        """Return its name in Kubernetes."""
        return self.metadata.key

    @property
    def managed_config(self) -> frozenset[str]:
        """Return the settings' names that this Topic may have set."""
        text = self.metadata.annotation(MANAGED_CONFIG)
        return frozenset(text.split(",")) if text else frozenset()


def read_topic(raw: RawObject) -> Topic:
    """Read a Topic from JSON; KeyError or ValueError when it does not follow the schema."""
    metadata = read_metadata(Kind.TOPIC, raw)
    spec = raw["spec"]
    return Topic(
        metadata=metadata,
        cluster=ClusterRef(metadata.key.namespace, spec["clusterRef"]["name"]),
        name=spec.get("topicName", metadata.key.name),
        partitions=int(spec["partitions"]),
        replication_factor=int(spec["replicationFactor"]),
        config=tuple(sorted((spec.get("config") or {}).items())),
        retain=spec.get("deletionPolicy") == "Retain",
        status=_read_status(raw.get("status") or {}),
    )


def _read_status(status: RawObject) -> TopicStatus:
    return TopicStatus(
        observed_generation=status.get("observedGeneration"),
        topic_name=status.get("topicName"),
        topic_id=status.get("topicId"),
        partitions=status.get("partitions"),
        replication_factor=status.get("replicationFactor"),
        conditions=read_conditions(status),
    )
