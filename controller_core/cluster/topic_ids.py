"""Topic ids for topics that have none (KIP-516).

Brokers with an inter.broker.protocol.version below 2.8, and Kafka's tools of that time, create topics without an id. Kafka's
controller gives them one when it becomes active and when such a topic appears (KafkaController.processTopicIds,
KafkaZkClient.setTopicIds). Tiered storage and the migration to KRaft need the ids.
"""

from collections.abc import Iterator

from controller_core.model.changes import TopicIdAssigned
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.events import AssignTopicIds


def without_topic_id(cluster: Cluster) -> Iterator[str]:
    """Name the topics that have no id and are to stay."""
    return (
        topic.name
        for topic in cluster.topics.values()
        if topic.topic_id is None and topic.name not in cluster.deletions
    )


def decide_assign_topic_ids(cluster: Cluster, event: AssignTopicIds) -> Decision[None]:
    """Assign the ids that were drawn, except to topics that have an id already or are to be deleted."""
    missing = frozenset(without_topic_id(cluster))
    return decision(*(TopicIdAssigned(name, topic_id) for name, topic_id in event.ids.items() if name in missing))
