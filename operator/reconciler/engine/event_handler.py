"""Watch event handler: updates the cache and enqueues the names of affected resources."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from reconciler.engine.cache import ResourceCache
from reconciler.engine.kinds import Kinds
from reconciler.engine.retries import Retries
from reconciler.engine.watch_lag import WatchLag
from reconciler.names import Key, Kind
from reconciler.resources.metadata import RawObject
from reconciler.resources.resource import Resource

DELETED = "DELETED"

log = logging.getLogger(__name__)


class EventHandler:
    """Handler of watch events."""

    def __init__(
        self,
        cache: ResourceCache,
        kinds: Kinds,
        retries: Retries,
        watch_lag: WatchLag,
        submit: Callable[[Key], Awaitable[None]],
    ) -> None:
        self._cache = cache
        self._kinds = kinds
        self._retries = retries
        self._watch_lag = watch_lag
        self._submit = submit

    async def handle(self, kind: Kind, event_type: str | None, raw: RawObject | Any) -> None:
        """Process one event: ADDED, MODIFIED, DELETED, or None for an item of a list.

        Most events bring what the operator has just written itself: the cache has that version from the response, and it is not read again.
        """
        try:
            if event_type != DELETED and self._has(kind, raw["metadata"]):
                return
            resource = self._kinds.read(kind, raw)
        except (KeyError, ValueError, TypeError) as error:
            log.warning("Ignoring invalid resource", extra={"kind": kind.name, "error": repr(error)})
            return
        if event_type == DELETED:
            await self._handle_deletion(resource)
            return
        self._watch_lag.delivered(resource.key, resource.metadata.resource_version)
        before = self._cache.get(resource.key)
        if not self._cache.store(resource):
            return
        await self._submit(resource.key)
        for key in self._kinds.affected(before, resource):
            await self._submit(key)

    def _has(self, kind: Kind, metadata: RawObject) -> bool:
        """Return whether the cache already has this version of a resource, and record its delivery then."""
        key, version = Key(kind, metadata["namespace"], metadata["name"]), metadata["resourceVersion"]
        known = self._cache.get(key)
        if known is None or (known.metadata.uid, known.metadata.resource_version) != (metadata["uid"], version):
            return False
        self._watch_lag.delivered(key, version)
        return True

    async def _handle_deletion(self, resource: Resource) -> None:
        self._watch_lag.deleted(resource.key)
        self._cache.delete(resource.key, resource.metadata.uid)
        self._retries.forget(resource.key)
        await self._submit(resource.key)
        for key in self._kinds.affected(None, resource):
            await self._submit(key)
