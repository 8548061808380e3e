"""Composition of the engine, the same in production and in tests; tests pass other ports, clocks and random sources."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from kafka_operator.engine.auto_rebalances import AutoRebalances
from kafka_operator.engine.cache import Cache, ref_of
from kafka_operator.engine.cluster_pods import PodReconciler
from kafka_operator.engine.cluster_reader import ClusterReader
from kafka_operator.engine.clusters import ClusterReconciler
from kafka_operator.engine.connection_pool import Connect, ConnectionPool
from kafka_operator.engine.cordons import Cordons
from kafka_operator.engine.credentials import Credentials
from kafka_operator.engine.elections import ElectionReconciler
from kafka_operator.engine.event_handler import EventHandler
from kafka_operator.engine.event_recorder import EventRecorder
from kafka_operator.engine.gauges import Gauges
from kafka_operator.engine.guard_reader import GuardReader
from kafka_operator.engine.move_progress import MoveProgress
from kafka_operator.engine.namespace_teardown import NamespaceTeardown
from kafka_operator.engine.owned_reassignments import OwnedReassignments
from kafka_operator.engine.plan_store import PlanStore
from kafka_operator.engine.reassignments import ReassignmentReconciler
from kafka_operator.engine.resync import Resync
from kafka_operator.engine.topics import TopicReconciler
from kafka_operator.engine.writer import Writer
from kafka_operator.kube.pods_port import PodKube
from kafka_operator.prometheus.port import Prometheus
from reconciler.engine.loop import LINGER_S, Loop, QueuePartition, Reconciler
from reconciler.engine.queue import CAPACITY
from reconciler.engine.retries import Retries
from reconciler.engine.watch_lag import WatchLag
from reconciler.kube.port import Kube
from reconciler.metrics import Metrics
from reconciler.names import KAFKA_KINDS, SPARK_KINDS, ClusterRef, Key, Kind
from spark_operator.engine.applications import SparkPorts, SparkReconciler
from spark_operator.engine.schedules import ScheduleReconciler


@dataclass(frozen=True, slots=True)
class Core:
    """Components that the process runs and uses."""

    cache: Cache
    gauges: Gauges
    event_handler: EventHandler
    connections: ConnectionPool
    loop: Loop
    teardown: NamespaceTeardown
    resync: Resync
    watch_lag: WatchLag
    spark: SparkReconciler | None = None

    async def close(self) -> None:
        """Stop working, close the connections to Kafka and end child processes."""
        await self.loop.close()
        await self.connections.close()
        if self.spark is not None:
            await self.spark.close()


def build_core(
    kube: Kube,
    connect: Connect,
    metrics: Metrics,
    *,
    prometheus: Prometheus,
    namespaces: Sequence[str],
    resync_interval_s: float,
    now: Callable[[], datetime],
    clock: Callable[[], float],
    rng: random.Random,
    linger_s: float = LINGER_S,
    capacity: int = CAPACITY,
    pods: PodKube | None = None,
    drain: bool = False,
    serves: Callable[[ClusterRef], bool] = lambda _: True,
    spark: SparkPorts | None = None,
) -> Core:
    """Compose the engine. Broker pods are reconciled only with `pods`, node drains only with `drain`, SparkApplications only with `spark`.

    All resources are cached; only those of Clusters for which `serves` is true are reconciled.
    """
    cache = Cache()
    retries = Retries(clock, rng)
    connections = ConnectionPool(cache, Credentials(kube, clock), connect, clock, rng)
    writer = Writer(kube, cache, EventRecorder(kube, clock))

    def wake(key: Key) -> None:
        loop.wake(key)

    pod_reconciler = PodReconciler(pods, cache, connections, writer, now, drain=drain)
    owned = OwnedReassignments(kube)
    rebalances = AutoRebalances(cache, connections, writer, owned, now, clock, lambda: resync.loaded)
    cordons = Cordons(cache, connections, writer, now, lambda: resync.loaded)
    reader = ClusterReader(connections, clock)
    clusters = ClusterReconciler(
        cache, connections, writer, retries, now, wake, pod_reconciler, reader, rebalances, cordons
    )
    reconcilers: dict[Kind, Reconciler] = {
        Kind.CLUSTER: clusters,
        Kind.TOPIC: TopicReconciler(cache, connections, writer, owned, retries, now),
        Kind.ELECTION: ElectionReconciler(cache, connections, writer, retries, now),
        Kind.REASSIGNMENT: ReassignmentReconciler(
            cache,
            connections,
            writer,
            retries,
            now,
            PlanStore(kube),
            MoveProgress(clock),
            GuardReader(cache, kube, prometheus, clock),
            wake,
        ),
    }
    spark_applications: SparkReconciler | None = None
    if spark is not None:
        spark_applications = SparkReconciler(cache, spark, writer, metrics, now, clock, wake)
        reconcilers[Kind.SPARK_APPLICATION] = spark_applications
        reconcilers[Kind.SCHEDULED_SPARK_APPLICATION] = ScheduleReconciler(
            cache, spark.kube, writer, metrics, now, wake, spark.namespaces
        )
    partition_of = partial(_partition_of, cache, serves)
    loop = Loop(partition_of, reconcilers, retries, metrics, clock=clock, linger_s=linger_s, capacity=capacity)
    watch_lag = WatchLag(clock)
    kinds = KAFKA_KINDS if spark is None else (*KAFKA_KINDS, *SPARK_KINDS)
    resync = Resync(
        kube, cache, watch_lag, loop.submit, metrics, namespaces=namespaces, interval_s=resync_interval_s, kinds=kinds
    )
    return Core(
        cache=cache,
        gauges=Gauges(cache, metrics, serves),
        event_handler=EventHandler(cache, retries, watch_lag, loop.submit),
        connections=connections,
        loop=loop,
        teardown=NamespaceTeardown(kube, writer),
        resync=resync,
        watch_lag=watch_lag,
        spark=spark_applications,
    )


def _partition_of(cache: Cache, serves: Callable[[ClusterRef], bool], key: Key) -> QueuePartition | None:
    """Return the queue partition of a resource; None if the resource is unknown, or this process does not serve its Cluster."""
    if key.kind in {Kind.CLUSTER, *SPARK_KINDS}:  # own partitions, also for deleted resources
        ref = ClusterRef(key.namespace, key.name)
    else:
        resource = cache.get(key)
        if resource is None:
            return None
        ref = ref_of(resource)
    return QueuePartition(key.kind, ref) if serves(ref) else None
