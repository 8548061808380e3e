"""Leases on the API server: plain requests, each write bound to the version that it was decided on."""

from __future__ import annotations

from urllib.parse import quote

from reconciler.kube.client import KubeClient
from reconciler.names import COMPONENT
from reconciler.resources.lease import Lease, lease_spec, read_lease


class LeaseClient:
    """The Leases port of one namespace, on the client of everything else."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._client = client
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"

    async def get(self, name: str) -> Lease:
        """Return a Lease; NotFoundError when there is none."""
        return read_lease(await self._client.call("get_lease", "GET", self._of(name)))

    async def create(self, lease: Lease) -> Lease:
        """Create a Lease and return it; ConflictError when there is one of its name."""
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": lease.name},
            "spec": lease_spec(lease),
        }
        path = f"{self._path}?fieldManager={COMPONENT}"
        return read_lease(await self._client.call("create_lease", "POST", path, body))

    async def replace(self, lease: Lease) -> Lease:
        """Replace the version of a Lease that it names, and return the new one; ConflictError if it has another version."""
        patch = {"metadata": {"resourceVersion": lease.resource_version}, "spec": lease_spec(lease)}
        path = f"{self._of(lease.name)}?fieldManager={COMPONENT}"
        return read_lease(await self._client.call("patch_lease", "PATCH", path, patch))

    def _of(self, name: str) -> str:
        return f"{self._path}/{quote(name, safe='')}"
