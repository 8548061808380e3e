"""Timeouts after which a finalizer is released although the cleanup in Kafka is incomplete.

Leaves out what is left undone in Kafka then: an announcement says so.
"""

from __future__ import annotations

from kafka_operator.decide.observed import Away
from kafka_operator.decide.steps import DELETION_RETRY_CAP_S, RETRY_SOON_S, Announcement, Release, Retry

DELETION_TIMEOUT_S = 30.0
"""How long a deletion is tried: longer than a controller's failover (18 s by default), shorter than people's patience with kubectl.

It is counted by the operator's own clock from its first try, since a clock that differs from the API server's must cost no topic.
"""

CLUSTER_LEAVING_TIMEOUT_S = 12.0
"""How long a cluster is waited for whose Cluster is gone or is leaving with it: enough for a second and third attempt to connect, each
of 5 s, should the first one have met a broker that hangs; and a namespace's deletion has 60 s for everything."""


def release_or_retry(away: Away, waited_s: float, *, held: bool) -> Release | Retry:
    """Return the next step for a resource that is not being deleted while its cluster is unreachable.

    Nothing can be undone in a cluster that nobody knows; whoever deletes this then shall need no operator for it.
    """
    return Release() if held and away.leaving and waited_s >= CLUSTER_LEAVING_TIMEOUT_S else Retry()


def release_after_timeout(waited_s: float, event: Announcement, away: Away | None = None) -> Release | Retry:
    """Try a deletion again until patience is out, then let go and tell; `away` is the cluster's absence, if it is that."""
    patience_s = CLUSTER_LEAVING_TIMEOUT_S if away is not None and away.leaving else DELETION_TIMEOUT_S
    if waited_s < patience_s:
        return Retry(RETRY_SOON_S, DELETION_RETRY_CAP_S)
    return Release(event)
