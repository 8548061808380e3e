"""Leases in memory behind the Leases port, with versions, conflicts and outages."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from reconciler.kube.port import ConflictError, KubeError, NotFoundError
from reconciler.resources.lease import Lease


class FakeLeases:
    """The Leases of one namespace; `failure` is raised by every call while it is set, and calls wait while `hangs` is."""

    def __init__(self) -> None:
        self.held: dict[str, Lease] = {}
        self.writes: list[tuple[str, str]] = []
        """Lease and holder of each write."""
        self.failure: KubeError | None = None
        self.lose_answers = 0
        """So many of the next writes have their effect and no answer."""
        self.hangs = False
        """Whether calls get no answer."""
        self._version = 0

    def edit(self, lease: Lease) -> None:
        """Write as a user would."""
        self._keep(lease)

    async def get(self, name: str) -> Lease:
        await self._pass()
        if name not in self.held:
            raise NotFoundError(name)
        return self.held[name]

    async def create(self, lease: Lease) -> Lease:
        await self._pass()
        if lease.name in self.held:
            raise ConflictError(lease.name)
        return await self._write(lease)

    async def replace(self, lease: Lease) -> Lease:
        await self._pass()
        found = self.held.get(lease.name)
        if found is None:
            raise NotFoundError(lease.name)
        if found.resource_version != lease.resource_version:
            raise ConflictError(f"{lease.name}: {found.resource_version}, not {lease.resource_version}")
        return await self._write(lease)

    async def _pass(self) -> None:
        await asyncio.sleep(0.001)
        if self.hangs:
            await asyncio.sleep(3600)
        if self.failure is not None:
            raise self.failure

    async def _write(self, lease: Lease) -> Lease:
        kept = self._keep(lease)
        self.writes.append((lease.name, lease.holder))
        if self.lose_answers:
            self.lose_answers -= 1
            await asyncio.sleep(3600)
        return kept

    def _keep(self, lease: Lease) -> Lease:
        self._version += 1
        self.held[lease.name] = replace(lease, resource_version=str(self._version))
        return self.held[lease.name]
