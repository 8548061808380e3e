"""Cordons of brokers: reads what the decision needs, and carries it out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from kafka_operator.admin.port import Admin
from kafka_operator.decide.clusters.cordon import (
    NONE_LEAVING,
    POLL_INTERVAL_S,
    SETTING,
    CordonView,
    Leaving,
    ReadCordons,
    decide_cordons,
    wanted_cordons,
)
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import ClusterUnavailableError, ConnectionPool
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.cordon import Cordon
from kafka_operator.resources.reassignment import Reassignment
from reconciler.decide.conditions import TRUE, ready_of
from reconciler.decide.steps import Done, Outcome, Wait, WriteStatus
from reconciler.engine.writer import Writer

MAX_ROUNDS = 8
"""Steps in one reconciliation: read, record, alter, read, record, and some spare for conflicts."""

log = logging.getLogger(__name__)


class Cordons:
    """Reconciler of the cordons that Clusters need."""

    def __init__(
        self,
        cache: Cache,
        connections: ConnectionPool,
        writer: Writer,
        now: Callable[[], datetime],
        loaded: Callable[[], bool],
    ) -> None:
        """Until all Reassignments are `loaded`, an unknown Reassignment does not count as deleted."""
        self._cache = cache
        self._connections = connections
        self._writer = writer
        self._now = now
        self._loaded = loaded

    async def reconcile(self, ref: ClusterRef, leaving: Leaving = NONE_LEAVING) -> Outcome:
        """Reconcile the cordons of a Cluster once; one that is being deleted ends all of its own."""
        observed: dict[int, str | Failure | None] = {}
        refused: dict[int, Failure] = {}
        for _ in range(MAX_ROUNDS):
            cluster = self._cache.cluster(ref)
            if cluster is None or not cluster.metadata.has_finalizer or not self._loaded():
                return Done()
            ready = ready_of(cluster.status.conditions)
            if cluster.metadata.deleted is None and (ready is None or ready.status != TRUE):
                return Done()
            step = decide_cordons(cluster, self._view(cluster, leaving, observed, refused))
            if isinstance(step, Wait | Done):
                return step
            if isinstance(step, WriteStatus):
                outcome = await self._writer.carry_out(cluster, step)
                if outcome is not None:
                    return outcome
                continue
            try:
                if isinstance(step, ReadCordons):
                    observed |= await self._read(ref, step.broker_ids)
                    continue
                brokers = [change.broker_id for change in step.changes]
                log.info("Changing cordons of brokers", extra={"resource": str(cluster.key), "brokers": brokers})
                refused |= await self._alter(ref, step.changes)
                observed = {
                    broker: value for broker, value in observed.items() if broker in refused or broker not in brokers
                }
            except ClusterUnavailableError as error:
                log.info("Failed to read or change cordons", extra={"cluster": str(ref), "error": str(error)})
                return Wait(POLL_INTERVAL_S)
        return Wait(POLL_INTERVAL_S)

    def _view(
        self,
        cluster: Cluster,
        leaving: Leaving,
        observed: Mapping[int, str | Failure | None],
        refused: Mapping[int, Failure],
    ) -> CordonView:
        # Read only where the cluster has cordons: it may have ten thousand Topics, too.
        own = (
            item
            for item in self._cache.dependents(cluster.ref)
            if isinstance(item, Reassignment) and item.key.namespace == cluster.key.namespace
        )
        return CordonView(
            self._now(),
            frozenset(cluster.status.broker_ids or ()),
            wanted_cordons(cluster, own, leaving),
            observed,
            refused,
            self._others(cluster),
        )

    def _others(self, cluster: Cluster) -> Mapping[int, Cordon]:
        """Return the records of other Clusters of the namespace for the same Kafka; statuses of other namespaces are not trusted."""
        refs = [ref for ref in self._cache.same_cluster(cluster.ref) if ref != cluster.ref]
        found = [self._cache.cluster(ref) for ref in refs if ref.namespace == cluster.key.namespace]
        return {cordon.broker_id: cordon for other in found if other is not None for cordon in other.status.cordons}

    async def _read(self, ref: ClusterRef, broker_ids: tuple[int, ...]) -> Mapping[int, str | Failure | None]:
        async def read(admin: Admin) -> Mapping[int, Mapping[str, str] | Failure]:
            return await admin.describe_broker_configs(broker_ids, (SETTING,))

        answers = await self._connections.use(ref, read)
        return {
            broker: answer if isinstance(answer, Failure) else answer.get(SETTING) for broker, answer in answers.items()
        }

    async def _alter(self, ref: ClusterRef, changes: tuple[AlterBroker, ...]) -> Mapping[int, Failure]:
        return await self._connections.use(ref, lambda admin: admin.alter_broker_configs(changes))
