"""Kubernetes events, rate-limited by queue partition (of Topics: their Cluster) and reason.

When a cluster becomes unreachable, a thousand Topics report the same problem in their conditions. For each queue partition and
reason a burst of events is created, then one event per interval. Events are not state: one that cannot be created is logged and dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from reconciler.decide.steps import ResourceEvent
from reconciler.engine.kinds import Kinds
from reconciler.kube.port import Kube, KubeError, NewEvent
from reconciler.names import NamespacedName
from reconciler.resources.resource import Resource

BURST = 25
"""Burst of events of one queue and reason: the limit of client-go's own spam filter."""

REFILL_S = 60.0
"""Interval after which one more event is allowed."""

MAX_BUCKETS = 1_000
"""Number of remembered pairs of queue and reason; beyond it the oldest are forgotten, which at worst allows another burst."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_s: float


class EventRecorder:
    """Creates Kubernetes events."""

    def __init__(self, kube: Kube, kinds: Kinds, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._kinds = kinds
        self._clock = clock
        self._buckets: dict[tuple[NamespacedName, str], _Bucket] = {}

    async def record(self, resource: Resource, event: ResourceEvent) -> None:
        """Post an event about a resource, unless the rate limit is exceeded."""
        queue = self._kinds.queue_of(resource)
        log.info("Event", extra={"resource": str(resource.key), "reason": event.reason, "text": event.message})
        if not self._admits(queue, event.reason):
            return
        new_event = NewEvent(
            key=resource.key,
            uid=resource.metadata.uid,
            resource_version=resource.metadata.resource_version,
            warning=event.warning,
            reason=event.reason,
            message=event.message,
        )
        try:
            await self._kube.post_event(new_event)
        except KubeError as error:
            log.warning(
                "Failed to create Event",
                extra={"resource": str(resource.key), "reason": event.reason, "error": str(error)},
            )

    def _admits(self, queue: NamespacedName, reason: str) -> bool:
        now_s = self._clock()
        bucket = self._buckets.pop((queue, reason), None) or _Bucket(BURST, now_s)
        bucket.tokens = min(BURST, bucket.tokens + (now_s - bucket.filled_s) / REFILL_S)
        bucket.filled_s = now_s
        admitted = bucket.tokens >= 1
        if admitted:
            bucket.tokens -= 1
        self._buckets[queue, reason] = bucket  # moved to the end: ordered by last use
        while len(self._buckets) > MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        return admitted
