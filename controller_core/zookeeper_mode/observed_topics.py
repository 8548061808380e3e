"""Topics and assignments as other processes wrote them, and topic ids.

New topics. Brokers in ZooKeeper mode create topics (auto-creation, internal topics) and assign them to all brokers that they know,
including the controller. Such an assignment is repaired before the topic becomes online, so that no assignment contains the
controller's id (protocol notes, Z22): each occurrence is replaced with the live broker that has the fewest replicas in the
topic and none of this partition. Without such a broker the partition loses that replica.

Changed assignments of known topics take effect as they are written: partitions were added, moves started or ended, or the topic was
replaced. Added partitions get their first leader like those of a new topic. While the topic is queued for deletion, an assignment with
added partitions is overwritten with the known one (KafkaController.processPartitionModifications, restorePartitionReplicaAssignment), so
that the deletion covers all replicas. `shell.zookeeper.assignments` finds changes by polling, `shell.zookeeper.refresh` after a refused
write.

Topic ids (KIP-516). Brokers with an inter.broker.protocol.version below 2.8, and Kafka's tools of that time, create topics without an
id. Kafka's controller assigns one when it becomes active and when such a topic appears (KafkaController.processTopicIds,
KafkaZkClient.setTopicIds). Tiered storage and the migration to KRaft need the ids.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from controller_core import model
from controller_core.model import changes, columns, events, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, decision
from controller_core.model.move import plan_move, without


def decide_topics_read(cluster: model.Cluster, event: zookeeper_events.TopicsRead) -> Decision[None]:
    """Remove topics that no longer exist, and add new ones; a name in both lists is another topic of that name."""
    removed = [changes.TopicRemoved(name, model.Origin.OBSERVED) for name in event.removed if name in cluster.topics]
    known = cluster.topics.keys() - set(event.removed)
    added = [build_topic_added(cluster, record) for record in event.added if record.name not in known]
    then: list[events.Event] = []
    if added:
        names = frozenset(change.name for change in added)
        then = [events.RepairPartitions(names), events.AdvanceMoves(names)]
    if removed and cluster.deletions:
        then.append(zookeeper_events.AdvanceDeletions())
    return decision(*removed, *added, then=then)


def decide_repair_assignments(cluster: model.Cluster) -> Decision[None]:
    """Move partitions away from the controller's id, if it was assigned while no Steward controller was active.

    Such a partition may be in service, so it is moved like any other: the new replica joins the ISR first. If its ISR contains
    the id, it is not moved: a broker with this id has its records (`controller_id`).
    """
    moves: dict[str, dict[int, model.Move]] = {}
    hosted = cluster.columns.hosted_by(cluster.columns.flags([cluster.controller_id]))
    for topic, rows in cluster.by_topic(hosted.tolist()):
        if topic.name in cluster.deletions:
            continue
        idle = [row for row in rows if row not in cluster.moves and not _has_records(cluster, row)]
        current = {cluster.name_of(row).partition: cluster.columns.replicas_of(row) for row in idle}
        repaired = repair(current, cluster.controller_id, tuple(sorted(cluster.may_lead())))
        # Without a broker that can replace the id there is no move to start.
        targets = {name: target for name, target in repaired.items() if target != current[name]}
        if targets:
            moves[topic.name] = {name: plan_move(current[name], (), target) for name, target in targets.items()}
    # A partition that was assigned only to the controller's id now has a replica that can lead.
    then = (events.RepairPartitions(frozenset(moves)),) if moves else ()
    return decision(*(zookeeper_changes.MovesStarted(name, of_topic) for name, of_topic in moves.items()), then=then)


def _has_records(cluster: model.Cluster, row: int) -> bool:
    """Whether the controller's id is in a partition's ISR."""
    return cluster.controller_id in cluster.columns.isr_of(row)


def build_topic_added(
    cluster: model.Cluster, record: zookeeper_events.StoredTopic, *, repaired: bool = True
) -> changes.TopicAdded:
    """Return the change that adds a topic as found, without the controller's id in its assignment unless `repaired` is false."""
    replicas = (
        repair(record.replicas, cluster.controller_id, tuple(sorted(cluster.may_lead())))
        if repaired
        else record.replicas
    )
    topic_id = record.topic_id or record.new_id
    is_as_written = replicas == dict(record.replicas) and topic_id == record.topic_id
    names = sorted(replicas)
    moves = {
        partition: model.Move(replicas[partition], record.adding.get(partition, ()), record.removing.get(partition, ()))
        for partition in names
        if record.adding.get(partition) or record.removing.get(partition)
    }
    return changes.TopicAdded(
        record.name,
        topic_id,
        np.array(names, dtype=np.int32),
        columns.pad([replicas[partition] for partition in names]),
        model.Origin.OBSERVED if is_as_written else model.Origin.REPAIRED,
        moves,
        record.configs,
    )


