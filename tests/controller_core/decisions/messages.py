"""Requests to brokers as plain values, read from the columns in the event that caused them, as when the shell encodes them.

Versions, addresses and bytes are omitted.
"""

from dataclasses import dataclass, field
from uuid import UUID

from controller_core.model import Cluster, Replicas, TopicPartition
from controller_core.model.decision import Send, SendLeaderAndIsr, SendMetadata, SendStopReplica
from controller_core.model.ids import LEADER_DURING_DELETE


@dataclass(frozen=True)
class SentState:
    """State of one partition in a request."""

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

    partitions: dict[TopicPartition, SentState]
    topic_ids: dict[str, UUID | None] = field(default_factory=dict)
    """By topic; None for a topic without an id."""


@dataclass(frozen=True)
class UpdateMetadata:
    """Live brokers, and states of partitions; leader -2: the topic is being deleted."""

    live: Replicas
    partitions: dict[TopicPartition, SentState]


@dataclass(frozen=True)
class StopReplica:
    """Stop following these partitions, each with a leader epoch, and with `delete` delete their logs."""

    partitions: dict[TopicPartition, int]
    delete: bool


Message = LeaderAndIsr | UpdateMetadata | StopReplica
Addressed = tuple[Replicas, Message]
"""A message and the brokers that get it."""


def message_of(cluster: Cluster, send: Send) -> Addressed:
    """Convert a request of the core into the message that brokers get."""
    match send:
        case SendLeaderAndIsr():
            states = {
                cluster.name_of(row): _sent_state(cluster, row, is_new=is_new)
                for row, is_new in zip(send.rows.tolist(), send.is_new.tolist(), strict=True)
            }
            ids = {name.topic: cluster.topics[name.topic].topic_id for name in states}
            return (send.broker,), LeaderAndIsr(states, ids)
        case SendMetadata():
            states = {
                cluster.name_of(row): _sent_state(cluster, row, deleting=send.deleting) for row in send.rows.tolist()
            }
            return send.brokers, UpdateMetadata(tuple(sorted(cluster.brokers)), states)
        case SendStopReplica():
            epochs = dict(zip(send.partitions, send.leader_epochs, strict=True))
            return (send.broker,), StopReplica(epochs, send.delete)


def _sent_state(cluster: Cluster, row: int, *, is_new: bool = False, deleting: bool = False) -> SentState:
    columns = cluster.columns
    return SentState(
        LEADER_DURING_DELETE if deleting else int(columns.leader[row]),
        int(columns.leader_epoch[row]),
        columns.isr_of(row),
        columns.replicas_of(row),
        int(columns.partition_epoch[row]),
        is_new,
        is_recovering=bool(columns.recovering[row]),
    )
