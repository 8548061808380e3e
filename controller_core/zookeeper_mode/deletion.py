"""Topic deletion (kafka.controller.TopicDeletionManager; protocol notes, Z80 to Z83).

Goals: a topic's znode is deleted only after the brokers of all replicas have confirmed that their logs are deleted (C10; protocol
notes, Z81); a deletion that cannot continue is kept and continues later; a controller that takes over starts it again from the queue.

    queued      The name is in /admin/delete_topics: no elections, moves or new partitions for the topic from now on.
    blocked     Brokers have not reported `delete.topic.enable` yet (`broker_settings`).
                A replica's broker is offline, or its log directory failed: checked again when brokers change.
                A move of the topic is running: the topic is in service until the move has ended.
                A broker refused: retried when brokers change, and by events that request a retry.
    started     All brokers are sent leader -2, as if the topic did not exist. Every replica is sent a request to stop, then one to
                delete its log.
    removed     All replicas have answered: the topic's znodes are deleted, the name in the queue last.
    withdrawn   Brokers report `delete.topic.enable=false`: the name is removed from the queue, and the topic returns to
                service. A deletion that waits for live brokers ends first: their logs are being deleted.

If a broker fails before it has answered, the deletion is blocked. When it is back, all replicas get the requests again; repeating
them does no harm.

A broker that was offline when a partition moved away from it (`Cluster.stray_replicas`) may have a log of the topic, so it counts as a
replica here. The topic's name is free only when that log is deleted; otherwise a new topic of that name would meet the old log. If such
a broker never returns, `UnregisterBroker` ends the wait (`stray_logs`).
"""

from collections.abc import Iterable, Mapping

import numpy as np

from controller_core import model
from controller_core.decisions.topics import check_deletions
from controller_core.model import changes, columns, events, settings, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, Send, SendMetadata, SendStopReplica, decision
from controller_core.model.ids import EPOCH_DURING_DELETE
from controller_core.model.move import without
from controller_core.zookeeper_mode.stray_logs import deleted_stale_logs
from kafka_wire import Failure


def decide_delete_topics(cluster: model.Cluster, event: events.DeleteTopics) -> Decision[dict[str, Failure | None]]:
    """Queue topics that exist; a topic that is already queued is no error, and its caller waits for the same deletion.

    The front refuses requests while `delete.topic.enable` is false; here the request was accepted before the setting changed.
    """
    results = check_deletions(cluster, event)
    if cluster.topic_deletion is settings.TopicDeletion.DISABLED:
        return Decision(reply=results)
    queue = tuple(name for name, failure in results.items() if failure is None and name not in cluster.deletions)
    made = (zookeeper_changes.DeletionQueued(queue, model.Origin.REQUESTED),) if queue else ()
    return Decision(made, then=(zookeeper_events.AdvanceDeletions(),), reply=results)


def decide_deletions_read(cluster: model.Cluster, event: zookeeper_events.DeletionsRead) -> Decision[None]:
    """Accept names that another process queued; remove names without a topic from the queue.

    All names are removed while `delete.topic.enable` is false (KafkaController.processTopicDeletion).
    """
    if cluster.topic_deletion is settings.TopicDeletion.DISABLED:
        names = tuple(name for name in event.names if name not in cluster.deletions)
        return decision(
            zookeeper_changes.DeletionDequeued(names) if names else None, then=(zookeeper_events.AdvanceDeletions(),)
        )
    known = tuple(name for name in event.names if name in cluster.topics and name not in cluster.deletions)
    unknown = tuple(name for name in event.names if name not in cluster.topics)
    return decision(
        zookeeper_changes.DeletionQueued(known, model.Origin.OBSERVED) if known else None,
        zookeeper_changes.DeletionDequeued(unknown) if unknown else None,
        then=(zookeeper_events.AdvanceDeletions(),),
    )


def decide_advance_deletions(cluster: model.Cluster, event: zookeeper_events.AdvanceDeletions) -> Decision[None]:
    """Advance every queued deletion as far as possible."""
    made: list[changes.Change] = []
    sends: list[Send] = []
    then: list[events.Event] = []
    withdrawn = withdrawn_deletions(cluster)
    if withdrawn:
        made.append(zookeeper_changes.DeletionDequeued(withdrawn))
        # Assignments are not repaired while topics are being deleted; they are when topics return to service.
        names = frozenset(withdrawn)
        then += [
            events.RepairPartitions(names),
            zookeeper_events.ResumeTopics(names),
            zookeeper_events.RepairAssignments(),
            events.AdvanceMoves(names),
        ]
    for name, deletion in cluster.deletions.items():
        if name in withdrawn:
            continue
        topic = cluster.topics[name]
        if deletion.started:
            if not deletion.waiting:
                made.append(changes.TopicRemoved(name, model.Origin.REQUESTED))
            elif offline := set(deletion.waiting) - cluster.unfenced():
                made.append(zookeeper_changes.DeletionBlocked(name, f"brokers {sorted(offline)} are offline"))
        elif deletion.refused and not event.retry:
            continue
        elif reason := _why_blocked(cluster, topic):
            if reason != deletion.blocked:
                made.append(zookeeper_changes.DeletionBlocked(name, reason))
        else:
            started = _start(cluster, topic)
            made.append(started)
            sends += _deletion_requests(cluster, topic, started)
            if not started.waiting and zookeeper_events.AdvanceDeletions() not in then:
                # No broker has a replica, so no response will cause the next check.
                then.append(zookeeper_events.AdvanceDeletions())
    return decision(*made, sends=sends, then=then)


