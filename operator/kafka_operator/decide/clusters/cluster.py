"""Reconciliation of a Cluster: its status, and a finalizer until its Topics are deleted.

A Cluster holds the operator's finalizer so that, when a whole namespace is deleted, its Topics can still be deleted in Kafka. It waits for
those that are being deleted themselves, for a bounded time, and for no others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from kafka_operator.decide.clusters.cluster_metrics import ClusterMetrics
from kafka_operator.decide.clusters.cordon import cordons_left
from kafka_operator.decide.kafka.log_dirs import LOG_DIRS_ONLINE, BrokerLogDirs, log_dirs_event, with_log_dirs
from kafka_operator.decide.kafka.observed import ObservedCluster, ObservedQuorum, Quorum, Unavailable
from kafka_operator.decide.kafka.quorum import out_of_sync_ids, quorum_status
from kafka_operator.decide.kafka.security import BAD_SECRET, NOT_ALLOWED
from kafka_operator.decide.steps import Claim
from kafka_operator.decide.timeouts import DELETION_TIMEOUT_S, FAILOVER_RETRY_CAP_S, FAILOVER_TIMEOUT_S
from kafka_operator.resources.cluster import KRAFT, ZOOKEEPER, Cluster, ClusterStatus, Versions
from kafka_operator.resources.reassignment import Partition
from reconciler.decide.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    condition_of,
    event_of_change,
    event_of_reasons,
    with_condition,
    with_ready,
    without_condition,
)
from reconciler.decide.steps import Done, Release, ResourceEvent, Retry, Wait, WriteStatus
from reconciler.resources.metadata import Condition

POLL_INTERVAL_S = 10.0
"""Poll interval of a cluster without changes: one small request; changes of brokers are noticed within this time."""

UNAVAILABLE_RETRY_S = 0.5
"""First retry delay for a cluster that does not answer."""

NAMESPACE_GRACE_S = 3.0
"""How long a deleted Cluster waits for its dependents to be deleted too: Kubernetes deletes a namespace kind by kind."""

RELEASE_AFTER_S = DELETION_TIMEOUT_S + 5.0
"""Slightly longer than the deletion timeout of Topics, so that each of them can end first."""

DEPENDENT_POLL_S = 0.5
"""Interval at which a deleted Cluster checks whether its dependents are gone."""

Step = Claim | Release | WriteStatus[ClusterStatus] | Retry | Wait | Done


CLUSTER_METRICS_EVERY_S = 30.0
"""Interval between counts of all partitions: with 200,000 of them a response of 8.5 MB and two seconds of CPU."""

CLUSTER_METRICS_SHARE = 20
"""The pause after a count is this many times its duration, so counting takes at most a twentieth of the time."""

VERSIONS_EVERY_S = 300.0
"""Interval between reads of the brokers' software versions; a change of brokers also triggers a read."""

WAITS_FOR_USER = frozenset({"AuthenticationFailed", "TlsFailed", "NotAuthorized", BAD_SECRET, NOT_ALLOWED})
"""Reasons why a cluster is unavailable that only a user can change: what it was given was rejected."""

HEALTHY, QUORUM_IN_SYNC = "Healthy", "QuorumInSync"
"""Conditions in addition to Ready."""

OFFLINE, ALL_IN_SYNC = "OfflinePartitions", "AllInSync"
"""Reasons."""


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Result of one read of a cluster; None for parts that were not read this time."""

    observed: ObservedCluster
    cluster_metrics: ClusterMetrics | None = None
    versions: Versions | None = None
    log_dirs: BrokerLogDirs | None = None


@dataclass(frozen=True, slots=True)
class Dependents:
    """How many Topics and Reassignments refer to a Cluster and hold the operator's finalizer, and how many of them are being deleted."""

    held: int = 0
    leaving: int = 0


def decide_cluster(cluster: Cluster, snapshot: ClusterSnapshot | Unavailable, now: datetime, waited_s: float) -> Step:
    """Return the next step for a Cluster that is not being deleted; `waited_s` is the time since its first failed poll.

    A poll that meets a failover of Kafka's controller is repeated and changes no status while the failover may still end by itself.
    """
    assert cluster.metadata.deleted is None, cluster.key
    if not cluster.metadata.has_finalizer:
        return Claim()
    if isinstance(snapshot, Unavailable) and not snapshot.definite and waited_s < FAILOVER_TIMEOUT_S:
        return Retry(UNAVAILABLE_RETRY_S, FAILOVER_RETRY_CAP_S)
    status = (
        _unavailable_status(cluster, snapshot, now)
        if isinstance(snapshot, Unavailable)
        else _seen_status(cluster, snapshot, now)
    )
    if status != cluster.status:
        return WriteStatus(
            status,
            event_of_change(cluster.status.conditions, status.conditions)
            or _health_event(cluster, status)
            or _quorum_event(cluster, status)
            or log_dirs_event(cluster.status, status),
        )
    return Retry(UNAVAILABLE_RETRY_S, POLL_INTERVAL_S) if isinstance(snapshot, Unavailable) else Wait(POLL_INTERVAL_S)


def cluster_metrics_pause_s(took_s: float) -> float:
    """Return the pause until all partitions are counted again."""
    return max(CLUSTER_METRICS_EVERY_S, shortest_cluster_metrics_pause_s(took_s))


def shortest_cluster_metrics_pause_s(took_s: float) -> float:
    """Return the pause after which brokers that joined or left have all partitions counted again."""
    return CLUSTER_METRICS_SHARE * took_s


