"""Composition of the parts that all kinds share, the same in production and in tests."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence

from reconciler.engine.cache import ResourceCache
from reconciler.engine.event_handler import EventHandler
from reconciler.engine.event_recorder import EventRecorder
from reconciler.engine.gauges import Gauges
from reconciler.engine.kinds import Kinds
from reconciler.engine.loop import LINGER_S, Loop, QueuePartition
from reconciler.engine.namespace_teardown import NamespaceTeardown
from reconciler.engine.queue import CAPACITY
from reconciler.engine.resync import Resync
from reconciler.engine.retries import Retries
from reconciler.engine.watch_lag import WatchLag
from reconciler.engine.writer import Writer
from reconciler.kube.port import Kube
from reconciler.metrics import Metrics
from reconciler.names import Key, NamespacedName


class Core:
    """Components that the process runs and uses; operators register their kinds in `kinds` before anything runs."""

    def __init__(
        self,
        kube: Kube,
        cache: ResourceCache,
        metrics: Metrics,
        *,
        namespaces: Sequence[str],
        resync_interval_s: float,
        clock: Callable[[], float],
        rng: random.Random,
        linger_s: float = LINGER_S,
        capacity: int = CAPACITY,
        serves: Callable[[NamespacedName], bool] = lambda _: True,
    ) -> None:
        """All resources of the kinds are cached; only those whose queue partition this process `serves` are reconciled."""
        self.kinds = Kinds()
        self.cache = cache
        self._serves = serves
        self._closing: list[Callable[[], Awaitable[None]]] = []
        self.retries = Retries(clock, rng)
        self.writer = Writer(kube, cache, EventRecorder(kube, self.kinds, clock), self.kinds)
        self.loop = Loop(
            self._partition_of,
            self.kinds.reconcilers,
            self.retries,
            metrics,
            clock=clock,
            linger_s=linger_s,
            capacity=capacity,
        )
        self.watch_lag = WatchLag(clock)
        self.resync = Resync(
            kube,
            cache,
            self.kinds,
            self.watch_lag,
            self.loop.submit,
            metrics,
            namespaces=namespaces,
            interval_s=resync_interval_s,
        )
        self.gauges = Gauges(cache, self.kinds, metrics, serves)
        self.event_handler = EventHandler(cache, self.kinds, self.retries, self.watch_lag, self.loop.submit)
        self.teardown = NamespaceTeardown(kube, self.kinds, self.writer)

    def close_with(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have a part of an operator closed after the loop, in the order of these calls."""
        self._closing.append(close)

    async def close(self) -> None:
        """Stop working, then close the operators' parts: connections, child processes."""
        await self.loop.close()
        for close in self._closing:
            await close()

    def _partition_of(self, key: Key) -> QueuePartition | None:
        """Return the queue partition of a resource; None if the resource is unknown, or this process does not serve it."""
        partition = self.kinds.queue_partition(key, self.cache.get(key))
        return partition if partition is not None and self._serves(partition.ref) else None
