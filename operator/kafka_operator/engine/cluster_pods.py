"""Pods of Clusters: rolling replacement and scaling. Kafka is queried only when a decision needs it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from kafka_operator.decide.clusters.cluster_pods import (
    BUSY_POLL_S,
    IDLE_POLL_S,
    DeletePod,
    PodsView,
    ScaleTo,
    Step,
    decide_pods,
    leaving_of,
    without_pods,
)
from kafka_operator.decide.clusters.cordon import NONE_LEAVING, Leaving
from kafka_operator.decide.clusters.rolling import AskKafka
from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.kafka.replica_health import ReplicaHealth
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import ClusterUnavailableError, ConnectionPool
from kafka_operator.kube.pods_port import PodKube
from kafka_operator.names import CLUSTER_LABEL
from kafka_operator.resources.cluster import Cluster, PodGroup
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.pods import PodSet, drain_of, labels_of, read_pod_set, selector_of
from reconciler.decide.steps import Done, Outcome, Wait, WriteStatus
from reconciler.engine.writer import Writer
from reconciler.kube.port import ConflictError, KubeError, NotFoundError, RefusedError

MAX_ROUNDS = 8
"""Steps in one reconciliation: two queries of Kafka, two conditions, a scale or a deletion, and some spare."""

SWITCHED_OFF = Unavailable("SwitchedOff", "The operator was started without --pods: it does not replace or scale pods.")

log = logging.getLogger(__name__)


class PodReconciler:
    """Reconciler of the pods of Clusters with `spec.brokers`."""

    def __init__(
        self,
        kube: PodKube | None,
        cache: Cache,
        connections: ConnectionPool,
        writer: Writer,
        now: Callable[[], datetime],
        *,
        drain: bool,
    ) -> None:
        """`kube` is None if the operator does not manage pods; `drain` is whether it may read nodes."""
        self._kube = kube
        self._cache = cache
        self._connections = connections
        self._writer = writer
        self._now = now
        self._drain = drain
        self._leaving: dict[ClusterRef, Leaving] = {}

    def leaving(self, ref: ClusterRef) -> Leaving:
        """Return the brokers whose pods are to go, as of the last reconciliation."""
        return self._leaving.get(ref, NONE_LEAVING)

    async def reconcile(self, ref: ClusterRef) -> Outcome:
        """Reconcile the pods of a Cluster once."""
        view: PodsView | None = None
        for _ in range(MAX_ROUNDS):
            cluster = self._cache.cluster(ref)
            if cluster is None or cluster.metadata.deleted is not None or not cluster.metadata.has_finalizer:
                self._leaving.pop(ref, None)
                return Done()
            if cluster.brokers is not None and view is None:
                try:
                    view = await self._read(cluster, cluster.brokers)
                except KubeError as error:
                    log.info("Failed to read pods", extra={"resource": str(cluster.key), "error": str(error)})
                    return Wait(IDLE_POLL_S)
            if view is not None:
                self._leaving[ref] = leaving_of(cluster, view, self.leaving(ref))
            step = _unmanaged(cluster) if view is None else decide_pods(cluster, view)
            if isinstance(step, Wait | Done):
                return step
            if isinstance(step, AskKafka):
                assert view is not None, ref
                view = replace(view, health=await self._ask(ref, view, step))
            elif isinstance(step, WriteStatus):
                outcome = await self._writer.carry_out(cluster, step)
                if outcome is not None:
                    return outcome
                if self._status_of(ref) != step.status:  # another client changed the object: read everything again
                    return Wait(BUSY_POLL_S)
            else:
                return await self._act(cluster, step)
        return Wait(BUSY_POLL_S)

    async def _read(self, cluster: Cluster, group: PodGroup) -> PodsView:
        if self._kube is None:
            return PodsView(self._now(), SWITCHED_OFF)
        brokers = await read_pods(self._kube, cluster, group)
        controllers: PodSet | Unavailable | None = None
        if cluster.controllers is not None:
            controllers = await read_pods(self._kube, cluster, cluster.controllers)
        leaving: dict[str, str] = {}
        if self._drain and isinstance(brokers, PodSet):
            try:
                leaving = await self._nodes_to_leave(self._kube, {pod.node for pod in brokers.pods if pod.node})
            except RefusedError as error:
                brokers = Unavailable("NotAllowed", str(error))
        return PodsView(self._now(), brokers, controllers, leaving)

    @staticmethod
    async def _nodes_to_leave(kube: PodKube, nodes: set[str]) -> dict[str, str]:
        leaving: dict[str, str] = {}
        for name in sorted(nodes):
            try:
                why = drain_of(await kube.get_node(name))
            except NotFoundError:
                continue  # Kubernetes itself deletes its pods
            if why is not None:
                leaving[name] = why
        return leaving

    async def _ask(self, ref: ClusterRef, view: PodsView, step: AskKafka) -> ReplicaHealth | Unavailable:
        try:
            if step.min_isr and isinstance(view.health, ReplicaHealth):
                topics = {item.partition.topic for item in view.health.partitions}
                wanted = await self._connections.use(ref, lambda admin: admin.describe_min_isr(topics))
                return replace(view.health, min_isr=wanted)
            return await self._connections.use(ref, lambda admin: admin.describe_health())
        except ClusterUnavailableError as error:
            return error.unavailable

    async def _act(self, cluster: Cluster, step: DeletePod | ScaleTo) -> Outcome:
        assert self._kube is not None, cluster.key
        namespace = cluster.key.namespace
        try:
            if isinstance(step, DeletePod):
                log.info("Deleting pod for replacement", extra={"resource": str(cluster.key), "pod": step.pod.name})
                await self._kube.delete_pod(namespace, step.pod)
            else:
                what = {"stateful_set": step.pod_set.name, "replicas": step.replicas}
                log.info("Scaling brokers", extra={"resource": str(cluster.key), **what})
                await self._kube.scale(namespace, step.pod_set, step.replicas)
        except (ConflictError, NotFoundError) as error:  # it has changed in the meantime: the next poll reads it again
            log.info("Pod update conflict; will retry", extra={"resource": str(cluster.key), "error": str(error)})
        except KubeError as error:
            log.warning("Failed to update pods", extra={"resource": str(cluster.key), "error": str(error)})
            return Wait(IDLE_POLL_S)
        return Wait(BUSY_POLL_S)

    def _status_of(self, ref: ClusterRef) -> object:
        cluster = self._cache.cluster(ref)
        return None if cluster is None else cluster.status


async def read_pods(kube: PodKube, cluster: Cluster, group: PodGroup) -> PodSet | Unavailable:
    """Return a StatefulSet of a Cluster and its pods, or why they cannot be used."""
    namespace = cluster.key.namespace
    try:
        raw = await kube.get_stateful_set(namespace, group.stateful_set)
        if labels_of(raw).get(CLUSTER_LABEL) != cluster.key.name:
            return _not_labelled(cluster, group.stateful_set)
        return read_pod_set(raw, await kube.list_pods(namespace, selector_of(raw)), group.first_id)
    except NotFoundError:
        return Unavailable("NoStatefulSet", f"Namespace {namespace} has no StatefulSet {group.stateful_set}.")
    except RefusedError as error:
        return Unavailable("NotAllowed", str(error))


def _not_labelled(cluster: Cluster, name: str) -> Unavailable:
    """Return the error for a StatefulSet that has no label for this Cluster."""
    label = f"{CLUSTER_LABEL}={cluster.key.name}"
    message = (
        f"StatefulSet {name} does not have the label {label}, so the operator neither scales it nor deletes its pods. If its pods "
        f"belong to this Cluster, set it: kubectl label statefulset {name} {label}"
    )
    return Unavailable("NotLabelled", message)


def _unmanaged(cluster: Cluster) -> Step | Done:
    """Return the step for a Cluster whose brokers run elsewhere: remove the conditions of pods."""
    status = without_pods(cluster)
    return Done() if status == cluster.status else WriteStatus(status)