def _why_blocked(cluster: model.Cluster, topic: model.Topic) -> str:
    """Return why a topic cannot be deleted now; empty if it can."""
    if cluster.topic_deletion is not settings.TopicDeletion.ENABLED:
        return "no broker has reported delete.topic.enable"
    if cluster.is_moving(topic):
        return "a reassignment of the topic is running"
    # The controller's id may be in an assignment that was written while no Steward controller was active; it has no log.
    hosts = set(columns.unpad(np.unique(cluster.columns.replicas[topic.rows]))) - {cluster.controller_id}
    if offline := sorted(hosts - cluster.unfenced()):
        return f"brokers {offline} are offline"
    rows = topic.rows.tolist()
    stray = {broker for row in rows for broker in cluster.stray_replicas.get(row, ())}
    if unreachable := sorted(stray - cluster.unfenced()):
        return (
            f"brokers {unreachable} were offline when partitions moved away and may have their logs; "
            "start these brokers, or unregister those that never return"
        )
    if failed := sorted({broker for row in rows for broker in cluster.offline_at(row) - cluster.refused_at(row)}):
        return f"brokers {failed} have replicas in failed log directories"
    return ""


def _start(cluster: model.Cluster, topic: model.Topic) -> zookeeper_changes.DeletionStarted:
    waiting: dict[int, list[int]] = {}
    for row in topic.rows.tolist():
        hosts = (*cluster.columns.replicas_of(row), *sorted(cluster.stray_replicas.get(row, ())))
        for broker in without(hosts, (cluster.controller_id,)):
            waiting.setdefault(broker, []).append(int(cluster.columns.partition[row]))
    return zookeeper_changes.DeletionStarted(topic.name, waiting)


def _deletion_requests(
    cluster: model.Cluster, topic: model.Topic, started: zookeeper_changes.DeletionStarted
) -> Iterable[Send]:
    """Return the requests of a deletion in Kafka's order: UpdateMetadata to all brokers, then stop and delete to the replicas."""
    yield SendMetadata(tuple(sorted(cluster.unfenced())), topic.rows, deleting=True)
    for delete in (False, True):
        for broker, partitions in started.waiting.items():
            names = tuple(model.TopicPartition(topic.name, partition) for partition in partitions)
            yield SendStopReplica(broker, names, (EPOCH_DURING_DELETE,) * len(names), delete)


def decide_stop_replica_answered(cluster: model.Cluster, event: zookeeper_events.StopReplicaAnswered) -> Decision[None]:
    """Record the replicas that were deleted for deletions and moves, and continue these.

    A replica that could not be deleted blocks its topic's deletion until a retry. A move continues: its target is in service, and
    the error (such as a failed disk) is in the broker's log.
    """
    made: list[changes.Change] = []
    then: list[events.Event] = []
    for name, partitions in _by_topic(event.done).items():
        if name in cluster.deletions:
            made.append(zookeeper_changes.ReplicasDeleted(name, event.broker, partitions))
    for partition, reason in event.failed.items():
        if partition.topic in cluster.deletions:
            message = f"broker {event.broker} could not delete {partition.topic}-{partition.partition}: {reason}"
            made.append(zookeeper_changes.DeletionBlocked(partition.topic, message, refused=True))
    if made:
        then.append(zookeeper_events.AdvanceDeletions())
    replaced = deleted_stale_logs(cluster, event)
    if replaced is not None:
        made.append(replaced)
    moved = [partition for partition in (*event.done, *event.failed) if _answers_a_move(cluster, event, partition)]
    if moved:
        made += [
            zookeeper_changes.ReplicaRemovalAnswered(partition.topic, partition.partition, event.broker)
            for partition in moved
        ]
        then.append(events.AdvanceMoves(frozenset(partition.topic for partition in moved)))
    return decision(*made, then=then)


def _answers_a_move(
    cluster: model.Cluster, event: zookeeper_events.StopReplicaAnswered, partition: model.TopicPartition
) -> bool:
    """Whether a response belongs to the request that the partition's move waits for, and not to an earlier move."""
    row = cluster.row_of(*partition)
    if row is None:
        return False
    if row not in cluster.moves:
        return event.broker in cluster.stray_replicas.get(row, ())
    move = cluster.moves[row]
    return event.leader_epochs.get(partition, model.NO_EPOCH) >= move.removal_epoch


def _by_topic(partitions: Iterable[model.TopicPartition]) -> Mapping[str, tuple[int, ...]]:
    groups: dict[str, list[int]] = {}
    for partition in partitions:
        groups.setdefault(partition.topic, []).append(partition.partition)
    return {name: tuple(numbers) for name, numbers in groups.items()}


def withdrawn_deletions(cluster: model.Cluster) -> tuple[str, ...]:
    """Return deletions that must not start or continue, since `delete.topic.enable` is false.

    A deletion that waits for live brokers is not among them: it ends, or is blocked and then withdrawn.
    """
    if cluster.topic_deletion is not settings.TopicDeletion.DISABLED:
        return ()
    return tuple(name for name, deletion in cluster.deletions.items() if not deletion.started)


def is_being_deleted(deletion: model.Deletion | None) -> bool:
    """Whether brokers have been sent the deletion of the topic."""
    return deletion is not None and deletion.started
