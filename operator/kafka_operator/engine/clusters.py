"""Cluster reconciler: checks each Cluster periodically, and wakes the resources that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from kafka_operator.decide.clusters.cluster import (
    ClusterSnapshot,
    Dependents,
    Step,
    decide_cluster,
    decide_cluster_deletion,
)
from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.engine.auto_rebalances import AutoRebalances
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.cluster_pods import PodReconciler
from kafka_operator.engine.cluster_reader import ClusterReader
from kafka_operator.engine.connection_pool import ConnectionPool
from kafka_operator.engine.cordons import Cordons
from kafka_operator.resources.cluster import Cluster, ClusterStatus
from kafka_operator.resources.cluster_ref import ClusterRef
from reconciler.decide.conditions import TRUE, ready_of
from reconciler.decide.pause import decide_pause
from reconciler.decide.steps import Done, Outcome, Retry, Wait, WriteStatus
from reconciler.engine.retries import Retries
from reconciler.engine.writer import Writer
from reconciler.names import Key

MAX_ROUNDS = 6
"""Steps in one reconciliation: claim, status, wait, and some spare for conflicts."""


class ClusterReconciler:
    """Reconciler of Clusters."""

    def __init__(
        self,
        cache: Cache,
        connections: ConnectionPool,
        writer: Writer,
        retries: Retries,
        now: Callable[[], datetime],
        wake: Callable[[Key], None],
        pod_reconciler: PodReconciler,
        reader: ClusterReader,
        rebalances: AutoRebalances,
        cordons: Cordons,
    ) -> None:
        """`wake` puts a resource into the queue."""
        self._cache = cache
        self._connections = connections
        self._writer = writer
        self._retries = retries
        self._now = now
        self._wake = wake
        self._pod_reconciler = pod_reconciler
        self._reader = reader
        self._rebalances = rebalances
        self._cordons = cordons

    async def reconcile(self, ref: ClusterRef, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Reconcile a Cluster once; a batch has one Cluster, since each has its own queue partition."""
        return {key: await self._reconcile(ref) for key in keys}

    async def _reconcile(self, ref: ClusterRef) -> Outcome:
        cluster = self._cache.cluster(ref)
        if cluster is not None and cluster.metadata.deleted is not None:
            await self._cordons.reconcile(ref)
        outcome = await self._update_status(ref)
        cluster = self._cache.cluster(ref)
        if cluster is None or cluster.metadata.deleted is not None or cluster.metadata.paused:
            return outcome
        outcome = _sooner(outcome, await self._pod_reconciler.reconcile(ref))
        outcome = _sooner(outcome, await self._cordons.reconcile(ref, self._pod_reconciler.leaving(ref)))
        return _sooner(outcome, await self._rebalances.reconcile(ref))

    async def _update_status(self, ref: ClusterRef) -> Outcome:
        snapshot: ClusterSnapshot | Unavailable | None = None
        for _ in range(MAX_ROUNDS):
            cluster = self._cache.cluster(ref)
            if cluster is None:
                self._reader.forget(ref)
                await self._connections.drop(ref)
                return Done()
            step: Step | None = decide_pause(cluster.metadata, cluster.status, self._now())
            if step is None:
                if snapshot is None and cluster.metadata.deleted is None:
                    snapshot = await self._reader.read(ref)
                step = self._decide(cluster, snapshot)
            if isinstance(step, Done | Retry | Wait):
                return step
            outcome = await self._writer.carry_out(cluster, step)
            if isinstance(outcome, Retry):
                self._reader.forget(ref)  # the status was not written: the next attempt reads the cluster again
            if outcome is not None:
                return outcome
            if isinstance(step, WriteStatus):
                self._wake_dependents(cluster, step.status)
        return Retry()

    def _decide(self, cluster: Cluster, snapshot: ClusterSnapshot | Unavailable | None) -> Step:
        waited_s = self._retries.waited_s(cluster.key)
        if cluster.metadata.deleted is not None:
            return decide_cluster_deletion(cluster, self._dependents(cluster.ref), waited_s)
        assert snapshot is not None, cluster.key
        return decide_cluster(cluster, snapshot, self._now(), waited_s)

    def _dependents(self, ref: ClusterRef) -> Dependents:
        held = [resource for resource in self._cache.dependents(ref) if resource.metadata.has_finalizer]
        leaving = [resource for resource in held if resource.metadata.deleted is not None]
        return Dependents(len(held), len(leaving))

    def _wake_dependents(self, before: Cluster, after: ClusterStatus) -> None:
        """Enqueue dependents that are not ready after a change: the cluster may be back, or have the brokers that they need."""
        ready = ready_of(after.conditions)
        if ready is None or ready.status != TRUE:
            return
        newly_identified = before.status.cluster_id != after.cluster_id
        refs = self._cache.same_cluster(before.ref) if newly_identified else [before.ref]
        for ref in refs:
            for resource in self._cache.dependents(ref):
                condition = ready_of(resource.status.conditions)
                if condition is None or condition.status != TRUE or len(refs) > 1:
                    self._wake(resource.key)


def _sooner(shown: Outcome, pods: Outcome) -> Outcome:
    """Return the time of the next check: the earlier one of cluster and pods."""
    if not isinstance(pods, Wait):
        return pods if isinstance(pods, Retry) else shown
    if isinstance(shown, Wait):
        return Wait(min(shown.seconds, pods.seconds))
    return Retry(shown.first_s, min(shown.cap_s, pods.seconds)) if isinstance(shown, Retry) else shown
