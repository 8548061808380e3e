"""Effects of events on other resources: whose decision may have changed when a Cluster, Topic or Reassignment did."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_operator import kinds
from kafka_operator.decide.tenants.quota import QUOTA_EXCEEDED
from kafka_operator.engine.cache import Cache
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.reassignment import Reassignment
from kafka_operator.resources.topic import Topic
from reconciler.decide.conditions import ready_of
from reconciler.names import Key


class Affected:
    """The resources that an event affects; `before` is None for a new or deleted resource."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def by_cluster(self, before: Cluster | None, cluster: Cluster) -> Iterator[Key]:
        """Return all resources of the Cluster if they are served differently now."""
        if before is None or not before.serves_as(cluster):
            yield from (dependent.key for dependent in self._cache.dependents(cluster.ref))

    def by_topic(self, before: Topic | None, topic: Topic) -> Iterator[Key]:
        """Return the Topics that may lose or gain the Kafka topic now, and those that may fit into released quota."""
        if before is not None and before.metadata.generation == topic.metadata.generation:
            return
        if before is None or before.policy is not topic.policy:
            yield from (key for key in self._cache.named(topic.name) if key != topic.key)
        cluster = self._cache.cluster(topic.cluster)
        if cluster is not None and cluster.has_quotas:
            for other in self._cache.dependents(topic.cluster):
                ready = ready_of(other.status.conditions)
                if other.key != topic.key and ready is not None and ready.reason == QUOTA_EXCEEDED:
                    yield other.key

    def by_reassignment(self, before: Reassignment | None, item: Reassignment) -> Iterator[Key]:
        """Return its owner: a Topic mirrors its progress, a Cluster waits for its end."""
        owner = item.metadata.owner
        if owner is None:
            return
        stays = before is not None and before.status.state is item.status.state
        if owner.kind != kinds.CLUSTER or not stays:
            yield owner
