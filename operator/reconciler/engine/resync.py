"""Resync: lists and reconciles all resources at the start and then periodically, independently of the watch.

It finds changes that a watch missed, and reverts external changes of what the resources declare. Without differences nothing is written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from reconciler.engine.cache import ResourceCache
from reconciler.engine.kinds import Kinds
from reconciler.engine.watch_lag import WatchLag
from reconciler.kube.port import Kube, KubeError, Listing, NotFoundError, RefusedError
from reconciler.metrics import Metrics
from reconciler.names import Key, Kind
from reconciler.resources.metadata import newer

RETRY_S = 2.0
"""Delay before a list that failed is tried again."""

log = logging.getLogger(__name__)


class NotInstalledError(Exception):
    """A kind is unknown to the API server, or may not be listed: an administrator has to fix it."""


class Resync:
    """Lists all resources and submits them."""

    def __init__(
        self,
        kube: Kube,
        cache: ResourceCache,
        kinds: Kinds,
        watch_lag: WatchLag,
        submit: Callable[[Key], Awaitable[None]],
        metrics: Metrics,
        *,
        namespaces: Sequence[str],
        interval_s: float,
    ) -> None:
        """`namespaces` to list; empty for all. The kinds are listed in the order of their registration."""
        self._kube = kube
        self._cache = cache
        self._watch_lag = watch_lag
        self._submit = submit
        self._metrics = metrics
        self._namespaces: Sequence[str | None] = namespaces or (None,)
        self._interval_s = interval_s
        self._kinds = kinds
        self.loaded = False
        """Whether everything was listed once."""

    async def run(self) -> None:
        """Resync until cancelled; NotInstalledError when a kind cannot be listed."""
        while True:
            try:
                await self.once()
            except (NotFoundError, RefusedError) as error:
                raise NotInstalledError(str(error)) from error
            except KubeError as error:
                log.warning("Failed to list resources; retrying", extra={"error": str(error)})
                await asyncio.sleep(RETRY_S)
                continue
            self.loaded = True
            await asyncio.sleep(self._interval_s)

    async def once(self) -> None:
        """List all resources, then enqueue them and those whose deletion was missed."""
        gone: list[Key] = []
        for kind in self._kinds:
            listings = [await self._kube.list_objects(kind, namespace) for namespace in self._namespaces]
            gone += self._take(kind, listings)
        for key in gone:
            await self._submit(key)
        for kind in self._kinds:
            keys = self._cache.keys(kind)
            self._metrics.resources.labels(kind.name).set(len(keys))
            for key in keys:
                await self._submit(key)

    def _take(self, kind: Kind, listings: Sequence[Listing]) -> list[Key]:
        """Store the listed resources, and remove those missing and not written since the list; return the latter."""
        versions: list[tuple[Key, str]] = []
        for listing in listings:
            for raw in listing.objects:
                resource = self._kinds.read(kind, raw)
                self._cache.store(resource)
                versions.append((resource.key, resource.metadata.resource_version))
        current = {key for key, _ in versions}
        gone: list[Key] = []
        for key in self._cache.keys(kind):
            known = self._cache.get(key)
            if known is None or key in current:
                continue
            if all(not newer(known.metadata.resource_version, listing.resource_version) for listing in listings):
                self._cache.delete(key)
                gone.append(key)
                log.info("Resource no longer exists", extra={"resource": str(key)})
        self._watch_lag.listed(kind, versions)
        return gone
