"""Requests to brokers as plain values, taken from the columns in the turn that caused them, as the shell encodes them.

Leaves out versions, addresses and bytes.
"""

from dataclasses import dataclass, field
from uuid import UUID

from controller_core.model.cluster import Cluster
from controller_core.model.ids import LEADER_DURING_DELETE, TopicPartition
from controller_core.model.move import Replicas
from controller_core.model.sends import Send, SendLeaderAndIsr, SendMetadata, SendStopReplica


@dataclass(frozen=True)
class PartitionTold:
    """What a broker hears of one partition."""

    leader: int
    leader_epoch: int
    isr: Replicas
    replicas: Replicas
    partition_epoch: int
    is_new: bool = False
    is_recovering: bool = False


@dataclass(frozen=True)
class LeaderAndIsr:
    """Lead or follow these partitions."""

    partitions: dict[TopicPartition, PartitionTold]
    topic_ids: dict[str, UUID | None] = field(default_factory=dict)
    """By topic; None for a topic without an id."""


@dataclass(frozen=True)
class UpdateMetadata:
    """These brokers live, and these partitions have these leaders; -2: the topic is being deleted."""

    live: Replicas
    partitions: dict[TopicPartition, PartitionTold]


@dataclass(frozen=True)
class StopReplica:
    """Stop following these partitions, each under a leader epoch, and delete their logs where said."""

    partitions: dict[TopicPartition, int]
    delete: bool


Message = LeaderAndIsr | UpdateMetadata | StopReplica
Addressed = tuple[Replicas, Message]
"""A message and the brokers that get it."""


def message_of(cluster: Cluster, send: Send) -> Addressed:
    """Turn what the core wants to be sent into what brokers get."""
    match send:
        case SendLeaderAndIsr():
            told = {
                cluster.name_of(row): _told(cluster, row, is_new=is_new)
                for row, is_new in zip(send.rows.tolist(), send.is_new.tolist(), strict=True)
            }
            ids = {name.topic: cluster.topics[name.topic].topic_id for name in told}
            return (send.broker,), LeaderAndIsr(told, ids)
        case SendMetadata():
            told = {cluster.name_of(row): _told(cluster, row, deleting=send.deleting) for row in send.rows.tolist()}
            return send.brokers, UpdateMetadata(tuple(sorted(cluster.brokers)), told)
        case SendStopReplica():
            epochs = dict(zip(send.partitions, send.leader_epochs, strict=True))
            return (send.broker,), StopReplica(epochs, send.delete)


def _told(cluster: Cluster, row: int, *, is_new: bool = False, deleting: bool = False) -> PartitionTold:
    columns = cluster.columns
    return PartitionTold(
        LEADER_DURING_DELETE if deleting else int(columns.leader[row]),
        int(columns.leader_epoch[row]),
        columns.isr_of(row),
        columns.replicas_of(row),
        int(columns.partition_epoch[row]),
        is_new,
        is_recovering=bool(columns.recovering[row]),
    )
