"""Timeouts of decisions on every kind: before a problem is reported, and before a finalizer is released without a complete cleanup.

An event reports an incomplete cleanup.
"""

from __future__ import annotations

from kafka_operator.decide.kafka.observed import Unavailable
from reconciler.decide.steps import DELETION_RETRY_CAP_S, RETRY_SOON_S, Release, ResourceEvent, Retry

TRANSIENT_ERROR_TIMEOUT_S = 5.0
"""How long a transient problem is not reported: a hundred times the usual delay of metadata, and less than a user waits."""

FAILOVER_TIMEOUT_S = 25.0
"""The same for a controller that does not answer: Kafka's default ZooKeeper session of 18 s must expire before another takes over."""

FAILOVER_RETRY_CAP_S = 1.0
"""Longest retry delay during a failover: waiting work should continue soon after the new controller is there."""

DELETION_TIMEOUT_S = 30.0
"""How long a deletion is retried: longer than a controller failover (18 s by default), shorter than users wait for kubectl.

Counted by the operator's own clock from the first attempt, so that a clock skew to the API server deletes no finalizer early.
"""

CLUSTER_LEAVING_TIMEOUT_S = 12.0
"""How long to wait for a cluster whose Cluster is deleted or being deleted: enough for a second and third connection attempt
of 5 s each, if the first one met a broker that hangs. Kubernetes allows 60 s for the deletion of a namespace."""


def release_or_retry(unavailable: Unavailable, waited_s: float, *, has_finalizer: bool) -> Release | Retry:
    """Return the next step for a resource that is not being deleted while its cluster is unreachable.

    Nothing can be reverted in an unknown cluster; a later deletion of the resource must not need the operator.
    """
    return Release() if has_finalizer and unavailable.leaving and waited_s >= CLUSTER_LEAVING_TIMEOUT_S else Retry()


def release_after_timeout(
    waited_s: float, event: ResourceEvent, unavailable: Unavailable | None = None
) -> Release | Retry:
    """Retry a deletion until the timeout, then release the finalizer with an event; `unavailable` is set if the cluster is unreachable."""
    timeout_s = CLUSTER_LEAVING_TIMEOUT_S if unavailable is not None and unavailable.leaving else DELETION_TIMEOUT_S
    if waited_s < timeout_s:
        return Retry(RETRY_SOON_S, DELETION_RETRY_CAP_S)
    return Release(event)
