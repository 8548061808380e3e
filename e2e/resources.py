"""The resources that these tests declare, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from e2e.release import BOOTSTRAP, CLUSTER, CLUSTERS

__all__ = [
    "API",
    "CLUSTERS",
    "ELECTIONS",
    "REASSIGNMENTS",
    "SPARK_APPLICATIONS",
    "TOPICS",
    "cluster",
    "election",
    "move",
    "move_topics",
    "namespace",
    "topic",
]

API = "steward.dev/v1alpha1"

TOPICS = "topics.steward.dev"

REASSIGNMENTS = "reassignments.steward.dev"

ELECTIONS = "elections.steward.dev"

SPARK_APPLICATIONS = "sparkapplications.steward.dev"


def topic(name: str, *, partitions: int = 6, replication_factor: int = 3, min_isr: int = 2) -> dict[str, Any]:
    """Return a Topic."""
    return {
        "apiVersion": API,
        "kind": "Topic",
        "metadata": {"name": name},
        "spec": {
            "clusterRef": {"name": CLUSTER},
            "partitions": partitions,
            "replicationFactor": replication_factor,
            "config": {"min.insync.replicas": str(min_isr)},
            "deletionPolicy": "Delete",
        },
    }


def move(name: str, plan: Mapping[tuple[str, int], Sequence[int]]) -> dict[str, Any]:
    """Return a Reassignment of an exact plan."""
    entries = [
        {"topic": topic_name, "partition": partition, "replicas": list(replicas)}
        for (topic_name, partition), replicas in plan.items()
    ]
    return _reassignment(name, {"plan": entries})


def move_topics(name: str, brokers: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return a Reassignment of whole topics to brokers; the operator works the plan out."""
    return _reassignment(name, {"topics": [{"name": topic, "brokers": list(ids)} for topic, ids in brokers.items()]})


def election(name: str, topics: Sequence[str]) -> dict[str, Any]:
    """Return an Election of the preferred replicas of topics."""
    spec = {"clusterRef": {"name": CLUSTER}, "type": "Preferred", "topics": list(topics)}
    return {"apiVersion": API, "kind": "Election", "metadata": {"name": name}, "spec": spec}


def cluster(name: str) -> dict[str, Any]:
    """Return a Cluster for another namespace, that of the release's brokers."""
    return {"apiVersion": API, "kind": "Cluster", "metadata": {"name": name}, "spec": {"bootstrapServers": [BOOTSTRAP]}}


def namespace(name: str) -> dict[str, Any]:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _reassignment(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Reassignment",
        "metadata": {"name": name},
        "spec": {"clusterRef": {"name": CLUSTER}, **spec},
    }
