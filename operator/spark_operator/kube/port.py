"""The calls to the Kubernetes API that SparkApplications need; every call may raise KubeError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reconciler.names import Key
from reconciler.resources.metadata import RawObject


class SparkKube(Protocol):
    """Pods of SparkApplications, the runs of schedules, and Kubeflow's resources."""

    async def list_pods(self, namespace: str) -> Sequence[RawObject]:
        """Return the pods of all SparkApplications of a namespace."""
        ...

    async def get_pod(self, namespace: str, name: str) -> RawObject:
        """Return a pod."""
        ...

    async def create_pod(self, manifest: RawObject) -> RawObject:
        """Create a pod in the namespace that it names and return it; ConflictError when there is one of its name."""
        ...

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Delete a pod of this uid, with the grace that it asks for itself; ConflictError when it is another one."""
        ...

    async def read_log(self, namespace: str, name: str, container: str, lines: int) -> str:
        """Return the last lines that a container wrote."""
        ...

    async def create_run(self, key: Key, content: RawObject) -> RawObject:
        """Create a SparkApplication and return it; ConflictError when there is one of its name."""
        ...

    async def delete_run(self, key: Key, uid: str) -> None:
        """Delete a SparkApplication of this uid, and what it owns with it; ConflictError when it is another one."""
        ...

    async def get_kubeflow(self, namespace: str, name: str) -> RawObject:
        """Return Kubeflow's SparkApplication; NotFoundError also where its kind is not installed."""
        ...

    async def create_kubeflow(self, manifest: RawObject) -> None:
        """Create Kubeflow's SparkApplication; ConflictError when there is one of its name."""
        ...

    async def suspend_kubeflow(self, namespace: str, name: str, version: str, *, suspend: bool) -> None:
        """Set `spec.suspend` of the version that was seen."""
        ...
