"""The Topic resource."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kafka_operator import kinds
from kafka_operator.names import MANAGED_CONFIG
from kafka_operator.resources.cluster_ref import ClusterRef, read_cluster_ref
from reconciler.names import Key
from reconciler.resources.metadata import (
    Condition,
    Metadata,
    Patch,
    RawObject,
    read_conditions,
    read_metadata,
)


class Policy(StrEnum):
    """Whether the Kafka topic is made as declared, or only compared with it."""

    ENFORCE = "Enforce"
    OBSERVE = "Observe"


class DeletionPolicy(StrEnum):
    """What becomes of the Kafka topic when the resource goes; Protect has the resource's own deletion refused at admission."""

    DELETE = "Delete"
    RETAIN = "Retain"
    PROTECT = "Protect"


@dataclass(frozen=True, slots=True)
class Drift:
    """One field in which the Kafka topic differs; None where a setting is not declared, or not set on the topic."""

    field: str
    declared: str | None
    actual: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        values = {"field": self.field, "declared": self.declared, "actual": self.actual}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ReplicationChange:
    """Progress of a changed replication factor, from its Reassignment."""

    target_replication_factor: int
    state: str
    message: str
    percent: int
    reassignment: str

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {
            "targetReplicationFactor": self.target_replication_factor,
            "state": self.state,
            "message": self.message,
            "progress": {"percent": self.percent},
            "reassignment": self.reassignment,
        }


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """What is written to `status`; None where nothing is known."""

    observed_generation: int | None = None
    settled_generation: int | None = None
    """The last generation that the topic was as declared by."""
    topic_name: str | None = None
    topic_id: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    drift: tuple[Drift, ...] = ()
    replication_change: ReplicationChange | None = None
    conditions: tuple[Condition, ...] = ()

    def to_patch(self) -> Patch:
        """Return the whole status as a merge patch: what is not known is taken away."""
        return {
            "observedGeneration": self.observed_generation,
            "settledGeneration": self.settled_generation,
            "topicName": self.topic_name,
            "topicId": self.topic_id,
            "partitions": self.partitions,
            "replicationFactor": self.replication_factor,
            "drift": [item.to_json() for item in self.drift] or None,
            "replicationChange": None if self.replication_change is None else self.replication_change.to_json(),
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
    unmanaged: frozenset[str]
    """Ignored settings: neither set nor reset, and no drift."""
    policy: Policy
    deletion_policy: DeletionPolicy
    throttle: RawObject | None
    """For the Reassignment that changes the replication factor, the only reader."""
    status: TopicStatus

    @property
    def key(self) -> Key:
        """Return its name in Kubernetes."""
        return self.metadata.key

    @property
    def observes(self) -> bool:
        """Whether nothing is to be changed in Kafka."""
        return self.policy is Policy.OBSERVE

    @property
    def retain(self) -> bool:
        """Whether the Kafka topic stays when this resource goes."""
        return self.observes or self.deletion_policy is not DeletionPolicy.DELETE

    @property
    def noted_config(self) -> frozenset[str]:
        """Return the settings' names that this Topic may have set."""
        text = self.metadata.annotation(MANAGED_CONFIG)
        return frozenset(text.split(",")) if text else frozenset()

    @property
    def managed_config(self) -> frozenset[str]:
        """Return those of them that are not ignored now."""
        return self.noted_config - self.unmanaged


def read_topic(raw: RawObject) -> Topic:
    """Read a Topic from JSON; KeyError or ValueError when it does not follow the schema."""
    metadata = read_metadata(kinds.TOPIC, raw)
    spec = raw["spec"]
    config = spec.get("config") or {}
    left_alone = frozenset(name for name, value in config.items() if value is None)
    return Topic(
        metadata=metadata,
        cluster=read_cluster_ref(metadata, spec),
        name=spec.get("topicName", metadata.key.name),
        partitions=int(spec["partitions"]),
        replication_factor=int(spec["replicationFactor"]),
        config=tuple(sorted((name, value) for name, value in config.items() if value is not None)),
        unmanaged=left_alone | frozenset(spec.get("unmanagedConfig") or ()),
        policy=Policy(spec.get("policy", Policy.ENFORCE)),
        deletion_policy=DeletionPolicy(spec.get("deletionPolicy", DeletionPolicy.DELETE)),
        throttle=spec.get("throttle"),
        status=_read_status(raw.get("status") or {}),
    )


def _read_status(status: RawObject) -> TopicStatus:
    change = status.get("replicationChange")
    return TopicStatus(
        observed_generation=status.get("observedGeneration"),
        settled_generation=status.get("settledGeneration"),
        topic_name=status.get("topicName"),
        topic_id=status.get("topicId"),
        partitions=status.get("partitions"),
        replication_factor=status.get("replicationFactor"),
        drift=_read_drift(status.get("drift") or ()),
        replication_change=None if change is None else _read_change(change),
        conditions=read_conditions(status),
    )


def _read_drift(raw: Iterable[RawObject]) -> tuple[Drift, ...]:
    return tuple(Drift(item["field"], item.get("declared"), item.get("actual")) for item in raw)


def _read_change(raw: RawObject) -> ReplicationChange:
    return ReplicationChange(
        target_replication_factor=raw["targetReplicationFactor"],
        state=raw["state"],
        message=raw["message"],
        percent=raw["progress"]["percent"],
        reassignment=raw["reassignment"],
    )
