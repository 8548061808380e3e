"""Reads of clusters: live brokers every time; health, versions and log directories at longer intervals, because their cost grows with the cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from kafka_operator.decide.clusters.cluster import (
    VERSIONS_EVERY_S,
    ClusterSnapshot,
    cluster_metrics_pause_s,
    shortest_cluster_metrics_pause_s,
)
from kafka_operator.decide.clusters.cluster_metrics import ClusterMetrics
from kafka_operator.decide.kafka.log_dirs import LOG_DIRS_EVERY_S, MAX_BROKERS, BrokerLogDirs
from kafka_operator.decide.kafka.observed import ObservedCluster, Unavailable
from kafka_operator.engine.connection_pool import ClusterUnavailableError, ConnectionPool
from kafka_operator.resources.cluster import Versions
from kafka_operator.resources.cluster_ref import ClusterRef

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Due:
    """Due times of the infrequent reads of one cluster: immediately at first, and for another cluster at the same address."""

    cluster_id: str
    cluster_metrics_s: float = 0.0
    earliest_cluster_metrics_s: float = 0.0
    """Earliest time of the next count of partitions after a change of brokers."""
    counted: tuple[int, ...] | None = None
    """Brokers at the last count."""
    versions_s: float = 0.0
    log_dirs_s: float = 0.0
    asked: tuple[int, ...] = ()


class ClusterReader:
    """Reads the state of clusters."""

    def __init__(self, connections: ConnectionPool, clock: Callable[[], float]) -> None:
        self._connections = connections
        self._clock = clock
        self._due: dict[ClusterRef, _Due] = {}

    async def read(self, ref: ClusterRef) -> ClusterSnapshot | Unavailable:
        """Read the state of a cluster."""
        try:
            observed = await self._connections.use(ref, lambda admin: admin.describe_cluster())
        except ClusterUnavailableError as error:
            self._due.pop(ref, None)  # everything is read again when it is back
            return error.unavailable
        due = self._due.get(ref)
        if due is None or due.cluster_id != observed.cluster_id:
            due = self._due[ref] = _Due(observed.cluster_id)
        found = ClusterSnapshot(observed)
        try:
            found = replace(found, cluster_metrics=await self._cluster_metrics(ref, due, observed))
            found = replace(found, versions=await self._versions(ref, due, observed))
            return replace(found, log_dirs=await self._log_dirs(ref, due, observed))
        except ClusterUnavailableError as error:
            log.info("Failed to read the state of a cluster", extra={"cluster": str(ref), "error": str(error)})
            return found  # what was read before the failure is due again only after its interval

    def forget(self, ref: ClusterRef) -> None:
        """Remove the state of a deleted Cluster."""
        self._due.pop(ref, None)

    async def _cluster_metrics(self, ref: ClusterRef, due: _Due, observed: ObservedCluster) -> ClusterMetrics | None:
        """Count all partitions when due, and at once when brokers have joined or left."""
        began_s = self._clock()
        changed = due.counted is not None and due.counted != observed.broker_ids
        if began_s < (due.earliest_cluster_metrics_s if changed else due.cluster_metrics_s):
            return None
        cluster_metrics = await self._connections.use(ref, lambda admin: admin.describe_cluster_metrics())
        ended_s = self._clock()
        due.earliest_cluster_metrics_s = ended_s + shortest_cluster_metrics_pause_s(ended_s - began_s)
        # Replicas may still be fetching right after a change, so the next poll counts too.
        due.cluster_metrics_s = (
            due.earliest_cluster_metrics_s if changed else ended_s + cluster_metrics_pause_s(ended_s - began_s)
        )
        due.counted = observed.broker_ids
        return cluster_metrics

    async def _versions(self, ref: ClusterRef, due: _Due, observed: ObservedCluster) -> Versions | None:
        if self._clock() < due.versions_s and due.asked == observed.broker_ids:
            return None
        versions = await self._connections.use(ref, lambda admin: admin.describe_versions(observed.broker_ids))
        due.versions_s, due.asked = self._clock() + VERSIONS_EVERY_S, observed.broker_ids
        return versions

    async def _log_dirs(self, ref: ClusterRef, due: _Due, observed: ObservedCluster) -> BrokerLogDirs | None:
        if self._clock() < due.log_dirs_s:
            return None
        brokers = observed.broker_ids[:MAX_BROKERS]
        found = await self._connections.use(ref, lambda admin: admin.describe_log_dir_states(brokers))
        due.log_dirs_s = self._clock() + LOG_DIRS_EVERY_S
        return found
