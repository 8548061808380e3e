"""Known topics whose assignment somebody else wrote: partitions were added, moves started or ended, another topic stands there.

What is written counts. Added partitions get their first leader like those of a new topic. While the topic is queued for
deletion it gets none: the assignment is written back as it was known (KafkaController.processPartitionModifications,
restorePartitionReplicaAssignment), so that nothing is left behind by a deletion that has counted its replicas.

Leaves out how a change is noticed (`shell.zookeeper.assignments`), and the same found by a refused write (`refresh`).
"""

from controller_core.model.changes import AssignmentRestored, Change, TopicObserved
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.events import (
    AdvanceMoves,
    Event,
    Heal,
    RepairAssignments,
    TopicRecord,
    TopicsChanged,
    TopicsRead,
)


def decide_topics_changed(cluster: Cluster, event: TopicsChanged) -> Decision[None]:
    """Take in what is written of topics, or undo it where a topic is to be deleted."""
    changes: list[Change] = []
    replaced: list[TopicRecord] = []
    for record in event.topics:
        topic = cluster.topics.get(record.name)
        if topic is None:
            continue
        if None not in {topic.topic_id, record.topic_id} and topic.topic_id != record.topic_id:
            replaced.append(record)
        elif record.version <= topic.version:
            continue  # Known already, since the event was decided before.
        elif record.name in cluster.deletions and _adds_partitions(cluster, record):
            changes.append(AssignmentRestored(record.name, record.version))
        else:
            changes.append(observed_topic(record))
    observed = frozenset(change.name for change in changes if isinstance(change, TopicObserved))
    then: list[Event] = [Heal(observed), RepairAssignments(), AdvanceMoves(observed)] if observed else []
    if replaced:
        then.append(TopicsRead(tuple(replaced), tuple(record.name for record in replaced)))
    return decision(*changes, then=then)


def observed_topic(record: TopicRecord) -> TopicObserved:
    """Turn what is written of a known topic into a change."""
    return TopicObserved(record.name, record.replicas, record.adding, record.removing, record.version, record.topic_id)


def _adds_partitions(cluster: Cluster, record: TopicRecord) -> bool:
    return any(cluster.row_of(record.name, partition) is None for partition in record.replicas)
