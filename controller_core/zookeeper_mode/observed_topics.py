"""What was found written by someone else: topics that appeared or vanished.

Brokers in ZooKeeper mode create topics by themselves (auto-creation, internal topics), over every broker they know of, and
they know the controller as one. Such an assignment is repaired before the topic becomes online, so that no assignment ever
names the controller's id (protocol notes, Z22): each occurrence is replaced by the live broker that has the fewest replicas in the
topic and none of this partition. Where there is no such broker the partition loses that replica.

Leaves out topics that grew by someone else's hand.
"""

# MERGED controller_core.zookeeper_mode.observed_topics: """Known topics whose assignment somebody else wrote: partitions were added, moves started or ended, another topic stands there.
# MERGED controller_core.zookeeper_mode.observed_topics:
# MERGED controller_core.zookeeper_mode.observed_topics: What is written counts. Added partitions get their first leader like those of a new topic. While the topic is queued for
# MERGED controller_core.zookeeper_mode.observed_topics: deletion it gets none: the assignment is written back as it was known (KafkaController.processPartitionModifications,
# MERGED controller_core.zookeeper_mode.observed_topics: restorePartitionReplicaAssignment), so that nothing is left behind by a deletion that has counted its replicas.
# MERGED controller_core.zookeeper_mode.observed_topics:
# MERGED controller_core.zookeeper_mode.observed_topics: Leaves out how a change is noticed (`shell.zookeeper.assignments`), and the same found by a refused write (`refresh`).
# MERGED controller_core.zookeeper_mode.observed_topics: """
# MERGED controller_core.zookeeper_mode.observed_topics: """Topic ids for topics that have none (KIP-516).
# MERGED controller_core.zookeeper_mode.observed_topics:
# MERGED controller_core.zookeeper_mode.observed_topics: Brokers with an inter.broker.protocol.version below 2.8, and Kafka's tools of that time, create topics without an id. Kafka's
# MERGED controller_core.zookeeper_mode.observed_topics: controller gives them one when it becomes active and when such a topic appears (KafkaController.processTopicIds,
# MERGED controller_core.zookeeper_mode.observed_topics: KafkaZkClient.setTopicIds). Tiered storage and the migration to KRaft need the ids.
# MERGED controller_core.zookeeper_mode.observed_topics: """
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.columns import pad
from controller_core.model.decision import Decision, decision
from controller_core.model.move import Move, Replicas, plan_move, without


def decide_topics_read(cluster: Cluster, event: events.TopicsRead) -> Decision[None]:
    """Forget topics that vanished, and take in those that appeared; a name in both lists is another topic by now."""
    removed = [changes.TopicRemoved(name, changes.Origin.OBSERVED) for name in event.removed if name in cluster.topics]
    known = cluster.topics.keys() - set(event.removed)
    added = [build_topic_added(cluster, record) for record in event.added if record.name not in known]
    then: list[events.Event] = []
    if added:
        names = frozenset(change.name for change in added)
        then = [events.RepairPartitions(names), events.AdvanceMoves(names)]
    if removed and cluster.deletions:
        then.append(events.AdvanceDeletions())
    return decision(*removed, *added, then=then)


def decide_repair_assignments(cluster: Cluster) -> Decision[None]:
    """Move partitions away from the controller's id, if it was assigned while no Steward controller was active.

    Such a partition may be in service, so it is moved like any other: the new replica joins the ISR first. One whose ISR
    contains the id is left alone: a broker with this id has its records (own_replicas).
    """
    moves: dict[str, dict[int, Move]] = {}
    hosted = cluster.columns.hosted_by(cluster.columns.flags([cluster.controller_id]))
    for topic, rows in cluster.by_topic(hosted.tolist()):
        if topic.name in cluster.deletions:
            continue
        idle = [row for row in rows if row not in cluster.moves and not _has_records(cluster, row)]
        present = {cluster.name_of(row).partition: cluster.columns.replicas_of(row) for row in idle}
        repaired = repair(present, cluster.controller_id, tuple(sorted(cluster.may_lead())))
        # Where no broker could take its place, nothing changes: there is no move to start.
        wanted = {name: target for name, target in repaired.items() if target != present[name]}
        if wanted:
            moves[topic.name] = {name: plan_move(present[name], (), target) for name, target in wanted.items()}
    # A partition that only the controller's id was to hold has a replica now, and can have a leader.
    then = (events.RepairPartitions(frozenset(moves)),) if moves else ()
    return decision(*(changes.MovesStarted(name, of_topic) for name, of_topic in moves.items()), then=then)


