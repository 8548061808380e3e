"""Readings of the guards of running Reassignments: from the cluster, from the consumer groups' coordinators, and from Prometheus.

Readings are kept in memory for `GUARD_POLL_S`. ISR shrinks are counted between two of them, so that the first reading of a process has none.
In another namespace than the Cluster's a guard counts only the partitions of its own plan, and reads neither groups nor Prometheus: these
have data of the whole cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from kafka_operator.admin.port import Admin
from kafka_operator.decide.kafka.observed import KafkaTopic
from kafka_operator.decide.reassignments.guard import GUARD_POLL_S, Reading
from kafka_operator.decide.reassignments.guard_readings import (
    Shrinks,
    counted_shrinks,
    lag_readings,
    partition_readings,
    query_reading,
    unreadable,
)
from kafka_operator.engine.cache import Cache
from kafka_operator.prometheus.port import Prometheus, PrometheusError, PrometheusServer
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.move_guard import Guard, QueryLimit
from kafka_operator.resources.reassignment import Reassignment, State
from kafka_operator.resources.reassignment_terms import Action
from kafka_operator.resources.security import SecretKey
from reconciler.kube.port import Kube, KubeError, NotFoundError
from reconciler.names import Key

MIN_ISR_EVERY_S = 300.0
"""Interval of the reads of min.insync.replicas of all topics: it rarely changes, and costs a request for each 500 topics."""


@dataclass(slots=True)
class _Memory:
    taken_s: float
    guard: Guard
    readings: tuple[Reading, ...]
    shrinks: Shrinks | None = None
    min_isr: dict[str, int] = field(default_factory=dict)
    min_isr_s: float = 0.0


class GuardReader:
    """Reads the limits of guards; the clock is injected."""

    def __init__(self, cache: Cache, kube: Kube, prometheus: Prometheus, clock: Callable[[], float]) -> None:
        self._cache = cache
        self._kube = kube
        self._prometheus = prometheus
        self._clock = clock
        self._memories: dict[Key, _Memory] = {}

    def latest(self, item: Reassignment) -> tuple[Reading, ...] | None:
        """Return the readings of the last interval; None if a reading is due."""
        memory = self._memories.get(item.key)
        if memory is None or memory.guard != item.guard or self._clock() - memory.taken_s >= GUARD_POLL_S:
            return None
        return memory.readings

    async def read(self, admin: Admin, item: Reassignment, topics: Collection[str]) -> tuple[Reading, ...]:
        """Read all limits of a guard; `topics` are those of the plan."""
        guard, before, now_s = item.guard, self._memories.get(item.key), self._clock()
        assert guard is not None, item.key
        own = item.key.namespace == item.cluster.namespace
        memory = _Memory(now_s, guard, ())
        if before is not None:
            memory.min_isr, memory.min_isr_s = before.min_isr, before.min_isr_s
        readings: tuple[Reading, ...] = ()
        if (guard.max_under_min_isr, guard.max_offline, guard.max_isr_shrinks_per_minute) != (None, None, None):
            observed = (await admin.describe_layout(None if own else sorted(topics))).topics
            if guard.max_under_min_isr is not None:
                await self._read_min_isr(admin, memory, observed, now_s)
            if guard.max_isr_shrinks_per_minute is not None:
                memory.shrinks = counted_shrinks(None if before is None else before.shrinks, observed, now_s)
            readings = partition_readings(guard, observed, memory.min_isr, memory.shrinks)
        if not own:
            message = (
                f"it is only read in namespace {item.cluster.namespace}, that of the Cluster: remove it from the guard."
            )
            memory.readings = (*readings, *unreadable(guard, message))
        else:
            lags = await admin.describe_group_lags([limit.group for limit in guard.lags]) if guard.lags else {}
            memory.readings = (*readings, *lag_readings(guard.lags, lags), *await self._query(item, guard))
        self._memories[item.key] = memory
        return memory.readings

    def forget(self, key: Key) -> None:
        """Remove the readings."""
        self._memories.pop(key, None)

    async def _read_min_isr(
        self, admin: Admin, memory: _Memory, observed: Mapping[str, KafkaTopic], now_s: float
    ) -> None:
        if now_s - memory.min_isr_s >= MIN_ISR_EVERY_S:
            memory.min_isr, memory.min_isr_s = {}, now_s
        unknown = sorted(observed.keys() - memory.min_isr.keys())
        if unknown:
            memory.min_isr = {**memory.min_isr, **await admin.describe_min_isr(unknown)}

    async def _query(self, item: Reassignment, guard: Guard) -> list[Reading]:
        if not guard.queries:
            return []
        cluster = self._cache.cluster(item.cluster)
        server = await self._server(cluster)
        return list(await asyncio.gather(*(self._queried(server, limit) for limit in guard.queries)))

    async def _queried(self, server: PrometheusServer | str, limit: QueryLimit) -> Reading:
        if isinstance(server, str):
            return query_reading(limit, None, server)
        try:
            return query_reading(limit, await self._prometheus.query(server, limit.query))
        except PrometheusError as error:
            return query_reading(limit, None, f"{error}.")

    async def _server(self, cluster: Cluster | None) -> PrometheusServer | str:
        """Return the Cluster's Prometheus server with its credentials, or why there is none."""
        if cluster is None or cluster.prometheus is None:
            return "the Cluster has no spec.prometheus: add the address of the server."
        ref = cluster.prometheus
        try:
            ca, token = [await self._text(cluster, place) for place in (ref.ca, ref.token)]
        except _SecretError as error:
            return str(error)
        try:
            return PrometheusServer(ref.url, ca, None if token is None else token.strip())
        except ValueError as error:
            return f"spec.prometheus of the Cluster is invalid: {error}."

    async def _text(self, cluster: Cluster, place: SecretKey | None) -> str | None:
        if place is None:
            return None
        name = f"Secret {cluster.key.namespace}/{place.secret}"
        try:
            return (await self._kube.get_secret(cluster.key.namespace, place.secret))[place.key].decode()
        except NotFoundError:
            raise _SecretError(f"{name} of spec.prometheus of the Cluster does not exist.") from None
        except KubeError:
            raise _SecretError(
                f"{name} of spec.prometheus of the Cluster cannot be read (operator.secrets of the chart)."
            ) from None
        except (KeyError, UnicodeDecodeError):
            raise _SecretError(f"{name} has no text under the key {place.key}.") from None


class _SecretError(Exception):
    """A value of a Secret is missing; the message has no value."""


def is_guarded(item: Reassignment) -> bool:
    """Return whether the limits of a Reassignment's guard apply now: before its moves and during them, but not during a rollback."""
    status = item.status
    return (
        item.guard is not None
        and status.state in {State.PENDING, State.RUNNING}
        and item.action is Action.EXECUTE
        and not status.rollback
        and item.metadata.deleted is None
    )
