"""State transitions that both modes share: topics, states of partitions, producer ids.

A mode may add what only it does for such a change. `apply` of the mode (`zookeeper_mode.transitions`,
`quorum_mode.transitions`) is the only function that changes the cluster's state. Every applied change has been committed, is
observed, or is kept in memory only. No transition can therefore fail because of the state of the cluster; an assertion that fails is a
defect of this program.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from controller_core.model import BoolArray, Cluster, IntArray, changes, settings
from controller_core.rules.partition_change import check_states, next_partition_epoch
from kafka_node.configs.topic_configs import config_value

Transitions = Mapping[type[changes.Change], Callable[[Any, Cluster], object]]
"""What a change does to the cluster's state, by kind of change."""


def add_topic(change: changes.TopicAdded, cluster: Cluster) -> IntArray:
    """Add a topic and its partitions; return the rows of these."""
    assert change.name not in cluster.topics, f"topic {change.name} exists already"
    topic = cluster.add_topic(change.name, change.topic_id)
    topic.rows = cluster.columns.add(topic.index, change.partitions, change.replicas)
    # Kafka parses a boolean regardless of case and of surrounding whitespace (ConfigDef.parseType).
    if settings.UNCLEAN_ELECTION in change.configs:
        cluster.unclean_topics[change.name] = config_value(settings.UNCLEAN_ELECTION, change.configs) is True
    return topic.rows


def add_partitions(change: changes.PartitionsAdded, cluster: Cluster) -> IntArray:
    """Add partitions to a topic; return their rows."""
    topic = cluster.topics[change.topic]
    rows = cluster.columns.add(topic.index, change.partitions, change.replicas)
    topic.rows = np.concatenate([topic.rows, rows])
    return rows


def change_states(change: changes.PartitionStates, cluster: Cluster) -> None:
    """Set new states, and replica lists if these change too."""
    check_states(cluster, change)
    columns = cluster.columns
    recovering = change.recovering_after(columns.recovering[change.rows])
    if change.replicas is not None:
        columns.set_replicas(change.rows, change.replicas)
    set_states(cluster, change.rows, change.leader, change.leader_epoch, change.isr, recovering)


def set_states(
    cluster: Cluster, rows: IntArray, leader: IntArray, leader_epoch: IntArray, isr: IntArray, recovering: BoolArray
) -> None:
    """Set new states of partitions; each raises the partition epoch."""
    columns = cluster.columns
    partition_epoch = next_partition_epoch(columns.partition_epoch[rows])
    columns.set_states(rows, leader, leader_epoch, isr, partition_epoch, cluster.controller_epoch, recovering)


def allocate_producer_ids(change: changes.ProducerIdsAllocated, cluster: Cluster) -> None:
    """Advance the end of allocated producer ids."""
    cluster.last_producer_id = change.last


def observe_producer_ids(change: changes.ProducerIdsObserved, cluster: Cluster) -> None:
    """Set the end of allocated producer ids as found written."""
    cluster.last_producer_id = change.block_end