def _has_records(cluster: Cluster, row: int) -> bool:
    """Whether the controller's id is in a partition's ISR."""
    return cluster.controller_id in cluster.columns.isr_of(row)


def build_topic_added(cluster: Cluster, record: events.TopicRecord, *, repaired: bool = True) -> changes.TopicAdded:
    """Turn what was found into a change, repaired where it names the controller unless that is left for later."""
    replicas = (
        repair(record.replicas, cluster.controller_id, tuple(sorted(cluster.may_lead())))
        if repaired
        else record.replicas
    )
    topic_id = record.topic_id or record.new_id
    is_as_written = replicas == dict(record.replicas) and topic_id == record.topic_id
    names = sorted(replicas)
    moves = {
        partition: Move(replicas[partition], record.adding.get(partition, ()), record.removing.get(partition, ()))
        for partition in names
        if record.adding.get(partition) or record.removing.get(partition)
    }
    return changes.TopicAdded(
        record.name,
        topic_id,
        np.array(names, dtype=np.int32),
        pad([replicas[partition] for partition in names]),
        changes.Origin.OBSERVED if is_as_written else changes.Origin.REPAIRED,
        moves,
        record.configs,
        version=record.version,
    )


def repair(assignment: Mapping[int, Replicas], controller_id: int, live: Replicas) -> dict[int, Replicas]:
    """Replace the controller's id in an assignment.

    >>> repair({0: (1, 1000), 1: (1000, 2), 2: (1, 2)}, 1000, (1, 2, 3))
    {0: (1, 3), 1: (3, 2), 2: (1, 2)}
    """
    load = Counter(replica for replicas in assignment.values() for replica in replicas)
    repaired: dict[int, Replicas] = {}
    for partition, replicas in assignment.items():
        chosen = list(replicas)
        for place, replica in enumerate(replicas):
            if replica == controller_id:
                free = [broker for broker in live if broker not in chosen]
                chosen[place] = min(free, key=lambda broker: (load[broker], broker), default=controller_id)
                load[chosen[place]] += 1
        # Where no broker lives that could take its place, it stays until one does: a partition needs a replica.
        repaired[partition] = without(chosen, (controller_id,)) or replicas
    return repaired


def decide_topics_changed(cluster: Cluster, event: events.TopicsChanged) -> Decision[None]:
    """Take in what is written of topics, or undo it where a topic is to be deleted."""
    made: list[changes.Change] = []
    replaced: list[events.TopicRecord] = []
    for record in event.topics:
        topic = cluster.topics.get(record.name)
        if topic is None:
            continue
        if None not in {topic.topic_id, record.topic_id} and topic.topic_id != record.topic_id:
            replaced.append(record)
        elif record.version <= topic.version:
            continue  # Known already, since the event was decided before.
        elif record.name in cluster.deletions and _adds_partitions(cluster, record):
            made.append(changes.AssignmentRestored(record.name, record.version))
        else:
            made.append(build_topic_observed(record))
    observed = frozenset(change.name for change in made if isinstance(change, changes.TopicObserved))
    then: list[events.Event] = (
        [events.RepairPartitions(observed), events.RepairAssignments(), events.AdvanceMoves(observed)]
        if observed
        else []
    )
    if replaced:
        then.append(events.TopicsRead(tuple(replaced), tuple(record.name for record in replaced)))
    return decision(*made, then=then)


def build_topic_observed(record: events.TopicRecord) -> changes.TopicObserved:
    """Turn what is written of a known topic into a change."""
    return changes.TopicObserved(
        record.name, record.replicas, record.adding, record.removing, record.version, record.topic_id
    )


def _adds_partitions(cluster: Cluster, record: events.TopicRecord) -> bool:
    return any(cluster.row_of(record.name, partition) is None for partition in record.replicas)


def topics_without_id(cluster: Cluster) -> Iterator[str]:
    """Name the topics that have no id and are to stay."""
    return (
        topic.name
        for topic in cluster.topics.values()
        if topic.topic_id is None and topic.name not in cluster.deletions
    )


def decide_assign_topic_ids(cluster: Cluster, event: events.AssignTopicIds) -> Decision[None]:
    """Assign the ids that were drawn, except to topics that have an id already or are to be deleted."""
    missing = frozenset(topics_without_id(cluster))
    return decision(
        *(changes.TopicIdAssigned(name, topic_id) for name, topic_id in event.ids.items() if name in missing)
    )
