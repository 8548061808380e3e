"""Queries of the Kafka operator to the cache: Clusters and what refers to them, and Topics by their Kafka topic."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_operator import kinds
from kafka_operator.decide.tenants.tenancy import serves
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.cluster_ref import ClusterRef, cluster_key
from kafka_operator.resources.election import Election
from kafka_operator.resources.reassignment import Reassignment
from kafka_operator.resources.topic import Topic
from reconciler.engine.cache import Index, ResourceCache
from reconciler.names import Key
from reconciler.resources.resource import Resource

OfCluster = Topic | Reassignment | Election


class Cache(ResourceCache):
    """All resources by name, by Cluster, and Topics by their Kafka topic."""

    def __init__(self) -> None:
        self._by_cluster = Index(_cluster_of)
        self._by_topic_name = Index(_topic_name_of)
        super().__init__(self._by_cluster, self._by_topic_name)

    def cluster(self, ref: ClusterRef) -> Cluster | None:
        """Return the Cluster that a reference names."""
        return self.get_as(Cluster, cluster_key(ref))

    def topic(self, key: Key) -> Topic | None:
        """Return a Topic."""
        return self.get_as(Topic, key)

    def reassignment(self, key: Key) -> Reassignment | None:
        """Return a Reassignment."""
        return self.get_as(Reassignment, key)

    def election(self, key: Key) -> Election | None:
        """Return an Election."""
        return self.get_as(Election, key)

    def dependents(self, ref: ClusterRef) -> Iterator[OfCluster]:
        """Return the resources that refer to a Cluster."""
        for key in self._by_cluster.keys(ref):
            resource = self.get(key)
            if isinstance(resource, Topic | Reassignment | Election):
                yield resource

    def identity(self, ref: ClusterRef) -> str:
        """Return the identity of a Kafka cluster: the id reported by its brokers, or the Cluster's name until the id is known.

        Two Clusters may reach the same Kafka cluster. A broker may report any id, so this alone links no two namespaces.
        """
        cluster = self.cluster(ref)
        known = None if cluster is None else cluster.status.cluster_id
        return known or f"{ref.namespace}/{ref.name}"

    def same_cluster(self, ref: ClusterRef) -> list[ClusterRef]:
        """Return the Clusters that reach the same Kafka cluster, including this one.

        Those of another namespace are included only if this Cluster allows that namespace (spec.allowedNamespaces).
        """
        here, identity = self.cluster(ref), self.identity(ref)
        if here is None:
            return [ref]
        return [
            cluster.ref
            for cluster in self.all_of(kinds.CLUSTER)
            if isinstance(cluster, Cluster)
            and self.identity(cluster.ref) == identity
            and serves(here, cluster.key.namespace)
        ]

    def claims(self, topic: Topic) -> list[Topic]:
        """Return the Topics that name the same Kafka topic of the same Kafka cluster, including this one."""
        refs = set(self.same_cluster(topic.cluster))
        named = (self.topic(key) for key in self.named(topic.name))
        return [claim for claim in named if claim is not None and claim.cluster in refs]

    def named(self, topic_name: str) -> list[Key]:
        """Return the Topics that name a Kafka topic, on any cluster."""
        return self._by_topic_name.keys(topic_name)


def _cluster_of(resource: Resource) -> ClusterRef | None:
    return resource.cluster if isinstance(resource, Topic | Reassignment | Election) else None


def _topic_name_of(resource: Resource) -> str | None:
    return resource.name if isinstance(resource, Topic) else None
