"""Reconciliation of the pods of a Cluster: their number, the next pod to replace, and the conditions.

Two conditions: `Scaled` (as many brokers as are declared) and `Settled` (every pod Ready, of the declared revision, on a node that
stays). Controllers come after all brokers, and only where their StatefulSet leaves it to us (OnDelete).

A pod is recorded in the status before it is deleted, in a write that fails if the Cluster has changed since, and every operator
keeps to a recorded choice: two operators that both run for a moment delete one pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from kafka_operator.decide.clusters.cordon import NONE_LEAVING, Leaving
from kafka_operator.decide.clusters.rolling import AskKafka, Hold, Replace, RollDecision, RollView, Settled, decide_roll
from kafka_operator.decide.clusters.scaling import AskHolders, Scale, decide_scale
from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.kafka.replica_health import ReplicaHealth, largest_replication_factor
from kafka_operator.resources.cluster import Cluster, ClusterStatus, PodGroup, Replacing
from kafka_operator.resources.pods import Pod, PodSet
from reconciler.decide.conditions import FALSE, TRUE, UNKNOWN, with_condition
from reconciler.decide.steps import ResourceEvent, Wait, WriteStatus
from reconciler.resources.metadata import Condition

SETTLED, SCALED = "Settled", "Scaled"

BUSY_POLL_S = 1.0
"""Poll interval during a replacement: short compared with the seconds that a broker takes to start."""

IDLE_POLL_S = 5.0
"""Poll interval otherwise: as often as `kubectl drain` retries, so that a drain waits for nothing else."""

REPORTED_REASONS = frozenset(
    {
        "PodStuck",
        "WouldFallUnderMinIsr",
        "ScaleInRefused",
        "NotAllowed",
        "NotLabelled",
        "SwitchedOff",
        "NoStatefulSet",
        "QuorumNotVisible",
    }
)
"""Reasons reported by an event because a user has to act. The others pass without intervention."""


@dataclass(frozen=True, slots=True)
class PodsView:
    """Input of the decision; an Unavailable has the reason why pods could not be read."""

    now: datetime
    brokers: PodSet | Unavailable
    controllers: PodSet | Unavailable | None = None
    leaving_nodes: Mapping[str, str] = field(default_factory=dict)
    health: ReplicaHealth | Unavailable | None = None


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete this very pod, as it was seen."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class ScaleTo:
    """Have a StatefulSet make or remove pods until there are so many; it must be as it was seen."""

    pod_set: PodSet
    replicas: int


Step = AskKafka | WriteStatus[ClusterStatus] | DeletePod | ScaleTo | Wait


def decide_pods(cluster: Cluster, view: PodsView) -> Step:
    """Return the next step for the pods of a Cluster that is not being deleted and has `spec.brokers`."""
    assert cluster.brokers is not None, cluster.key
    scale = _scale(cluster, cluster.brokers, view)
    decision = _roll(cluster, view)
    if isinstance(scale, AskHolders):
        return AskKafka()
    if isinstance(decision, AskKafka):
        return decision
    scaled = _with_scale(cluster, scale, view.now)
    if scaled != cluster.status:
        return WriteStatus(scaled, _event(cluster.status, scaled, SCALED))
    settled = _with_roll(cluster, decision, view.now)
    if settled != cluster.status:
        return WriteStatus(settled, _event(cluster.status, settled, SETTLED))
    if scale is not None and isinstance(view.brokers, PodSet) and view.brokers.replicas != scale.replicas:
        return ScaleTo(view.brokers, scale.replicas)
    if isinstance(decision, Replace):
        return DeletePod(decision.pod)
    return Wait(IDLE_POLL_S if isinstance(decision, Settled | Unavailable) else BUSY_POLL_S)


def leaving_of(cluster: Cluster, view: PodsView, before: Leaving) -> Leaving:
    """Return the brokers whose pods are to go, for their cordon; the last known replication factor applies where Kafka was not queried."""
    group = cluster.brokers
    if group is None or isinstance(view.brokers, Unavailable):
        return NONE_LEAVING
    maintained = max(view.brokers.replicas, cluster.status.broker_replicas or 0)
    declared = maintained if group.replicas is None else group.replicas
    chosen = "" if cluster.status.replacing is None else cluster.status.replacing.uid
    return Leaving(
        frozenset(range(group.first_id + declared, group.first_id + maintained)),
        frozenset(
            pod.node_id
            for pod in view.brokers.pods
            if pod.node in view.leaving_nodes and not pod.unavailable and pod.uid != chosen
        ),
        largest_replication_factor(view.health)
        if isinstance(view.health, ReplicaHealth)
        else before.replication_factor,
    )


def without_pods(cluster: Cluster) -> ClusterStatus:
    """Return the status of a Cluster whose pods are no longer managed."""
    conditions = tuple(item for item in cluster.status.conditions if item.type not in {SETTLED, SCALED})
    return replace(cluster.status, conditions=conditions, broker_replicas=None, replacing=None)


def _scale(cluster: Cluster, group: PodGroup, view: PodsView) -> Scale | AskHolders | None:
    """None if the number of pods is not managed, or unknown."""
    if group.replicas is None or isinstance(view.brokers, Unavailable):
        return None
    emptied = cluster.auto_rebalance is not None and cluster.auto_rebalance.on_brokers_removed
    maintained = cluster.status.broker_replicas
    return decide_scale(group.replicas, maintained, view.brokers, view.health, view.now, emptied=emptied)


def _roll(cluster: Cluster, view: PodsView) -> RollDecision | Unavailable:
    """Return what to do about the pods: the brokers' first."""
    if isinstance(view.brokers, Unavailable):
        return view.brokers
    chosen = "" if cluster.status.replacing is None else cluster.status.replacing.uid
    brokers = decide_roll(RollView(view.now, view.brokers, view.leaving_nodes, view.health, chosen))
    if not isinstance(brokers, Settled) or view.controllers is None:
        return brokers
    if isinstance(view.controllers, Unavailable):
        return view.controllers
    # Their own budget lets them be evicted one at a time: a drain needs nothing from us.
    return decide_roll(RollView(view.now, view.controllers, {}, view.health, chosen, brokers=False))


