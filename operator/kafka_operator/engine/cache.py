"""Cache of resources, fed by watches, lists and responses to the operator's own writes.

The highest resource version wins, so that a late watch event cannot hide a newer write. Deleted objects are remembered as tombstones, so
that a late event cannot resurrect a Topic and recreate its Kafka topic. Every write carries the version that it was decided on, and the
API server rejects it if that is not the present one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from kafka_operator.decide.tenancy import serves
from kafka_operator.resources.cluster import Cluster, read_cluster
from kafka_operator.resources.election import Election, read_election
from kafka_operator.resources.reassignment import Reassignment, read_reassignment
from kafka_operator.resources.topic import Topic, read_topic
from reconciler.names import ClusterRef, Key, Kind
from reconciler.resources.metadata import RawObject, newer
from spark_operator.resources.application import SparkApplication, read_spark_application
from spark_operator.resources.schedule import ScheduledSparkApplication, read_scheduled_spark_application

OfCluster = Topic | Reassignment | Election
Resource = Cluster | OfCluster | SparkApplication | ScheduledSparkApplication
NameT = TypeVar("NameT")

MAX_TOMBSTONES = 20_000
"""Number of remembered uids of deleted resources, some 3 MB; no watch delivers an event after so many deletions."""

READERS: Mapping[Kind, Callable[[RawObject], Resource]] = {
    Kind.CLUSTER: read_cluster,
    Kind.TOPIC: read_topic,
    Kind.REASSIGNMENT: read_reassignment,
    Kind.ELECTION: read_election,
    Kind.SPARK_APPLICATION: read_spark_application,
    Kind.SCHEDULED_SPARK_APPLICATION: read_scheduled_spark_application,
}


def read_resource(kind: Kind, raw: RawObject) -> Resource:
    """Parse a resource of any kind; KeyError or ValueError when it does not follow the schema."""
    return READERS[kind](raw)


def ref_of(resource: Resource) -> ClusterRef:
    """Return the key for queueing, sharding and counting: the resource's Cluster, or itself if it has none."""
    return resource.cluster if isinstance(resource, Topic | Reassignment | Election) else resource.ref


