"""The calls to the Kubernetes API that Leases need; every call may raise KubeError."""

from __future__ import annotations

from typing import Protocol

from reconciler.resources.lease import Lease


class Leases(Protocol):
    """The Leases of one namespace."""

    async def get(self, name: str) -> Lease:
        """Return a Lease; NotFoundError when there is none."""
        ...

    async def create(self, lease: Lease) -> Lease:
        """Create a Lease and return it; ConflictError when there is one of its name."""
        ...

    async def replace(self, lease: Lease) -> Lease:
        """Replace the version of a Lease that it names, and return the new one; ConflictError if it has another version."""
        ...