def _with_scale(cluster: Cluster, scale: Scale | None, now: datetime) -> ClusterStatus:
    status = cluster.status
    if scale is None:
        if cluster.brokers is not None and cluster.brokers.replicas is None:
            conditions = tuple(item for item in status.conditions if item.type != SCALED)
            return replace(status, conditions=conditions, broker_replicas=None)
        return status
    conditions = with_condition(
        status.conditions,
        SCALED,
        status=FALSE if scale.refused else TRUE,
        reason=scale.reason,
        message=scale.message,
        generation=cluster.metadata.generation,
        now=now,
    )
    return replace(status, conditions=conditions, broker_replicas=scale.replicas)


def _with_roll(cluster: Cluster, decision: Settled | Hold | Replace | Unavailable, now: datetime) -> ClusterStatus:
    if isinstance(decision, Settled):
        status, reason = TRUE, "AsDeclared"
        message = "Every pod is Ready, has the declared revision, and runs on a node that is not being drained."
    else:
        status = UNKNOWN if isinstance(decision, Unavailable) else FALSE
        reason, message = decision.reason, decision.message
    conditions = with_condition(
        cluster.status.conditions,
        SETTLED,
        status=status,
        reason=reason,
        message=message,
        generation=cluster.metadata.generation,
        now=now,
    )
    chosen = Replacing(decision.pod.name, decision.pod.uid) if isinstance(decision, Replace) else None
    return replace(cluster.status, conditions=conditions, replacing=chosen)


def _event(before: ClusterStatus, after: ClusterStatus, condition_type: str) -> ResourceEvent | None:
    """Return the event for a change: replacement of a pod, a problem that needs a user, and its end."""
    old, new = _find(before, condition_type), _find(after, condition_type)
    if new is None:
        return None
    if condition_type == SETTLED and after.replacing is not None:
        return ResourceEvent(warning=False, reason=new.reason, message=new.message)
    if old is not None and old.reason == new.reason:
        return None
    if new.reason in REPORTED_REASONS:
        return ResourceEvent(warning=True, reason=new.reason, message=new.message)
    if new.status == TRUE and old is not None:
        return ResourceEvent(warning=False, reason=condition_type, message=new.message)
    return None


def _find(status: ClusterStatus, condition_type: str) -> Condition | None:
    return next((item for item in status.conditions if item.type == condition_type), None)
