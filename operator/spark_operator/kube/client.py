"""SparkApplications' pods, runs and mirrors on the API server: plain requests, on the client of everything else."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from reconciler.kube.client import KubeClient, core_path
from reconciler.names import COMPONENT, Key
from reconciler.resources.metadata import RawObject
from spark_operator.decide.kubeflow import GROUP, PLURAL, VERSION
from spark_operator.names import SPARK_APPLICATION_LABEL

PODS = "pods"

MAX_LOG_BYTES = 64 * 1024
"""Maximum bytes of a log: a line of a program's output has no limit of its own."""


class SparkClient:
    """The SparkKube port."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def list_pods(self, namespace: str) -> Sequence[RawObject]:
        """Return the pods of all SparkApplications of a namespace."""
        query = urlencode({"labelSelector": SPARK_APPLICATION_LABEL})
        found = await self._client.call("list_spark_pods", "GET", f"{core_path(namespace, PODS)}?{query}")
        return list(found["items"])

    async def get_pod(self, namespace: str, name: str) -> RawObject:
        """Return a pod."""
        return await self._client.call("get_spark_pod", "GET", core_path(namespace, PODS, name))

    async def create_pod(self, manifest: RawObject) -> RawObject:
        """Create a pod; unknown fields are rejected, so that typing errors are reported."""
        query = urlencode({"fieldManager": COMPONENT, "fieldValidation": "Strict"})
        path = f"{core_path(manifest['metadata']['namespace'], PODS)}?{query}"
        return await self._client.call("create_spark_pod", "POST", path, manifest)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Delete a pod of this uid."""
        await self._client.delete("delete_spark_pod", core_path(namespace, PODS, name), uid)

    async def read_log(self, namespace: str, name: str, container: str, lines: int) -> str:
        """Return the last lines that a container wrote."""
        query = urlencode({"container": container, "tailLines": lines, "limitBytes": MAX_LOG_BYTES})
        path = f"{core_path(namespace, PODS, name)}/log?{query}"
        return await self._client.call_text("read_spark_log", path)

    async def create_run(self, key: Key, content: RawObject) -> RawObject:
        """Create a SparkApplication and return it."""
        return await self._client.create_object(key, content)

    async def delete_run(self, key: Key, uid: str) -> None:
        """Delete a SparkApplication of this uid; what it owns is collected in the background."""
        await self._client.delete_object(key, uid)

    async def get_kubeflow(self, namespace: str, name: str) -> RawObject:
        """Return Kubeflow's SparkApplication."""
        return await self._client.call("get_kubeflow_sparkapplication", "GET", _kubeflow(namespace, name))

    async def create_kubeflow(self, manifest: RawObject) -> None:
        """Create Kubeflow's SparkApplication."""
        path = f"{_kubeflow(manifest['metadata']['namespace'])}?fieldManager={COMPONENT}"
        await self._client.call("create_kubeflow_sparkapplication", "POST", path, manifest)

    async def suspend_kubeflow(self, namespace: str, name: str, version: str, *, suspend: bool) -> None:
        """Set `spec.suspend` of the version that was seen."""
        patch = {"metadata": {"resourceVersion": version}, "spec": {"suspend": suspend}}
        path = f"{_kubeflow(namespace, name)}?fieldManager={COMPONENT}"
        await self._client.call("patch_kubeflow_sparkapplication", "PATCH", path, patch)


def _kubeflow(namespace: str, name: str | None = None) -> str:
    place = f"/apis/{GROUP}/{VERSION}/namespaces/{quote(namespace, safe='')}/{PLURAL}"
    return place if name is None else f"{place}/{quote(name, safe='')}"
