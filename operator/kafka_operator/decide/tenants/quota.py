"""Quotas: numbers of topics and partitions of a namespace on a Cluster of another namespace.

A topic counts from before it is created until Kafka does not have it any more, whatever becomes of the Topic resource: deletionPolicy
Retain, policy Observe, a pause, a finalizer that was taken off. Its namespace can edit and delete its Topic, so what counts is kept in
the Cluster's status, which it cannot write:

    status.countedTopics   written before a topic is created, grown or taken over; one entry for each Kafka topic
                           dropped when Kafka does not have the topic, or a Topic without a quota has taken it over

Topics that were there before the quota are counted from their resources, and noted when they are next reconciled. Quotas limit what is
added: what a namespace has is counted first and is never taken away, then what its Topics want, the oldest first, so that every process
comes to the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafka_operator.decide.tenants.ownership import by_seniority
from kafka_operator.decide.tenants.tenancy import Refusal, quota_of, refusal_of_topic
from kafka_operator.names import ORIGIN
from kafka_operator.resources.allowed import AllowedNamespaces
from kafka_operator.resources.cluster import Cluster, CountedTopic
from kafka_operator.resources.topic import Topic
from reconciler.names import Key

QUOTA_EXCEEDED = "QuotaExceeded"

MAX_COUNTED = 4_000
"""Topics that one Cluster counts: with the longest names some 1.2 MB of its status, and etcd stores objects of up to 1.5 MB."""


def quota_refusals(cluster: Cluster, topics: Iterable[Topic]) -> dict[Key, Refusal]:
    """Return those of a Cluster's Topics for which their namespaces have no room left."""
    declared: dict[str, list[Topic]] = {}
    for topic in topics:
        declared.setdefault(topic.key.namespace, []).append(topic)
    refusals: dict[Key, Refusal] = {}
    room = MAX_COUNTED - len(cluster.status.counted_topics)
    for namespace, items in sorted(declared.items()):
        found = quota_of(cluster, namespace)
        if found is not None:
            current = _current(cluster, namespace, items)
            before = len(current)
            refusals |= _without_room(cluster, *found, items, current, room)
            room -= len(current) - before
    return refusals


def uncounted(cluster: Cluster, topics: Iterable[Topic]) -> dict[str, str]:
    """Return the counted topics that no Topic of their namespaces declares and manages, with those namespaces.

    Whether Kafka still has them is seen only by asking it.
    """
    managed = {
        (topic.key.namespace, topic.name) for topic in topics if _may_ask(cluster, topic) and not topic.metadata.paused
    }
    return {
        item.name: item.namespace
        for item in cluster.status.counted_topics
        if (item.namespace, item.name) not in managed
    }


def counted_after(
    cluster: Cluster, held: Mapping[str, tuple[str, int]], gone: Collection[str]
) -> tuple[CountedTopic, ...]:
    """Return what counts from now on: `held` are Kafka topics with the namespace and the partitions that they count for."""
    counted = {item.name: item for item in cluster.status.counted_topics if item.name not in gone}
    for name, (namespace, partitions) in sorted(held.items()):
        if quota_of(cluster, namespace) is None:
            counted.pop(name, None)
        elif name in counted or len(counted) < MAX_COUNTED:
            counted[name] = CountedTopic(name, namespace, partitions)
    return tuple(counted[name] for name in sorted(counted))


def _current(cluster: Cluster, namespace: str, topics: Iterable[Topic]) -> dict[str, int]:
    """Return the topics that a namespace has, with their partitions: those that are noted, and those that its Topics show."""
    elsewhere = {item.name for item in cluster.status.counted_topics if item.namespace != namespace}
    current = {item.name: item.partitions for item in cluster.status.counted_topics if item.namespace == namespace}
    for topic in topics:
        managed = topic.metadata.has_finalizer or topic.metadata.annotation(ORIGIN) is not None
        shown = topic.status.partitions or 0
        if managed and shown and topic.name not in elsewhere:
            current[topic.name] = max(shown, current.get(topic.name, 0))
    return current


def _without_room(
    cluster: Cluster, index: int, rule: AllowedNamespaces, declared: list[Topic], current: dict[str, int], room: int
) -> dict[Key, Refusal]:
    """Give what room there is to the oldest first; a topic that finds none leaves it to younger ones that are smaller.

    `current` gets what was granted.
    """
    partitions, refusals = sum(current.values()), dict[Key, Refusal]()
    for topic in by_seniority(item for item in declared if _may_ask(cluster, item)):
        more_topics = int(topic.name not in current)
        more_partitions = max(0, topic.partitions - current.get(topic.name, 0))
        if not more_partitions:
            continue
        where = f"namespace {topic.key.namespace} on Cluster {cluster.ref}", f"spec.allowedNamespaces[{index}]"
        if more_topics and rule.max_topics is not None and len(current) + more_topics > rule.max_topics:
            message = f"The quota of {rule.max_topics} topics of {where[0]} ({where[1]}.maxTopics) is exhausted."
        elif rule.max_partitions is not None and partitions + more_partitions > rule.max_partitions:
            message = (
                f"The quota of {rule.max_partitions} partitions of {where[0]} ({where[1]}.maxPartitions) is exceeded: "
                f"{partitions} are in use, {more_partitions} more are requested."
            )
        elif more_topics and room <= 0:
            message = f"Cluster {cluster.ref} counts at most {MAX_COUNTED} topics of namespaces with a quota."
        else:
            current[topic.name] = topic.partitions
            partitions, room = partitions + more_partitions, room - more_topics
            continue
        refusals[topic.key] = Refusal(
            QUOTA_EXCEEDED,
            f"{message} Older Topics take precedence, and a topic counts until it is deleted from Kafka.",
        )
    return refusals


def _may_ask(cluster: Cluster, topic: Topic) -> bool:
    """Return whether a Topic competes for quota: one that is deleted, only observes, or has a forbidden name does not."""
    if topic.observes or topic.metadata.deleted is not None:
        return False
    return refusal_of_topic(cluster, topic.key.namespace, topic.name) is None
