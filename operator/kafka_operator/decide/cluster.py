"""What to do for one Cluster: show what was seen of it, and outlive the Topics that still need it to go.

A Cluster holds our finalizer so that, when a whole namespace is deleted, its Topics can still be deleted in Kafka. It waits for
those that are being deleted themselves, for a bounded time, and for no others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from kafka_operator.decide.conditions import TRUE, UNKNOWN, announce, with_ready
from kafka_operator.decide.observed import Away, ClusterSeen
from kafka_operator.decide.patience import DELETION_PATIENCE_S
from kafka_operator.decide.steps import Claim, Done, Release, Retry, Wait, WriteStatus
from kafka_operator.resources.cluster import Cluster, ClusterStatus

LOOK_EVERY_S = 10.0
"""How often a cluster is looked at when nothing changes: one small request; news of brokers may be this old."""

AWAY_FIRST_S = 0.5
"""First delay before a cluster that does not answer is looked at again."""

NAMESPACE_GRACE_S = 3.0
"""How long a deleted Cluster with dependents waits for them to be deleted too: a namespace's deletion goes kind by kind."""

RELEASE_AFTER_S = DELETION_PATIENCE_S + 5.0
"""A little longer than the Topics' own patience, so that each of them can end before."""

DEPENDENT_POLL_S = 0.5
"""How often a deleted Cluster looks whether its dependents are gone."""

Step = Claim | Release | WriteStatus[ClusterStatus] | Retry | Wait | Done


@dataclass(frozen=True, slots=True)
class Dependents:
    """How many Topics and Reassignments refer to a Cluster and hold our finalizer, and how many of them are being deleted."""

    held: int = 0
    leaving: int = 0


def decide_cluster(cluster: Cluster, seen: ClusterSeen | Away, now: datetime) -> Step:
    """Return the next step for a Cluster that is not being deleted."""
    assert cluster.metadata.deleted is None, cluster.key
    if not cluster.metadata.held:
        return Claim()
    status = _seen_status(cluster, seen, now) if isinstance(seen, ClusterSeen) else _away_status(cluster, seen, now)
    if status != cluster.status:
        return WriteStatus(status, announce(cluster.status.conditions, status.conditions))
    return Wait(LOOK_EVERY_S) if isinstance(seen, ClusterSeen) else Retry(AWAY_FIRST_S, LOOK_EVERY_S)


def decide_cluster_deletion(cluster: Cluster, dependents: Dependents, waited_s: float) -> Release | Retry | Done:
    """Return the next step for a Cluster that is being deleted."""
    assert cluster.metadata.deleted is not None, cluster.key
    if not cluster.metadata.held:
        return Done()
    if dependents.held == 0:
        return Release()
    patience_s = RELEASE_AFTER_S if dependents.leaving else NAMESPACE_GRACE_S
    return Retry(DEPENDENT_POLL_S, DEPENDENT_POLL_S) if waited_s < patience_s else Release()


def _seen_status(cluster: Cluster, seen: ClusterSeen, now: datetime) -> ClusterStatus:
    return replace(
        cluster.status,
        observed_generation=cluster.metadata.generation,
        cluster_id=seen.cluster_id,
        controller_id=seen.controller_id,
        broker_ids=seen.broker_ids,
        conditions=with_ready(
            cluster.status.conditions,
            status=TRUE,
            reason="Reachable",
            message="The cluster answers.",
            generation=cluster.metadata.generation,
            now=now,
        ),
    )


def _away_status(cluster: Cluster, away: Away, now: datetime) -> ClusterStatus:
    """Keep what was seen last; it is the condition that says it may be out of date."""
    conditions = with_ready(
        cluster.status.conditions,
        status=UNKNOWN,
        reason=away.reason,
        message=away.message,
        generation=cluster.metadata.generation,
        now=now,
    )
    return replace(cluster.status, conditions=conditions)
