"""Cluster reconciler: checks each Cluster periodically, and wakes the resources that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from kafka_operator.decide.cluster import ClusterLook, Dependents, Step, decide_cluster, decide_cluster_deletion
from kafka_operator.decide.conditions import TRUE, ready_of
from kafka_operator.decide.observed import Away
from kafka_operator.decide.pause import decide_pause
from kafka_operator.decide.steps import Done, Retry, Wait, WriteStatus
from kafka_operator.engine.auto_rebalances import AutoRebalances
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.cluster_looks import ClusterLooks
from kafka_operator.engine.fleets import Fleets
from kafka_operator.engine.links import Links
from kafka_operator.engine.retries import Retries
from kafka_operator.engine.writer import Outcome, Writer
from kafka_operator.names import ClusterRef, Key
from kafka_operator.resources.cluster import Cluster, ClusterStatus

MAX_ROUNDS = 6
"""Steps in one try: claim, status, wait, and room for conflicts."""


class ClusterReconciler:
    """Shows Clusters as they are."""

    def __init__(
        self,
        cache: Cache,
        links: Links,
        writer: Writer,
        retries: Retries,
        now: Callable[[], datetime],
        wake: Callable[[Key], None],
        fleets: Fleets,
        looks: ClusterLooks,
        rebalances: AutoRebalances,
    ) -> None:
        """`wake` puts a resource into the queue."""
        self._cache = cache
        self._links = links
        self._writer = writer
        self._retries = retries
        self._now = now
        self._wake = wake
        self._fleets = fleets
        self._looks = looks
        self._rebalances = rebalances

    async def reconcile(self, ref: ClusterRef, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Try once for a Cluster; a batch is one Cluster, since each is a lane of its own."""
        return {key: await self._reconcile(ref) for key in keys}

    async def _reconcile(self, ref: ClusterRef) -> Outcome:
        outcome = await self._show(ref)
        cluster = self._cache.cluster(ref)
        if cluster is not None and cluster.metadata.paused:
            return outcome
        outcome = _sooner(outcome, await self._fleets.look_after(ref))
        return _sooner(outcome, await self._rebalances.look_after(ref))

    async def _show(self, ref: ClusterRef) -> Outcome:
        look: ClusterLook | Away | None = None
        for _ in range(MAX_ROUNDS):
            cluster = self._cache.cluster(ref)
            if cluster is None:
                self._looks.forget(ref)
                await self._links.drop(ref)
                return Done()
            step: Step | None = decide_pause(cluster.metadata, cluster.status, self._now())
            if step is None:
                if look is None and cluster.metadata.deleted is None:
                    look = await self._looks.look(ref)
                step = self._decide(cluster, look)
            if isinstance(step, Done | Retry | Wait):
                return step
            outcome = await self._writer.carry_out(cluster, step)
            if isinstance(outcome, Retry):
                self._looks.forget(ref)  # what was seen is not written: the next try is to see it again
            if outcome is not None:
                return outcome
            if isinstance(step, WriteStatus):
                self._tell(cluster, step.status)
        return Retry()

    def _decide(self, cluster: Cluster, look: ClusterLook | Away | None) -> Step:
        waited_s = self._retries.waited_s(cluster.key)
        if cluster.metadata.deleted is not None:
            return decide_cluster_deletion(cluster, self._dependents(cluster.ref), waited_s)
        assert look is not None, cluster.key
        return decide_cluster(cluster, look, self._now(), waited_s)

    def _dependents(self, ref: ClusterRef) -> Dependents:
        held = [resource for resource in self._cache.dependents(ref) if resource.metadata.held]
        leaving = [resource for resource in held if resource.metadata.deleted is not None]
        return Dependents(len(held), len(leaving))

    def _tell(self, before: Cluster, after: ClusterStatus) -> None:
        """Wake those that are not ready, now that the cluster has changed: it may be back, or have the brokers that they need."""
        ready = ready_of(after.conditions)
        if ready is None or ready.status != TRUE:
            return
        known_anew = before.status.cluster_id != after.cluster_id
        refs = self._cache.same_cluster(before.ref) if known_anew else [before.ref]
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
