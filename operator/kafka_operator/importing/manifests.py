"""Topic manifests of topics as they are: applied, each is Ready at once, since nothing differs.

Only settings that are set on a topic itself are written; the throttles of a move are not the topic's own. A Topic that is deleted leaves
its Kafka topic unchanged unless deletion is requested: a trial import must not lose data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import KafkaTopic
from kafka_operator.decide.tenants.tenancy import INTERNAL
from kafka_operator.importing.names import resource_names
from kafka_operator.resources.topic import DeletionPolicy, Policy
from reconciler.names import API_VERSION

NOT_THE_TOPICS_OWN = {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
"""Settings with the replicas that a move throttles (KIP-73); they are removed with it."""


@dataclass(frozen=True, slots=True)
class ImportSelection:
    """Selection of topics, and the settings of all their manifests."""

    cluster: str
    cluster_namespace: str | None = None
    namespace: str | None = None
    include: tuple[str, ...] = ()
    """Patterns as a shell's; empty for all topics."""
    exclude: tuple[str, ...] = ()
    internal: bool = False
    policy: Policy | None = None
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN


@dataclass(frozen=True, slots=True)
class Manifest:
    """One Topic as it is written, by its name."""

    name: str
    document: Mapping[str, Any]


def is_selected(topic: str, selection: ImportSelection) -> bool:
    """Return whether a topic is selected."""
    if topic.startswith(INTERNAL) and not selection.internal:
        return False
    included = not selection.include or any(fnmatchcase(topic, pattern) for pattern in selection.include)
    return included and not any(fnmatchcase(topic, pattern) for pattern in selection.exclude)


def manifests_of(topics: Iterable[KafkaTopic], selection: ImportSelection) -> list[Manifest]:
    """Return the manifests of topics, with the settings that were found on them, by name."""
    found = {topic.name: topic for topic in topics}
    names = resource_names(found)
    return [Manifest(names[name], _document(found[name], names[name], selection)) for name in sorted(found)]


def uneven(topics: Iterable[KafkaTopic]) -> list[str]:
    """Return the topics whose partitions have different numbers of replicas, ascending: a Topic declares one number for all."""
    return sorted(
        topic.name for topic in topics if len({len(partition.replicas) for partition in topic.partitions}) > 1
    )


def _document(topic: KafkaTopic, name: str, selection: ImportSelection) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": selection.namespace} if selection.namespace else {})
    cluster = {"name": selection.cluster}
    if selection.cluster_namespace and selection.cluster_namespace != selection.namespace:
        cluster["namespace"] = selection.cluster_namespace
    spec: dict[str, Any] = {"clusterRef": cluster}
    if name != topic.name:
        spec["topicName"] = topic.name
    spec |= {"partitions": len(topic.partitions), "replicationFactor": topic.replication_factor}
    config = {
        key: setting.value
        for key, setting in sorted(topic.config.items())
        if key not in NOT_THE_TOPICS_OWN and setting.value is not None
    }
    if config:
        spec["config"] = config
    if selection.policy is not None:
        spec["policy"] = selection.policy.value
    spec["deletionPolicy"] = selection.deletion_policy.value
    return {"apiVersion": API_VERSION, "kind": kinds.TOPIC.name, "metadata": metadata, "spec": spec}
