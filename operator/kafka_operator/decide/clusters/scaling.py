"""Scaling of broker pods: up immediately, down only after the brokers to remove hold no replicas, and never a voter of the quorum.

The maintained number (`status.brokerReplicas`) follows the declared one upwards at once, downwards only when the
brokers to be removed hold nothing. A StatefulSet scaled by another client is set back to it, downwards under the same condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kafka_operator.decide.kafka.observed import Quorum, Unavailable
from kafka_operator.decide.kafka.replica_health import (
    PartitionReplicas,
    ReplicaHealth,
    partition_names,
    with_replica_on,
)
from kafka_operator.resources.pods import Pod, PodSet

YOUNG_S = 30.0
"""How long a pod that is not Ready yet is not removed again: `helm upgrade` scales out the StatefulSet a moment before the Cluster."""


@dataclass(frozen=True, slots=True)
class AskHolders:
    """Fewer pods are declared: read the cluster."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Have so many pods."""

    replicas: int
    reason: str
    message: str

    @property
    def refused(self) -> bool:
        """Whether it is not what is declared."""
        return self.reason != "AsDeclared"


def decide_scale(
    declared: int,
    maintained: int | None,
    pod_set: PodSet,
    health: ReplicaHealth | Unavailable | None,
    now: datetime,
    *,
    emptied: bool = False,
) -> Scale | AskHolders:
    """Return the desired number of pods.

    `maintained` is the number maintained so far, None at first; a StatefulSet may have more after another client scaled it up.
    `emptied` is whether a Reassignment is made by itself for brokers that are to go (rebalance).
    """
    before = max(pod_set.replicas, maintained or 0)
    if declared >= before:
        return Scale(declared, "AsDeclared", f"{declared} broker pods, as declared.")
    leaving = range(pod_set.first_id + declared, pod_set.first_id + before)
    young = [pod for pod in pod_set.pods if pod.node_id in leaving and not pod.ready and _age_s(pod, now) < YOUNG_S]
    if young:
        return Scale(before, "WaitingForPods", f"Waiting for {', '.join(pod.name for pod in young)}, just created.")
    if health is None:
        return AskHolders()
    if isinstance(health, Unavailable):
        message = f"No pod is removed while the cluster is unreachable. {health.message}"
        return Scale(before, health.reason, message)
    voters = _refusal_of_voters(health, leaving)
    if voters is not None:
        return Scale(before, "ScaleInRefused", f"Scale-in from {before} to {declared} broker pods is blocked: {voters}")
    held = with_replica_on(health.partitions, leaving)
    if held:
        return Scale(before, "ScaleInRefused", _refusal(before, declared, leaving, held, emptied=emptied))
    return Scale(declared, "AsDeclared", f"{declared} broker pods, as declared.")


def _refusal_of_voters(health: ReplicaHealth, leaving: range) -> str | None:
    """Return why pods of combined nodes stay: a quorum keeps counting a voter that is gone."""
    if isinstance(health.quorum, Unavailable):
        return f"their nodes may be voters of the quorum, which is not visible. {health.quorum.message}"
    if isinstance(health.quorum, Quorum) and not health.quorum.voters:
        return "their nodes may be voters of the quorum, which has no leader at the moment."
    voters = sorted(health.quorum.voter_ids & set(leaving)) if isinstance(health.quorum, Quorum) else []
    if not voters:
        return None
    names = ", ".join(map(str, voters))
    return f"voters of the quorum would be removed: {names}. Remove them first with kafka-metadata-quorum remove-controller."


def _age_s(pod: Pod, now: datetime) -> float:
    return (now - pod.since).total_seconds()


def _refusal(before: int, declared: int, leaving: range, held: list[PartitionReplicas], *, emptied: bool) -> str:
    by_broker = [(broker, with_replica_on(held, {broker})) for broker in leaving]
    holders = "; ".join(
        f"broker {broker} holds {partition_names(partitions)}" for broker, partitions in by_broker if partitions
    )
    way = (
        "spec.autoRebalance creates a Reassignment that moves these replicas, see the condition Rebalanced"
        if emptied
        else "Move these replicas to other brokers with a Reassignment"
    )
    return f"Scale-in from {before} to {declared} broker pods is blocked: {holders}. {way}; the pods are removed afterwards."
