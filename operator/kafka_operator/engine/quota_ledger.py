"""Topics that count toward quotas, in the Cluster's status: recorded before they are created, removed after they are deleted from Kafka.

All Topics of a Cluster are reconciled one batch at a time, so no topic is created while an entry is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kafka_operator.admin.port import Admin
from kafka_operator.decide.kafka.observed import Failure, KafkaTopic
from kafka_operator.decide.steps import Apply, Claim, CreateTopic
from kafka_operator.decide.tenants.quota import counted_after, quota_refusals, uncounted
from kafka_operator.decide.tenants.tenancy import Refusal, quota_of
from kafka_operator.decide.topics.topic import Step
from kafka_operator.decide.topics.topic_origin import is_ours
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import ClusterUnavailableError, ConnectionPool
from kafka_operator.names import ORIGIN
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.topic import Topic
from reconciler.decide.steps import WriteStatus
from reconciler.engine.writer import Writer
from reconciler.names import Key

ABSENT_FOR_S = 5.0
"""How long a topic must be absent from Kafka before its entry is dropped: a broker that has just started may not know it yet."""

MAX_WRITES = 3
"""Writes of the Cluster's status in one reconciliation; another part of the operator may write it at the same time."""


class QuotaLedger:
    """Keeps `status.countedTopics` of Clusters."""

    def __init__(self, cache: Cache, connections: ConnectionPool, writer: Writer) -> None:
        self._cache = cache
        self._connections = connections
        self._writer = writer
        self._absent: dict[tuple[ClusterRef, str], datetime] = {}
        """Time since which a counted topic that no Topic manages is absent from Kafka."""

    def refusals(self, ref: ClusterRef) -> Mapping[Key, Refusal]:
        """Return the Topics of a Cluster that exceed the quotas of their namespaces."""
        cluster = self._cache.cluster(ref)
        if cluster is None or not cluster.has_quotas:
            return {}
        return quota_refusals(cluster, self._topics(ref))

    def is_kept(self, ref: ClusterRef) -> bool:
        """Return whether a Cluster counts topics."""
        cluster = self._cache.cluster(ref)
        return cluster is not None and (cluster.has_quotas or bool(cluster.status.counted_topics))

    async def note(
        self, ref: ClusterRef, steps: Sequence[tuple[Topic, Step]], observed: Mapping[str, KafkaTopic]
    ) -> bool:
        """Record what these steps create, grow or adopt before they are carried out; return whether it was recorded.

        `steps` are those of Topics that own their Kafka topics and have the right, and of Topics whose Kafka topics are gone.
        """
        cluster = self._cache.cluster(ref)
        assert cluster is not None, ref
        held: dict[str, tuple[str, int]] = {}
        gone: set[str] = set()
        for topic, step in steps:
            found = observed.get(topic.name)
            partitions = _counts(cluster, topic, step, found)
            if partitions:
                held[topic.name] = (topic.key.namespace, partitions)
            elif found is None and topic.metadata.deleted is not None and _is_noted(cluster, topic):
                gone.add(topic.name)
        return await self._write(ref, held, gone)

    async def prune(self, ref: ClusterRef, now: datetime) -> float | None:
        """Drop entries of topics that no Topic manages and Kafka does not have; return the seconds until the next check, None for never."""
        cluster = self._cache.cluster(ref)
        if cluster is None:
            return None
        names = sorted(uncounted(cluster, self._topics(ref)))
        if not names:
            return None

        async def read(admin: Admin) -> Mapping[str, KafkaTopic | Failure]:
            return await admin.describe_topics(names)

        try:
            current = await self._connections.use(ref, read)
        except ClusterUnavailableError:
            return ABSENT_FOR_S
        absent = [name for name in names if name not in current]
        self._absent = {key: since for key, since in self._absent.items() if key[0] != ref or key[1] in absent} | {
            (ref, name): self._absent.get((ref, name), now) for name in absent
        }
        gone = {name for name in absent if now - self._absent[ref, name] >= timedelta(seconds=ABSENT_FOR_S)}
        if gone and await self._write(ref, {}, gone):
            for name in gone:
                del self._absent[ref, name]
        return ABSENT_FOR_S if set(absent) - gone else None

    async def _write(self, ref: ClusterRef, held: Mapping[str, tuple[str, int]], gone: Collection[str]) -> bool:
        for _ in range(MAX_WRITES):
            cluster = self._cache.cluster(ref)
            if cluster is None:
                return False
            counted = counted_after(cluster, held, gone)
            if counted == cluster.status.counted_topics:
                return True
            step = WriteStatus(replace(cluster.status, counted_topics=counted))
            if await self._writer.carry_out(cluster, step) is not None:
                return False
        return False

    def _topics(self, ref: ClusterRef) -> list[Topic]:
        return [item for item in self._cache.dependents(ref) if isinstance(item, Topic)]


def _counts(cluster: Cluster, topic: Topic, step: Step, observed: KafkaTopic | None) -> int:
    """Return the partitions that a Topic's Kafka topic counts for after a step; 0 if the Topic is not known to own it."""
    if topic.metadata.deleted is not None:
        return 0
    if topic.observes:
        known = _is_noted(cluster, topic) or topic.metadata.annotation(ORIGIN) is not None
        return len(observed.partitions) if observed is not None and known else 0
    creates = isinstance(step, Apply) and any(isinstance(action, CreateTopic) for action in step.actions)
    if observed is None:
        return topic.partitions if creates else 0
    if is_ours(topic, observed) or (isinstance(step, Claim) and step.origin is not None):
        return max(len(observed.partitions), topic.partitions)
    return 0


def _is_noted(cluster: Cluster, topic: Topic) -> bool:
    """Return whether a topic counts toward the quota of this Topic's namespace."""
    return any(
        (item.name, item.namespace) == (topic.name, topic.key.namespace) for item in cluster.status.counted_topics
    )


def is_limited(cluster: Cluster | None, namespace: str) -> bool:
    """Return whether a namespace has a quota on a Cluster."""
    return cluster is not None and quota_of(cluster, namespace) is not None
