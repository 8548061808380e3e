"""Pods, StatefulSets and partitions for tests, each in one line."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from kafka_operator.decide.clusters.rolling import READY_WITHIN_S
from kafka_operator.decide.kafka.replica_health import PartitionReplicas, ReplicaHealth
from kafka_operator.resources.cluster import Cluster, ClusterStatus, PodGroup
from kafka_operator.resources.pods import Pod, PodSet
from kafka_operator.resources.reassignment import Partition
from tests.kafka_operator.makers import NOW, cluster

OLD, NEW = "rev-1", "rev-2"
LONG_AGO = NOW - timedelta(seconds=READY_WITHIN_S + 1)


def pod(node_id: int, revision: str = NEW, /, *, ready: bool = True, deleting: bool = False, **fields: Any) -> Pod:
    """A pod of broker `node_id`, on a node of its own; Ready or not since now."""
    made = Pod(
        f"main-broker-{node_id}", f"uid-{node_id}", "1", node_id, revision, f"node-{node_id}", ready, deleting, NOW
    )
    return replace(made, **fields)


def pod_set(*pods: Pod, replicas: int | None = None, **fields: Any) -> PodSet:
    """A StatefulSet whose declared revision is NEW, rolled by us."""
    made = PodSet("main-broker", "1", 0, len(pods) if replicas is None else replicas, NEW, True, True, pods)
    return replace(made, **fields)


def partition(
    index: int, replicas: tuple[int, ...], isr: tuple[int, ...] | None = None, topic: str = "orders"
) -> PartitionReplicas:
    """A partition; in sync by default."""
    return PartitionReplicas(Partition(topic, index), replicas, replicas if isr is None else isr)


def health(
    *partitions: PartitionReplicas, controller_id: int = 1000, brokers: int = 3, min_isr: int = 2
) -> ReplicaHealth:
    """A cluster of brokers 0, 1, …; all topics have the same min.insync.replicas."""
    by_topic = {item.partition.topic: min_isr for item in partitions}
    return ReplicaHealth(controller_id, tuple(range(brokers)), partitions, by_topic)


def cluster_with_pods(replicas: int | None = 3, **status: Any) -> Cluster:
    """A Cluster whose brokers are pods of main-broker."""
    return replace(cluster(), brokers=PodGroup("main-broker", 0, replicas), status=replace(ClusterStatus(), **status))
