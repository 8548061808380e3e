"""Stray logs: logs on brokers that no assignment explains.

They remain if a broker was offline when a partition moved away from it, or if a controller lost controllership between writing an
assignment and deleting the logs outside it. Three conservative rules:

    refused with INCONSISTENT_TOPIC_ID  The log belongs to an earlier topic of that name. It is deleted if this controller
                                        deleted a topic of that name in this term, another member of the ISR has accepted the
                                        partition, and the broker is not in the ISR. After the response the leader epoch is
                                        raised, so that the broker starts with an empty log.
    listed, partition not assigned      The log is deleted if the partition is healthy: a live leader, every replica in sync, no
                                        move, no deletion. It then counts as a stray replica until the broker answers.
    listed, unknown topic               The log is deleted if this controller deleted that topic in this term, else only reported.

docs/adr/0014 and 0015 explain why these are safe. `shell.log_survey` lists the logs.
"""

from collections.abc import Iterable
from enum import Enum

from controller_core.model import Cluster, TopicPartition, changes, events, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, Send, SendStopReplica, decision
from controller_core.model.ids import EPOCH_DURING_DELETE
from controller_core.rules.partition_change import raise_epochs
from kafka_wire import ErrorCode, Failure

STALE_LOG = ErrorCode.INCONSISTENT_TOPIC_ID.name
"""The error of a broker that has a log of another topic of that name."""


class LogKind(Enum):
    """Classification of a log that a broker lists."""

    NOT_STRAY = "not_stray"
    """Assigned, or explained by a running move or deletion."""
    UNASSIGNED = "unassigned"
    """Of a partition that is not assigned to the broker and is healthy."""
    UNASSIGNED_UNHEALTHY = "unassigned_unhealthy"
    """Of a partition that is not assigned to the broker and is not healthy: the log is kept until it is."""
    DELETED_TOPIC = "deleted_topic"
    """Of a topic that this controller deleted."""
    UNKNOWN = "unknown"
    """Of an unknown topic or partition: the log may still be needed."""


def decide_replace_stale_logs(cluster: Cluster, event: zookeeper_events.ReplaceStaleLogs) -> Decision[None]:
    """Delete logs of earlier topics that prevent replicas; if that is not safe, the replica stays refused."""
    if not _is_registered(cluster, event.broker, event.broker_epoch):
        return decision()
    names = tuple(name for name in event.partitions if _is_replaceable(cluster, event.broker, name))
    return decision(sends=_delete(event.broker, [(name, EPOCH_DURING_DELETE) for name in names]))


def _is_replaceable(cluster: Cluster, broker: int, name: TopicPartition) -> bool:
    """Whether a broker's log of a partition is garbage and does not belong to the current topic.

    The broker reported that its log has another id than the topic. A topic of that name was deleted in this term, so no topic
    with the log's id exists. The broker is not in the ISR, so the current topic does not depend on it.
    """
    row = cluster.row_of(*name)
    return (
        row is not None
        and cluster.refused_replicas.get(row, {}).get(broker) == STALE_LOG
        and broker in cluster.offline_at(row)
        and name.topic in cluster.deleted_topics
        and name.topic not in cluster.deletions
        and broker in cluster.columns.replicas_of(row)
        and broker not in cluster.columns.isr_of(row)
        and int(cluster.columns.leader[row]) != broker
    )


def deleted_stale_logs(cluster: Cluster, event: zookeeper_events.StopReplicaAnswered) -> changes.PartitionStates | None:
    """Raise the leader epoch of partitions whose replica a broker refused and whose old log it has now deleted."""
    if not cluster.refused_replicas:
        return None
    rows = [
        row
        for name in event.done
        if (row := cluster.row_of(*name)) is not None
        and event.broker in cluster.refused_at(row)
        and event.broker in cluster.columns.replicas_of(row)
        and int(cluster.columns.leader[row]) in cluster.unfenced()
        and name.topic not in cluster.deletions
    ]
    return raise_epochs(cluster, rows)


def classify_log(cluster: Cluster, broker: int, name: TopicPartition) -> LogKind:
    """Classify one log by the current state."""
    if name.topic in cluster.deletions:
        return LogKind.NOT_STRAY
    row = cluster.row_of(*name)
    if row is None:
        is_deleted = name.topic not in cluster.topics and name.topic in cluster.deleted_topics
        return LogKind.DELETED_TOPIC if is_deleted else LogKind.UNKNOWN
    columns = cluster.columns
    replicas, isr = columns.replicas_of(row), columns.isr_of(row)
    if broker in replicas or row in cluster.moves or broker in isr:
        return LogKind.NOT_STRAY
    is_healthy = int(columns.leader[row]) in cluster.unfenced() and set(replicas) == set(isr)
    return LogKind.UNASSIGNED if is_healthy else LogKind.UNASSIGNED_UNHEALTHY


def decide_stray_logs_found(cluster: Cluster, event: zookeeper_events.StrayLogsFound) -> Decision[None]:
    """Delete stray logs of a broker, classified again by the current state."""
    if not _is_registered(cluster, event.broker, event.broker_epoch):
        return decision()
    unassigned: list[tuple[TopicPartition, int]] = []
    deleted: list[tuple[TopicPartition, int]] = []
    for name in event.partitions:
        kind, row = classify_log(cluster, event.broker, name), cluster.row_of(*name)
        if kind is LogKind.UNASSIGNED and row is not None:
            unassigned.append((name, int(cluster.columns.leader_epoch[row])))
        elif kind is LogKind.DELETED_TOPIC:
            deleted.append((name, EPOCH_DURING_DELETE))
    names = tuple(name for name, _ in unassigned)
    observed = zookeeper_changes.StrayReplicasObserved(event.broker, names) if names else None
    return decision(observed, sends=_delete(event.broker, [*unassigned, *deleted]))


def decide_unregister_broker(cluster: Cluster, event: events.UnregisterBroker) -> Decision[Failure | None]:
    """Stop waiting for stray replicas of an offline broker; if it returns, its logs are compared with the assignments."""
    if event.broker in cluster.unfenced():
        message = f"Broker {event.broker} is running. Stop it before it is unregistered."
        return Decision(reply=Failure(ErrorCode.INVALID_REQUEST, message))
    if not any(event.broker in brokers for brokers in cluster.stray_replicas.values()):
        message = f"Broker {event.broker} is not registered, and no stray replica on it is known."
        return Decision(reply=Failure(ErrorCode.BROKER_ID_NOT_REGISTERED, message))
    return Decision((changes.BrokerUnregistered(event.broker),), then=(zookeeper_events.AdvanceDeletions(),))


def _is_registered(cluster: Cluster, broker: int, epoch: int) -> bool:
    known = cluster.brokers.get(broker)
    return known is not None and known.epoch == epoch


def _delete(broker: int, logs: Iterable[tuple[TopicPartition, int]]) -> list[Send]:
    names, epochs = [], []
    for name, epoch in logs:
        names.append(name)
        epochs.append(epoch)
    return [SendStopReplica(broker, tuple(names), tuple(epochs), delete=True)] if names else []
