"""The engine's parts, joined; the same in production and in tests, which give other ports, clocks and random sources."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kafka_operator.engine.announcer import Announcer
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.cluster_looks import ClusterLooks
from kafka_operator.engine.clusters import ClusterReconciler
from kafka_operator.engine.credentials import Credentials
from kafka_operator.engine.elections import ElectionReconciler
from kafka_operator.engine.figures import Figures
from kafka_operator.engine.fleets import Fleets
from kafka_operator.engine.front import Front
from kafka_operator.engine.links import Connect, Links
from kafka_operator.engine.loop import LINGER_S, Lane, Loop, Reconciler
from kafka_operator.engine.meters import Meters
from kafka_operator.engine.owned_reassignments import OwnedReassignments
from kafka_operator.engine.parting import Parting
from kafka_operator.engine.plan_store import PlanStore
from kafka_operator.engine.queue import CAPACITY
from kafka_operator.engine.reassignments import ReassignmentReconciler
from kafka_operator.engine.resync import Resync
from kafka_operator.engine.retries import Retries
from kafka_operator.engine.topics import TopicReconciler
from kafka_operator.engine.watch_lag import WatchLag
from kafka_operator.engine.writer import Writer
from kafka_operator.kube.pods_port import PodKube
from kafka_operator.kube.port import Kube
from kafka_operator.metrics import Metrics
from kafka_operator.names import ClusterRef, Key, Kind
from kafka_operator.resources.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Core:
    """The parts that a process runs and asks."""

    cache: Cache
    figures: Figures
    front: Front
    links: Links
    loop: Loop
    parting: Parting
    resync: Resync
    watch_lag: WatchLag

    async def close(self) -> None:
        """Stop working and close the connections to Kafka."""
        await self.loop.close()
        await self.links.close()


def build_core(
    kube: Kube,
    connect: Connect,
    metrics: Metrics,
    *,
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
) -> Core:
    """Join the parts; without `pods` no pod is looked after, with `drain` nodes are looked at as well.

    All resources are known, and those that refer to a Cluster that this process `serves` are worked on.
    """
    cache = Cache()
    retries = Retries(clock, rng)
    links = Links(cache, Credentials(kube, clock), connect, clock, rng)
    writer = Writer(kube, cache, Announcer(kube, clock))

    def wake(key: Key) -> None:
        loop.wake(key)

    fleets = Fleets(pods, cache, links, writer, now, drain=drain)
    clusters = ClusterReconciler(cache, links, writer, retries, now, wake, fleets, ClusterLooks(links, clock))
    reconcilers: dict[Kind, Reconciler] = {
        Kind.CLUSTER: clusters,
        Kind.TOPIC: TopicReconciler(cache, links, writer, OwnedReassignments(kube), retries, now),
        Kind.ELECTION: ElectionReconciler(cache, links, writer, retries, now),
        Kind.REASSIGNMENT: ReassignmentReconciler(cache, links, writer, retries, now, PlanStore(kube), Meters(clock)),
    }

    def lane_of(key: Key) -> Lane | None:
        if key.kind is Kind.CLUSTER:
            ref = ClusterRef(key.namespace, key.name)
        else:
            resource = cache.get(key)
            if resource is None or isinstance(resource, Cluster):
                return None
            ref = resource.cluster
        return Lane(key.kind, ref) if serves(ref) else None

    loop = Loop(lane_of, reconcilers, retries, metrics, clock=clock, linger_s=linger_s, capacity=capacity)
    watch_lag = WatchLag(clock)
    return Core(
        cache=cache,
        figures=Figures(cache, metrics, serves),
        front=Front(cache, retries, watch_lag, loop.submit),
        links=links,
        loop=loop,
        parting=Parting(kube, writer),
        resync=Resync(
            kube, cache, watch_lag, loop.submit, metrics, namespaces=namespaces, interval_s=resync_interval_s
        ),
        watch_lag=watch_lag,
    )