def decide_cluster_deletion(cluster: Cluster, dependents: Dependents, waited_s: float) -> Release | Retry | Done:
    """Return the next step for a Cluster that is being deleted: its cordons are removed, and its Topics are deleted, within a bounded time."""
    assert cluster.metadata.deleted is not None, cluster.key
    if not cluster.metadata.has_finalizer:
        return Done()
    live = frozenset(cluster.status.broker_ids or ())
    cordoned = any(cordon.broker_id in live for cordon in cluster.status.cordons)
    if dependents.held == 0 and not cordoned:
        return Release(cordons_left(cluster.status))
    timeout_s = RELEASE_AFTER_S if dependents.leaving or cordoned else NAMESPACE_GRACE_S
    if waited_s < timeout_s:
        return Retry(DEPENDENT_POLL_S, DEPENDENT_POLL_S)
    return Release(cordons_left(cluster.status))


def _seen_status(cluster: Cluster, snapshot: ClusterSnapshot, now: datetime) -> ClusterStatus:
    generation = cluster.metadata.generation
    observed, cluster_metrics = snapshot.observed, snapshot.cluster_metrics
    conditions = with_ready(
        cluster.status.conditions,
        status=TRUE,
        reason="Reachable",
        message="The cluster is reachable.",
        generation=generation,
        now=now,
    )
    conditions = _with_quorum(conditions, observed.quorum, generation, now)
    status = replace(
        cluster.status,
        observed_generation=generation,
        cluster_id=observed.cluster_id,
        mode=ZOOKEEPER if observed.quorum is None else KRAFT,
        controller_id=observed.controller_id,
        quorum=quorum_status(observed.quorum)
        or (cluster.status.quorum if isinstance(observed.quorum, Quorum) else None),
        broker_ids=observed.broker_ids,
        versions=snapshot.versions or cluster.status.versions,
        conditions=conditions,
    )
    if snapshot.log_dirs is not None:
        status = with_log_dirs(cluster, status, snapshot.log_dirs, now)
    if cluster_metrics is None:
        return status
    healthy, reason, message = _health(cluster_metrics)
    return replace(
        status,
        under_replicated=cluster_metrics.under_replicated,
        offline=cluster_metrics.offline,
        imbalance=cluster_metrics.imbalance,
        conditions=with_condition(
            status.conditions, HEALTHY, status=healthy, reason=reason, message=message, generation=generation, now=now
        ),
    )


def _with_quorum(
    conditions: tuple[Condition, ...], observed: ObservedQuorum, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with that of the quorum; without it in ZooKeeper mode."""
    if observed is None:
        return without_condition(conditions, QUORUM_IN_SYNC)
    status, reason, message = _quorum(observed)
    return with_condition(
        conditions, QUORUM_IN_SYNC, status=status, reason=reason, message=message, generation=generation, now=now
    )


def _quorum(observed: Quorum | Unavailable) -> tuple[str, str, str]:
    """Return status, reason and message of QuorumInSync."""
    if isinstance(observed, Unavailable):
        return UNKNOWN, observed.reason, observed.message
    if observed.leader_id < 0:
        return (
            FALSE,
            "NoLeader",
            "The quorum has no leader: metadata cannot change until a majority of the voters is live.",
        )
    late = out_of_sync_ids(observed, observed.voters)
    if late:
        return FALSE, "VotersOutOfSync", f"Voters out of sync with the leader: {', '.join(map(str, late))}."
    return TRUE, ALL_IN_SYNC, "Every voter of the quorum is in sync with the leader."


def _health(cluster_metrics: ClusterMetrics) -> tuple[str, str, str]:
    """Return status, reason and message of Healthy: the most severe problem, without numbers, which are in the status."""
    if cluster_metrics.offline:
        return FALSE, OFFLINE, f"Partitions without a leader, such as {_listed(cluster_metrics.offline_examples)}."
    if cluster_metrics.under_replicated:
        examples = _listed(cluster_metrics.under_replicated_examples)
        return FALSE, "UnderReplicated", f"Partitions with out-of-sync replicas, such as {examples}."
    return TRUE, ALL_IN_SYNC, "Every partition has a leader, and every replica is in sync."


def _health_event(cluster: Cluster, after: ClusterStatus) -> ResourceEvent | None:
    """Return the event for partitions that have lost their leader, and for the end of that.

    Replicas fall behind whenever a broker restarts: the condition reports that, without an event.
    """
    new = condition_of(after.conditions, HEALTHY)
    if new is None or new.status == UNKNOWN:
        return None
    return event_of_reasons(cluster.status.conditions, after.conditions, HEALTHY, {OFFLINE})


def _quorum_event(cluster: Cluster, after: ClusterStatus) -> ResourceEvent | None:
    """Return the event for a quorum that is not visible or has no leader, and for the end of that; a voter may be out of sync at any restart."""
    reasons = {"NoLeader", "QuorumNotVisible"}
    return event_of_reasons(cluster.status.conditions, after.conditions, QUORUM_IN_SYNC, reasons)


def _listed(examples: tuple[Partition, ...]) -> str:
    return ", ".join(map(str, examples))


def _unavailable_status(cluster: Cluster, unavailable: Unavailable, now: datetime) -> ClusterStatus:
    """Keep the last known status; the conditions report that it may be outdated."""
    generation = cluster.metadata.generation
    reason, message = unavailable.reason, unavailable.message
    conditions = with_ready(
        cluster.status.conditions,
        status=UNKNOWN,
        reason=reason,
        message=message,
        generation=generation,
        now=now,
        stalled=reason in WAITS_FOR_USER,
    )
    for name in (HEALTHY, QUORUM_IN_SYNC, LOG_DIRS_ONLINE):
        if condition_of(conditions, name) is not None:
            conditions = with_condition(
                conditions, name, status=UNKNOWN, reason=reason, message=message, generation=generation, now=now
            )
    return replace(cluster.status, observed_generation=generation, conditions=conditions)
