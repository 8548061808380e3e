"""Pods on the API server: plain requests, each that changes something bound to the version that it was decided on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from kafka_operator.resources.pods import Pod, PodSet
from reconciler.kube.client import KubeClient, core_path
from reconciler.names import COMPONENT
from reconciler.resources.metadata import RawObject


class PodClient:
    """The PodKube port on the client of everything else."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def get_stateful_set(self, namespace: str, name: str) -> RawObject:
        """Return a StatefulSet."""
        return await self._client.call("get_statefulset", "GET", _stateful_set(namespace, name))

    async def list_pods(self, namespace: str, labels: Mapping[str, str]) -> Sequence[RawObject]:
        """Return the pods that have all of these labels."""
        selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
        path = f"{core_path(namespace, 'pods')}?{urlencode({'labelSelector': selector})}"
        found = await self._client.call("list_pods", "GET", path)
        return list(found["items"])

    async def get_node(self, name: str) -> RawObject:
        """Return a node."""
        return await self._client.call("get_node", "GET", f"/api/v1/nodes/{quote(name, safe='')}")

    async def delete_pod(self, namespace: str, pod: Pod) -> None:
        """Delete a pod, with its own grace period; ConflictError when it has changed."""
        await self._client.delete("delete_pod", core_path(namespace, "pods", pod.name), pod.uid, pod.resource_version)

    async def scale(self, namespace: str, pod_set: PodSet, replicas: int) -> None:
        """Set the number of pods of a StatefulSet; ConflictError when it has changed."""
        patch = {"metadata": {"resourceVersion": pod_set.resource_version}, "spec": {"replicas": replicas}}
        path = f"{_stateful_set(namespace, pod_set.name)}/scale?fieldManager={COMPONENT}"
        await self._client.call("scale_statefulset", "PATCH", path, patch)


def _stateful_set(namespace: str, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}/statefulsets/{quote(name, safe='')}"
