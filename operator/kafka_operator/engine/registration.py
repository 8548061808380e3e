"""Registration of Cluster, Topic, Election and Reassignment."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from datetime import datetime

from kafka_operator import kinds
from kafka_operator.engine.affected import Affected
from kafka_operator.engine.auto_rebalances import AutoRebalances
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.cluster_pods import PodReconciler
from kafka_operator.engine.cluster_reader import ClusterReader
from kafka_operator.engine.clusters import ClusterReconciler
from kafka_operator.engine.connection_pool import Connect, ConnectionPool
from kafka_operator.engine.cordons import Cordons
from kafka_operator.engine.credentials import Credentials
from kafka_operator.engine.elections import ElectionReconciler
from kafka_operator.engine.gauges import KafkaGauges
from kafka_operator.engine.guard_reader import GuardReader
from kafka_operator.engine.move_progress import MoveProgress
from kafka_operator.engine.owned_reassignments import OwnedReassignments
from kafka_operator.engine.plan_store import PlanStore
from kafka_operator.engine.reassignments import ReassignmentReconciler
from kafka_operator.engine.topics import TopicReconciler
from kafka_operator.kube.pods_port import PodKube
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.prometheus.port import Prometheus
from kafka_operator.resources.cluster import read_cluster
from kafka_operator.resources.election import read_election
from kafka_operator.resources.reassignment import read_reassignment
from kafka_operator.resources.topic import read_topic
from reconciler.engine.core import Core
from reconciler.engine.kinds import KindSpec
from reconciler.kube.port import Kube


def register_kafka(
    core: Core,
    kube: Kube,
    cache: Cache,
    connect: Connect,
    metrics: KafkaMetrics,
    prometheus: Prometheus,
    *,
    now: Callable[[], datetime],
    clock: Callable[[], float],
    rng: random.Random,
    pods: PodKube | None = None,
    drain: bool = False,
    aws_identity_namespaces: Collection[str] = (),
) -> None:
    """Register the kinds. Broker pods are reconciled only with `pods`, node drains only with `drain`."""
    connections = ConnectionPool(cache, Credentials(kube, clock, aws_identity_namespaces), connect, clock, rng)
    core.close_with(connections.close)
    writer, retries, loop, resync = core.writer, core.retries, core.loop, core.resync
    owned, affected, gauges = OwnedReassignments(kube), Affected(cache), KafkaGauges(metrics)
    pod_reconciler = PodReconciler(pods, cache, connections, writer, now, drain=drain)
    rebalances = AutoRebalances(cache, connections, writer, owned, now, clock, lambda: resync.loaded)
    cordons = Cordons(cache, connections, writer, now, lambda: resync.loaded)
    reader = ClusterReader(connections, clock)
    clusters = ClusterReconciler(
        cache, connections, writer, retries, now, loop.wake, pod_reconciler, reader, rebalances, cordons
    )
    topics = TopicReconciler(cache, connections, writer, owned, retries, now)
    reassignments = ReassignmentReconciler(
        cache,
        connections,
        writer,
        retries,
        now,
        PlanStore(kube),
        MoveProgress(clock),
        GuardReader(cache, kube, prometheus, clock),
        loop.wake,
    )
    elections = ElectionReconciler(cache, connections, writer, retries, now)
    specs = (
        KindSpec(
            kind=kinds.CLUSTER,
            read=read_cluster,
            reconciler=clusters,
            affected=affected.by_cluster,
            show=gauges.show_clusters,
        ),
        KindSpec(
            kind=kinds.TOPIC,
            read=read_topic,
            reconciler=topics,
            queue_of=lambda topic: topic.cluster,
            affected=affected.by_topic,
            show=gauges.show_topics,
        ),
        KindSpec(
            kind=kinds.REASSIGNMENT,
            read=read_reassignment,
            reconciler=reassignments,
            queue_of=lambda item: item.cluster,
            affected=affected.by_reassignment,
            show=gauges.show_reassignments,
        ),
        KindSpec(
            kind=kinds.ELECTION, read=read_election, reconciler=elections, queue_of=lambda election: election.cluster
        ),
    )
    for spec in specs:  # Clusters first, so that the others find theirs
        core.kinds.register(spec)
