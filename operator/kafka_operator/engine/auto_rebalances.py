"""Automatic rebalances of Clusters: reads the state that the decision needs, and carries the decision out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from kafka_operator.admin.port import Admin
from kafka_operator.decide.clusters.cluster import cluster_metrics_pause_s
from kafka_operator.decide.clusters.rebalance import POLL_INTERVAL_S, RebalanceView, decide_rebalance
from kafka_operator.decide.clusters.rebalance_need import (
    SETTLE_S,
    CurrentState,
    Measure,
    ReadHolders,
    Spread,
    holders_of,
    spread_of,
)
from kafka_operator.decide.kafka.layout import Layout
from kafka_operator.decide.steps import CancelReassignment, CreateReassignment
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import ClusterUnavailableError, ConnectionPool
from kafka_operator.engine.owned_reassignments import OwnedReassignments
from kafka_operator.engine.reassignment_reads import sizes_in
from kafka_operator.engine.tenants import Tenants
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.reassignment import Reassignment
from reconciler.decide.conditions import TRUE, ready_of
from reconciler.decide.steps import Done, Outcome, Wait, WriteStatus
from reconciler.engine.writer import Writer

MAX_ROUNDS = 10
"""Steps in one reconciliation: record an end, read, record, condition, measure, create; and some spare for conflicts."""

LOADING_POLL_S = 1.0
"""Interval of checks, after the start, whether everything has been listed."""

MEASURE_EVERY_S = 300.0
"""Interval of imbalance measurements: every broker returns the sizes of all of its logs."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Observed:
    """State of one cluster kept in memory between reconciliations. Its loss at a restart only causes a short delay."""

    alive: frozenset[int]
    since_s: float
    offline_since_s: dict[int, float] = field(default_factory=dict)
    layout_s: float = 0.0
    """When all partitions may be read again."""
    measure_s: float = 0.0
    holders: frozenset[int] | None = None


class AutoRebalances:
    """Reconciler of `spec.autoRebalance` of Clusters."""

    def __init__(
        self,
        cache: Cache,
        connections: ConnectionPool,
        writer: Writer,
        owned: OwnedReassignments,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        loaded: Callable[[], bool],
    ) -> None:
        """Until all Reassignments are `loaded`, an unknown Reassignment does not count as deleted."""
        self._cache = cache
        self._tenants = Tenants(cache)
        self._connections = connections
        self._writer = writer
        self._owned = owned
        self._now = now
        self._clock = clock
        self._loaded = loaded
        self._observed: dict[ClusterRef, _Observed] = {}

    async def reconcile(self, ref: ClusterRef) -> Outcome:
        """Reconcile the automatic rebalance of a Cluster once."""
        spread: Spread | None = None
        for _ in range(MAX_ROUNDS):
            cluster = self._cache.cluster(ref)
            if cluster is None or cluster.metadata.deleted is not None or not cluster.metadata.has_finalizer:
                self._observed.pop(ref, None)
                return Done()
            ready = ready_of(cluster.status.conditions)
            if cluster.auto_rebalance is None and cluster.status.auto_rebalance is None:
                return Done()
            if not self._loaded():
                return Wait(LOADING_POLL_S)
            if ready is None or ready.status != TRUE:
                return Wait(POLL_INTERVAL_S)
            observed = self._remembered(cluster)
            step = decide_rebalance(cluster, self._view(cluster, observed, spread))
            if isinstance(step, Done | Wait):
                return step
            if isinstance(step, ReadHolders | Measure):
                try:
                    spread = await self._read(cluster, observed, step) or spread
                except ClusterUnavailableError as error:
                    log.info("Failed to read cluster", extra={"cluster": str(ref), "error": str(error)})
                    return Wait(POLL_INTERVAL_S)
                if isinstance(step, ReadHolders) and observed.holders is None:
                    return Wait(POLL_INTERVAL_S)
                continue
            outcome = await self._carry_out(cluster, step)
            observed.holders = None  # the next decision needs a newer read
            if outcome is not None:
                return outcome
        return Wait(POLL_INTERVAL_S)

    async def _carry_out(
        self,
        cluster: Cluster,
        step: WriteStatus | CreateReassignment | CancelReassignment,  # type: ignore[type-arg]
    ) -> Outcome | None:
        if isinstance(step, WriteStatus):
            return await self._writer.carry_out(cluster, step)
        log.info(
            "Creating automatic rebalance Reassignment", extra={"resource": str(cluster.key), "reassignment": step.name}
        )
        return await self._owned.carry_out(cluster, step)

    def _remembered(self, cluster: Cluster) -> _Observed:
        now_s, alive = self._clock(), frozenset(cluster.status.broker_ids or ())
        observed = self._observed.get(cluster.ref)
        if observed is None:
            observed = self._observed[cluster.ref] = _Observed(alive, now_s)
        elif observed.alive != alive:
            observed.alive, observed.since_s, observed.holders = alive, now_s, None
        record = cluster.status.auto_rebalance
        offline = set(() if record is None else record.brokers) - alive
        observed.offline_since_s = {broker: observed.offline_since_s.get(broker, now_s) for broker in offline}
        return observed

    def _view(self, cluster: Cluster, observed: _Observed, spread: Spread | None) -> RebalanceView:
        now_s = self._clock()
        current = CurrentState(
            alive=observed.alive,
            settled=now_s - observed.since_s >= SETTLE_S,
            offline_s={broker: now_s - since_s for broker, since_s in observed.offline_since_s.items()},
            holders=observed.holders,
            spread=spread,
            can_measure=spread is None and now_s >= observed.measure_s,
        )
        found = [item for item in self._tenants.moves(cluster.ref) if self._is_in_the_way(cluster, item)]
        own = {item.key.name: item for item in found if item.key.namespace == cluster.key.namespace}
        held = cluster.status.auto_rebalance
        mine = None if held is None or held.open is None else held.open.name
        others = tuple(item for item in found if item.metadata.owner != cluster.key or item.key.name != mine)
        return RebalanceView(self._now(), current, own, others)

    def _is_in_the_way(self, cluster: Cluster, item: Reassignment) -> bool:
        """Return whether a rebalance waits for a Reassignment: of the Cluster's namespace, or an active one with the right of another namespace."""
        if item.key.namespace == cluster.key.namespace:
            return True
        moves = item.status.begun and not self._tenants.yields(item, cluster.ref)
        return moves and self._tenants.refusal_of_move(item) is None

    async def _read(self, cluster: Cluster, observed: _Observed, step: ReadHolders | Measure) -> Spread | None:
        """Read the cluster if the interval since the last read has passed. Holders of replicas are cached until the next change."""
        spec, ref = cluster.auto_rebalance, cluster.ref
        assert spec is not None, ref
        began_s = self._clock()
        if isinstance(step, ReadHolders) and began_s < observed.layout_s:
            return None

        async def read(admin: Admin) -> tuple[Layout, Spread | None]:
            layout = await admin.describe_layout(None)
            if isinstance(step, ReadHolders):
                return layout, None
            return layout, spread_of(spec, layout, await sizes_in(admin, layout))

        layout, spread = await self._connections.use(ref, read)
        took_s = self._clock() - began_s
        observed.holders = holders_of(layout, spec.excluded_topics)
        observed.layout_s = self._clock() + cluster_metrics_pause_s(took_s) - POLL_INTERVAL_S
        if spread is not None:
            observed.measure_s = self._clock() + max(MEASURE_EVERY_S, cluster_metrics_pause_s(took_s))
        return spread
