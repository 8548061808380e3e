"""Reconciliation loop: takes batches of names from the queue partitions, and reconciles them: done, wait or retry.

The queue has one partition for each kind and cluster, with one batch at a time: a resource is never reconciled twice at once,
slow, and a cluster that hangs does not delay others.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reconciler.decide.steps import RETRY_LATER_S, Outcome, Retry, Wait
from reconciler.engine.queue import CAPACITY, WorkQueue
from reconciler.engine.queue import QueuePartition as AnyQueuePartition
from reconciler.engine.retries import Retries
from reconciler.metrics import Metrics
from reconciler.names import Key, Kind, NamespacedName

MAX_BATCH = 200
"""Resources in a batch: an Admin call of some 20 kB, answered in well under a second."""

LINGER_S = 0.05
"""How long a queue partition waits for more resources before it takes a batch: little of the 2 s that a Topic may take, much for
`kubectl apply -f`."""

BEAT_EVERY_S = 1.0
"""Interval of the loop's heartbeat."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueuePartition:
    """The resources of one kind that share a queue: those of one Cluster, or a single resource (KindSpec.queue_of)."""

    kind: Kind
    ref: NamespacedName


class Reconciler(Protocol):
    """Reconciles each resource of a batch once."""

    async def reconcile(self, ref: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Return the outcome for every key."""
        ...


class Loop:
    """Processes the queue."""

    def __init__(
        self,
        partition_of: Callable[[Key], QueuePartition | None],
        reconcilers: Mapping[Kind, Reconciler],
        retries: Retries,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.monotonic,
        linger_s: float = LINGER_S,
        capacity: int = CAPACITY,
    ) -> None:
        self._queue = WorkQueue(partition_of, self._woken, capacity=capacity)
        self._reconcilers = reconcilers
        self._retries = retries
        self._metrics = metrics
        self._clock = clock
        self._linger_s = linger_s
        self._workers: dict[AnyQueuePartition, asyncio.Task[None]] = {}
        self._started_s: dict[AnyQueuePartition, float] = {}
        self._closed = False
        self.beat_s = clock()
        """Time of the last heartbeat on the given clock."""

    async def submit(self, key: Key) -> None:
        """Enqueue a resource; wait while the queue is full."""
        await self._queue.put(key)

    def wake(self, key: Key) -> None:
        """Enqueue a resource, from within the loop."""
        self._queue.put_now(key)

    @property
    def oldest_batch_s(self) -> float:
        """Return the age of the oldest batch in progress; 0 when there is none."""
        return max((self._clock() - started_s for started_s in list(self._started_s.values())), default=0.0)

    @property
    def idle(self) -> bool:
        """Whether no batch is in progress and the queue is empty; timers may still run."""
        return not self._workers and not len(self._queue)

    async def beat(self) -> None:
        """Update the heartbeat until cancelled."""
        while True:
            self.beat_s = self._clock()
            self._metrics.queue_size.set(len(self._queue))
            await asyncio.sleep(BEAT_EVERY_S)

    async def close(self) -> None:
        """Stop working; unfinished batches are abandoned as after a crash, and continued at the next start."""
        self._closed = True
        self._queue.close()
        workers = list(self._workers.values())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _woken(self, partition: AnyQueuePartition) -> None:
        if partition not in self._workers and not self._closed:
            assert isinstance(partition, QueuePartition), partition
            self._workers[partition] = asyncio.create_task(
                self._work(partition), name=f"{partition.kind} of {partition.ref}"
            )

    async def _work(self, partition: QueuePartition) -> None:
        """Process a queue partition; its worker exists while it has work."""
        try:
            while self._queue.waiting(partition):
                if self._queue.waiting(partition) < MAX_BATCH:
                    await asyncio.sleep(self._linger_s)
                keys = self._queue.take(partition, MAX_BATCH)
                self._started_s[partition] = self._clock()
                outcomes = await self._reconcile(partition, keys)
                del self._started_s[partition]
                for key in keys:
                    self._settle(key, outcomes.get(key, Retry()))
        finally:
            self._started_s.pop(partition, None)
            del self._workers[partition]

    async def _reconcile(self, partition: QueuePartition, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        with self._metrics.batch(partition.kind, keys):
            try:
                return await self._reconcilers[partition.kind].reconcile(partition.ref, keys)
            except Exception:  # a failing batch must not end the operator
                log.exception(
                    "Batch failed", extra={"queue": f"{partition.kind} of {partition.ref}", "size": len(keys)}
                )
                return {key: Retry(RETRY_LATER_S) for key in keys}

    def _settle(self, key: Key, outcome: Outcome) -> None:
        if isinstance(outcome, Retry):
            self._metrics.failed.labels(key.kind.name).inc()
            self._queue.put_after(key, self._retries.delay_s(key, outcome))
            return
        self._metrics.successful.labels(key.kind.name).inc()
        self._retries.forget(key)
        if isinstance(outcome, Wait):
            self._queue.put_after(key, outcome.seconds)
