"""The calls to the Kubernetes API that replacing and scaling pods needs; every call may raise KubeError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kafka_operator.resources.pods import Pod, PodSet
from reconciler.resources.metadata import RawObject


class PodKube(Protocol):
    """StatefulSets, their pods, and nodes."""

    async def get_stateful_set(self, namespace: str, name: str) -> RawObject:
        """Return a StatefulSet."""
        ...

    async def list_pods(self, namespace: str, labels: Mapping[str, str]) -> Sequence[RawObject]:
        """Return the pods that have all of these labels."""
        ...

    async def get_node(self, name: str) -> RawObject:
        """Return a node."""
        ...

    async def delete_pod(self, namespace: str, pod: Pod) -> None:
        """Delete a pod, with its own grace period; ConflictError when it has changed."""
        ...

    async def scale(self, namespace: str, pod_set: PodSet, replicas: int) -> None:
        """Set the number of pods of a StatefulSet; ConflictError when it has changed."""
        ...
