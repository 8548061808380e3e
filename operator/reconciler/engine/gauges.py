"""Gauges of resources: readiness, and those of each kind.

They are computed from the cache every few seconds, independently of the reconcilers. With shards each process reports its own resources.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from reconciler.decide.conditions import ready_of
from reconciler.engine.cache import ResourceCache
from reconciler.engine.kinds import Kinds
from reconciler.metrics import Metrics
from reconciler.names import NamespacedName
from reconciler.resources.resource import Resource

REFRESH_S = 10.0
"""Seconds; a usual scrape interval. 10,000 resources take some hundredths of a second."""

NOT_RECONCILED = "Unknown"
"""Ready status of a resource before its first reconciliation."""


class Gauges:
    """Sets the gauges."""

    def __init__(
        self, cache: ResourceCache, kinds: Kinds, metrics: Metrics, serves: Callable[[NamespacedName], bool]
    ) -> None:
        self._cache = cache
        self._kinds = kinds
        self._metrics = metrics
        self._serves = serves

    async def run(self) -> None:
        """Refresh until cancelled."""
        while True:
            self.refresh()
            await asyncio.sleep(REFRESH_S)

    def refresh(self) -> None:
        """Set all gauges to the current state; deleted resources are removed."""
        self._metrics.ready.clear()
        for kind in self._kinds:
            served = [item for item in self._cache.all_of(kind) if self._serves(self._kinds.queue_of(item))]
            for status, count in Counter(_ready(item) for item in served).items():
                self._metrics.ready.labels(kind.name, status).set(count)
            self._kinds.show(kind, served)


def _ready(item: Resource) -> str:
    found = ready_of(item.status.conditions)
    return NOT_RECONCILED if found is None else found.status