def repair(
    assignment: Mapping[int, model.Replicas], controller_id: int, live: model.Replicas
) -> dict[int, model.Replicas]:
    """Replace the controller's id in an assignment.

    >>> repair({0: (1, 1000), 1: (1000, 2), 2: (1, 2)}, 1000, (1, 2, 3))
    {0: (1, 3), 1: (3, 2), 2: (1, 2)}
    """
    load = Counter(replica for replicas in assignment.values() for replica in replicas)
    repaired: dict[int, model.Replicas] = {}
    for partition, replicas in assignment.items():
        chosen = list(replicas)
        for position, replica in enumerate(replicas):
            if replica == controller_id:
                free = [broker for broker in live if broker not in chosen]
                chosen[position] = min(free, key=lambda broker: (load[broker], broker), default=controller_id)
                load[chosen[position]] += 1
        # A partition needs a replica, so the id stays until a live broker can replace it.
        repaired[partition] = without(chosen, (controller_id,)) or replicas
    return repaired


def decide_topics_changed(cluster: model.Cluster, event: zookeeper_events.TopicsChanged) -> Decision[None]:
    """Apply assignments as they are written, or restore the known ones of topics that are queued for deletion.

    The store drops the changes of records that are not newer than the known state (`znode_versions`), such as those that an earlier
    decision about this event has applied.
    """
    made: list[changes.Change] = []
    replaced: list[zookeeper_events.StoredTopic] = []
    for record in event.topics:
        topic = cluster.topics.get(record.name)
        if topic is None:
            continue
        if None not in {topic.topic_id, record.topic_id} and topic.topic_id != record.topic_id:
            replaced.append(record)
        elif record.name in cluster.deletions and _adds_partitions(cluster, record):
            made.append(zookeeper_changes.AssignmentRestored(record.name))
        else:
            made.append(build_topic_observed(record))
    observed = frozenset(change.name for change in made if isinstance(change, zookeeper_changes.TopicObserved))
    then: list[events.Event] = (
        [events.RepairPartitions(observed), zookeeper_events.RepairAssignments(), events.AdvanceMoves(observed)]
        if observed
        else []
    )
    if replaced:
        then.append(zookeeper_events.TopicsRead(tuple(replaced), tuple(record.name for record in replaced)))
    return decision(*made, then=then)


def build_topic_observed(record: zookeeper_events.StoredTopic) -> zookeeper_changes.TopicObserved:
    """Return the change that applies the written assignment of a known topic."""
    return zookeeper_changes.TopicObserved(
        record.name, record.replicas, record.adding, record.removing, record.topic_id
    )


def _adds_partitions(cluster: model.Cluster, record: zookeeper_events.StoredTopic) -> bool:
    return any(cluster.row_of(record.name, partition) is None for partition in record.replicas)


def topics_without_id(cluster: model.Cluster) -> Iterator[str]:
    """Return the topics without an id that are not queued for deletion."""
    return (
        topic.name
        for topic in cluster.topics.values()
        if topic.topic_id is None and topic.name not in cluster.deletions
    )


def decide_assign_topic_ids(cluster: model.Cluster, event: zookeeper_events.AssignTopicIds) -> Decision[None]:
    """Assign the generated ids, except to topics that have an id or are queued for deletion."""
    missing = frozenset(topics_without_id(cluster))
    return decision(
        *(zookeeper_changes.TopicIdAssigned(name, topic_id) for name, topic_id in event.ids.items() if name in missing)
    )