class Cache:
    """All resources of the watched namespaces, by name, by cluster, and Topics by their Kafka topic."""

    def __init__(self) -> None:
        self._tombstones: dict[str, None] = {}
        self._clusters: dict[Key, Cluster] = {}
        self._topics: dict[Key, Topic] = {}
        self._reassignments: dict[Key, Reassignment] = {}
        self._elections: dict[Key, Election] = {}
        self._spark_applications: dict[Key, SparkApplication] = {}
        self._spark_schedules: dict[Key, ScheduledSparkApplication] = {}
        self._by_cluster: dict[ClusterRef, set[Key]] = defaultdict(set)
        self._by_topic_name: dict[str, set[Key]] = defaultdict(set)

    def store(self, resource: Resource) -> bool:
        """Store a resource unless a newer version or its deletion is known; return whether it was stored."""
        if resource.metadata.uid in self._tombstones:
            return False
        known = self.get(resource.key)
        if known is not None and not newer(resource.metadata.resource_version, known.metadata.resource_version):
            return False
        if known is not None:
            self._remove(known)
        self._insert(resource)
        return True

    def delete(self, key: Key, uid: str | None = None) -> bool:
        """Remove a deleted resource (only with this uid, if one is given); return whether it was present."""
        known = self.get(key)
        self._add_tombstone(uid or (None if known is None else known.metadata.uid))
        if known is None or (uid is not None and known.metadata.uid != uid):
            return False
        self._remove(known)
        return True

    def _add_tombstone(self, uid: str | None) -> None:
        """Record the deletion of a uid; uids are never reused."""
        if uid is None:
            return
        self._tombstones[uid] = None
        if len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]

    def get(self, key: Key) -> Resource | None:
        """Return a resource."""
        return self._table(key.kind).get(key)

    def cluster(self, ref: ClusterRef) -> Cluster | None:
        """Return the Cluster that a reference names."""
        return self._clusters.get(ref.key)

    def topic(self, key: Key) -> Topic | None:
        """Return a Topic."""
        return self._topics.get(key)

    def reassignment(self, key: Key) -> Reassignment | None:
        """Return a Reassignment."""
        return self._reassignments.get(key)

    def election(self, key: Key) -> Election | None:
        """Return an Election."""
        return self._elections.get(key)

    def spark_application(self, key: Key) -> SparkApplication | None:
        """Return a SparkApplication."""
        return self._spark_applications.get(key)

    def spark_schedule(self, key: Key) -> ScheduledSparkApplication | None:
        """Return a ScheduledSparkApplication."""
        return self._spark_schedules.get(key)

    def spark_runs(self, schedule: Key) -> list[SparkApplication]:
        """Return the SparkApplications that a schedule owns."""
        return [item for item in self._spark_applications.values() if item.metadata.owner == schedule]

    def keys(self, kind: Kind) -> list[Key]:
        """Return the names of all resources of a kind."""
        return list(self._table(kind))

    def dependents(self, ref: ClusterRef) -> Iterator[OfCluster]:
        """Return the resources that refer to a Cluster."""
        for key in list(self._by_cluster.get(ref, ())):
            resource = self.get(key)
            if isinstance(resource, Topic | Reassignment | Election):
                yield resource

    def identity(self, ref: ClusterRef) -> str:
        """Return the identity of a Kafka cluster: the id reported by its brokers, or the Cluster's name until the id is known.

        Two Clusters may reach the same Kafka cluster. A broker may report any id, so this alone links no two namespaces.
        """
        cluster = self._clusters.get(ref.key)
        known = None if cluster is None else cluster.status.cluster_id
        return known or f"{ref.namespace}/{ref.name}"

    def same_cluster(self, ref: ClusterRef) -> list[ClusterRef]:
        """Return the Clusters that reach the same Kafka cluster, including this one.

        Those of another namespace are included only if this Cluster allows that namespace (spec.allowedNamespaces).
        """
        here, identity = self._clusters.get(ref.key), self.identity(ref)
        if here is None:
            return [ref]
        return [
            cluster.ref
            for cluster in self._clusters.values()
            if self.identity(cluster.ref) == identity and serves(here, cluster.key.namespace)
        ]

    def claims(self, topic: Topic) -> list[Topic]:
        """Return the Topics that name the same Kafka topic of the same Kafka cluster, including this one."""
        refs = set(self.same_cluster(topic.cluster))
        named = (self._topics[key] for key in self._by_topic_name.get(topic.name, ()))
        return [claim for claim in named if claim.cluster in refs]

    def named(self, topic_name: str) -> list[Key]:
        """Return the Topics that name a Kafka topic, on any cluster."""
        return list(self._by_topic_name.get(topic_name, ()))

    def _insert(self, resource: Resource) -> None:
        if isinstance(resource, Cluster):
            self._clusters[resource.key] = resource
            return
        if isinstance(resource, SparkApplication):
            self._spark_applications[resource.key] = resource
            return
        if isinstance(resource, ScheduledSparkApplication):
            self._spark_schedules[resource.key] = resource
            return
        self._by_cluster[resource.cluster].add(resource.key)
        if isinstance(resource, Topic):
            self._topics[resource.key] = resource
            self._by_topic_name[resource.name].add(resource.key)
        elif isinstance(resource, Reassignment):
            self._reassignments[resource.key] = resource
        else:
            self._elections[resource.key] = resource

    def _table(self, kind: Kind) -> Mapping[Key, Resource]:
        tables: Mapping[Kind, Mapping[Key, Resource]] = {
            Kind.CLUSTER: self._clusters,
            Kind.TOPIC: self._topics,
            Kind.REASSIGNMENT: self._reassignments,
            Kind.ELECTION: self._elections,
            Kind.SPARK_APPLICATION: self._spark_applications,
            Kind.SCHEDULED_SPARK_APPLICATION: self._spark_schedules,
        }
        return tables[kind]

    def _remove(self, resource: Resource) -> None:
        if isinstance(resource, Cluster):
            del self._clusters[resource.key]
            return
        if isinstance(resource, SparkApplication):
            del self._spark_applications[resource.key]
            return
        if isinstance(resource, ScheduledSparkApplication):
            del self._spark_schedules[resource.key]
            return
        _discard(self._by_cluster, resource.cluster, resource.key)
        if isinstance(resource, Topic):
            del self._topics[resource.key]
            _discard(self._by_topic_name, resource.name, resource.key)
        elif isinstance(resource, Reassignment):
            del self._reassignments[resource.key]
        else:
            del self._elections[resource.key]


def _discard(index: dict[NameT, set[Key]], name: NameT, key: Key) -> None:
    index[name].discard(key)
    if not index[name]:
        del index[name]
