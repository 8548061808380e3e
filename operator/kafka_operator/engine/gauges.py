"""Gauges of resources: readiness, throttles, progress, and problems of clusters.

They are computed from the cache every few seconds, independently of the reconcilers. With shards each process reports its own resources.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from kafka_operator.engine.cache import Cache, Resource, ref_of
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.reassignment import Reassignment
from reconciler.decide.conditions import ready_of
from reconciler.metrics import Metrics
from reconciler.names import ClusterRef, Kind
from reconciler.resources.metadata import Condition
from spark_operator.engine.balance_gauges import set_balance_gauges
from spark_operator.resources.application import SparkApplication

REFRESH_S = 10.0
"""Seconds; a usual scrape interval. 10,000 resources take some hundredths of a second."""

NOT_RECONCILED = "Unknown"
"""Ready status of a resource before its first reconciliation."""


NEW = "New"
"""State of a SparkApplication before its first reconciliation."""


class Gauges:
    """Sets the gauges."""

    def __init__(self, cache: Cache, metrics: Metrics, serves: Callable[[ClusterRef], bool]) -> None:
        self._cache = cache
        self._metrics = metrics
        self._serves = serves

    async def run(self) -> None:
        """Refresh until cancelled."""
        while True:
            self.refresh()
            await asyncio.sleep(REFRESH_S)

    def refresh(self) -> None:
        """Set all gauges to the present state; deleted resources are removed."""
        self._metrics.ready.clear()
        self._metrics.throttle.clear()
        self._metrics.progress.clear()
        self._metrics.spark_applications.clear()
        self._metrics.log_dirs.clear()
        self._metrics.out_of_sync_voters.clear()
        for kind in Kind:
            resources = [item for key in self._cache.keys(kind) if (item := self._cache.get(key)) is not None]
            served = [item for item in resources if self._serves(ref_of(item))]
            for status, count in Counter(_ready(item) for item in served).items():
                self._metrics.ready.labels(kind.value, status).set(count)
            for item in served:
                if isinstance(item, Reassignment):
                    self._show(item)
                if isinstance(item, Cluster):
                    self._show_cluster(item)
            applications = [item for item in served if isinstance(item, SparkApplication)]
            for state, count in Counter(item.status.state or NEW for item in applications).items():
                self._metrics.spark_applications.labels(state).set(count)
            if kind is Kind.SPARK_APPLICATION:
                set_balance_gauges(applications, self._metrics.balance)

    def _show(self, item: Reassignment) -> None:
        names = item.key.namespace, item.key.name
        if item.status.throttle is not None:
            self._metrics.throttle.labels(*names).set(item.status.throttle.bytes_per_second)
        if item.status.progress is not None and item.status.state is not None and not item.status.state.ended:
            self._metrics.progress.labels(*names).set(item.status.progress.percent / 100)

    def _show_cluster(self, item: Cluster) -> None:
        names, found = (item.key.namespace, item.key.name), item.status.log_dirs
        for problem, dirs in (("offline", found.offline), ("uneven", found.uneven), ("cordoned", found.cordoned)):
            self._metrics.log_dirs.labels(*names, problem).set(len(dirs))
        if item.status.quorum is not None:
            self._metrics.out_of_sync_voters.labels(*names).set(len(item.status.quorum.out_of_sync_voter_ids))


def _ready(item: Resource) -> str:
    conditions: tuple[Condition, ...] = item.status.conditions
    found = ready_of(conditions)
    return NOT_RECONCILED if found is None else found.status
