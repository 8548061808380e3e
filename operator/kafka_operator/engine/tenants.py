"""Rights of namespaces from the cache, checked immediately before each step and for each competing resource.

Kafka's id of a cluster is what the brokers of one Cluster report, and a broker can report any id. So a resource that refers to a Cluster
of another namespace is compared with a resource only where the latter's own Cluster allows both namespaces to name the topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kafka_operator.decide.reassignments.reassignment_status import WAITING
from kafka_operator.decide.reassignments.throttle import OtherThrottles
from kafka_operator.decide.tenants.tenancy import (
    Refusal,
    bounded_throttle,
    refusal_of_topic,
    refusal_of_topics,
    refusal_of_whole_cluster,
    serves,
)
from kafka_operator.engine.cache import Cache, OfCluster
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.election import Election
from kafka_operator.resources.reassignment import Reassignment
from kafka_operator.resources.throttle import ThrottleRecord
from kafka_operator.resources.topic import Topic
from reconciler.decide.conditions import TRUE


class Tenants:
    """Rights of namespaces on Clusters."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def refusal_of_move(self, item: Reassignment, recorded: Iterable[str] = ()) -> Refusal | None:
        """Return why a Reassignment may not continue; `recorded` are the topics of its plan and base.

        The status is only compared with the rules and never grants anything.
        """
        cluster = self._cache.cluster(item.cluster)
        if cluster is None:
            return None
        if item.goal is not None and not item.goal.topics:
            refusal = refusal_of_whole_cluster(cluster, item.key.namespace)
            if refusal is not None:
                return refusal
        names = {entry.partition.topic for entry in item.plan} | {entry.topic for entry in item.topics} | set(recorded)
        if item.goal is not None:
            names.update(item.goal.topics)
        if item.status.throttle is not None:
            names.update(entry.topic for entry in item.status.throttle.topics)
        return refusal_of_topics(cluster, item.key.namespace, sorted(names))

    def refusal_of_election(self, item: Election) -> Refusal | None:
        """Return why an Election may not continue."""
        cluster = self._cache.cluster(item.cluster)
        if cluster is None:
            return None
        names = item.selection.topic_names
        if names is None:
            return refusal_of_whole_cluster(cluster, item.key.namespace)
        return refusal_of_topics(cluster, item.key.namespace, sorted(names))

    def may_have(self, topic: Topic) -> bool:
        """Return whether a Topic's namespace may use its name; True if the Cluster is deleted."""
        cluster = self._cache.cluster(topic.cluster)
        return cluster is None or refusal_of_topic(cluster, topic.key.namespace, topic.name) is None

    def may_name(self, here: ClusterRef, other: OfCluster, topic: str) -> bool:
        """Return whether another resource counts for a topic of Cluster `here`, as its owner or as a competitor for its partitions."""
        own, its = self._cache.cluster(here), self._cache.cluster(other.cluster)
        if own is None or its is None:
            return other.cluster == here
        if own.key.namespace == its.key.namespace:
            return refusal_of_topic(its, other.key.namespace, topic) is None
        namespaces = {other.key.namespace, its.key.namespace}
        return all(refusal_of_topic(own, namespace, topic) is None for namespace in namespaces)

    def moves(self, here: ClusterRef) -> Iterator[Reassignment]:
        """Yield the Reassignments of the same Kafka cluster, as far as Cluster `here` lets other namespaces' Clusters count."""
        for ref in self._cache.same_cluster(here):
            for other in self._cache.dependents(ref):
                if isinstance(other, Reassignment):
                    yield other

    def with_bounded_throttle(self, item: Reassignment) -> Reassignment:
        """Return a Reassignment with the throttle that its Cluster allows its namespace."""
        cluster = self._cache.cluster(item.cluster)
        if cluster is None:
            return item
        bounded = bounded_throttle(cluster, item.key.namespace, item.throttle)
        return item if bounded == item.throttle else replace(item, throttle=bounded)

    @staticmethod
    def yields(other: Reassignment, here: ClusterRef) -> bool:
        """Return whether a Reassignment yields to those of the Cluster's namespace: it belongs to another namespace, and submits nothing now.

        Otherwise a Reassignment that is paused, waits, or has a throttle that never suffices, would block the owner's for good. When it continues it
        finds its partitions elsewhere, and ends without touching them.
        """
        if other.key.namespace == here.namespace:
            return False
        waits = any(item.type == WAITING and item.status == TRUE for item in other.status.conditions)
        return other.metadata.paused or waits or not (other.status.handing_over or other.status.rollback)

    def other_throttles(self, item: Reassignment) -> OtherThrottles:
        """Return the throttle records of other Reassignments, by their relation to this one."""
        here = item.cluster
        peers: list[ThrottleRecord] = []
        owners: list[ThrottleRecord] = []
        without_right: list[ThrottleRecord] = []
        tenants: dict[str, list[ThrottleRecord]] = {}
        for other in self.moves(here):
            record, namespace = other.status.throttle, other.key.namespace
            if record is None or other.key == item.key or record.log_dirs != item.is_between_log_dirs:
                continue
            if not all(self.may_name(here, other, topic.topic) for topic in record.topics) or not self._serves(other):
                without_right.append(replace(record, topics=()))
            elif namespace == item.key.namespace:
                peers.append(record)
            elif namespace == here.namespace:
                owners.append(record)
            else:
                tenants.setdefault(namespace, []).append(record)
        groups = tuple(tuple(records) for _, records in sorted(tenants.items()))
        return OtherThrottles(
            tuple(peers), tuple(owners), groups, tuple(without_right), item.key.namespace != here.namespace
        )

    def _serves(self, other: OfCluster) -> bool:
        cluster = self._cache.cluster(other.cluster)
        return cluster is not None and serves(cluster, other.key.namespace)
