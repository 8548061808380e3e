"""A Cluster resource as the source of a what-if: its addresses, its credentials, and the brokers on a node."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.kafka.security import EVERY_NAMESPACE, NOT_ALLOWED
from kafka_operator.engine.cluster_pods import read_pods
from kafka_operator.engine.credentials import Credentials
from kafka_operator.kube.pods import PodClient
from kafka_operator.kube.pods_port import PodKube
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.cluster import read_cluster as cluster_of
from kafka_operator.resources.security import Security
from reconciler.kube.client import KubeClient
from reconciler.kube.login import LoginError, configuration, current_namespace
from reconciler.kube.port import Kube, KubeError, NotFoundError
from reconciler.metrics import Metrics
from reconciler.names import Key

T = TypeVar("T")


class ClusterResourceError(Exception):
    """The Cluster, its Secrets or its pods cannot be used; the message has the reason and what to do."""


@dataclass(frozen=True, slots=True)
class ClusterName:
    """A Cluster by name; without a namespace that of the context."""

    name: str
    namespace: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterResource:
    """A Cluster, and the client that read it."""

    cluster: Cluster
    kube: Kube
    pods: PodKube

    async def security(self) -> Security:
        """Return the credentials from its Secrets; ClusterResourceError when they cannot be used."""
        found = await _answered(Credentials(self.kube, time.monotonic, EVERY_NAMESPACE).of(self.cluster))
        if isinstance(found, Unavailable):
            raise ClusterResourceError(self._no_right() if found.reason == NOT_ALLOWED else found.message)
        return found

    def _no_right(self) -> str:
        secrets = ", ".join(self.cluster.secret_names)
        return (
            f"This account is not allowed to get the Secrets of Cluster {self.cluster.ref}: {secrets}. Grant it the verb get on them, or "
            "use --bootstrap-server with --command-config."
        )

    async def brokers_on(self, node: str) -> list[int]:
        """Return the ids of the brokers whose pods run on a node; ClusterResourceError if there are none."""
        where = f"Cluster {self.cluster.ref}"
        if self.cluster.brokers is None:
            message = (
                "has no spec.brokers, so the nodes of its brokers are unknown. Name the brokers: --lose broker=1,2"
            )
            raise ClusterResourceError(f"{where} {message}")
        found = await _answered(read_pods(self.pods, self.cluster, self.cluster.brokers))
        if isinstance(found, Unavailable):
            raise ClusterResourceError(found.message)
        brokers = [pod.node_id for pod in found.pods if pod.node == node]
        if not brokers:
            nodes = sorted({pod.node for pod in found.pods if pod.node})
            raise ClusterResourceError(
                f"No broker of {where} runs on node {node}. Nodes with brokers: {', '.join(nodes) or 'none'}."
            )
        return brokers


@asynccontextmanager
async def cluster_resource(name: ClusterName) -> AsyncIterator[ClusterResource]:
    """Read a Cluster; ClusterResourceError when it cannot be read."""
    try:
        kube = KubeClient(await configuration(name.kubeconfig, name.context), Metrics())
    except LoginError as error:
        raise ClusterResourceError(str(error)) from error
    try:
        namespace = name.namespace or current_namespace(name.kubeconfig, name.context)
        yield ClusterResource(await read_named(kube, namespace, name.name), kube, PodClient(kube))
    finally:
        await kube.close()


async def read_named(kube: Kube, namespace: str, name: str) -> Cluster:
    """Return a Cluster; ClusterResourceError when there is none, with those of the namespace."""
    try:
        return cluster_of(await kube.get_object(Key(kinds.CLUSTER, namespace, name)))
    except NotFoundError as error:
        known = [item["metadata"]["name"] for item in await _known(kube, namespace)]
        which = (
            f"Clusters there: {', '.join(sorted(known))}."
            if known
            else "It has none; name another one with --namespace."
        )
        raise ClusterResourceError(f"Namespace {namespace} has no Cluster {name}. {which}") from error
    except KubeError as error:
        raise ClusterResourceError(str(error)) from error


async def _known(kube: Kube, namespace: str) -> list[dict[str, dict[str, str]]]:
    try:
        return [dict(item) for item in (await kube.list_objects(kinds.CLUSTER, namespace)).objects]
    except KubeError:
        return []


async def _answered(call: Awaitable[T]) -> T:
    try:
        return await call
    except KubeError as error:
        raise ClusterResourceError(str(error)) from error
