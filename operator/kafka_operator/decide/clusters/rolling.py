"""Rolling replacement of pods: selects the next pod, one at a time, without reducing the availability of a partition.

    a pod is due      when its revision is not the StatefulSet's, or its node is to be left
    it is replaced    when no pod is unavailable, every replica is in sync, and no partition would fall under its min.insync.replicas;
                      a voter of a KRaft quorum only while the other voters in sync are a majority
    the order         a node's drain before a roll; the controller (the leader of a quorum) after all others; else by id

So a broker is back in every ISR before the next one goes. A pod that does not get ready in time blocks the roll and is reported, unless
it is due itself: then its replacement may fix it (a roll of a form that cannot start is left by rolling to one that can).
A pod that is Ready and must not go yet makes another due one take its turn, so one topic with a single copy holds up one broker.

Each decision depends only on the current state; nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kafka_operator.decide.kafka.observed import Quorum, Unavailable
from kafka_operator.decide.kafka.quorum import voters_missed_without
from kafka_operator.decide.kafka.replica_health import (
    ReplicaHealth,
    out_of_sync,
    partition_names,
    under_min_isr_without,
)
from kafka_operator.resources.pods import Pod, PodSet

READY_WITHIN_S = 300.0
"""How long a pod may take to be Ready, or to be gone, before it counts as stuck: an image to pull, a volume to move, logs to recover
after a crash. It is only reported: the roll continues when the pod becomes Ready."""


@dataclass(frozen=True, slots=True)
class RollView:
    """Input of the decision. `health` is None until Kafka is queried, which is expensive in a large cluster."""

    now: datetime
    pod_set: PodSet
    leaving_nodes: Mapping[str, str]
    """Kubernetes node -> the reason for leaving it."""
    health: ReplicaHealth | Unavailable | None = None
    chosen: str = ""
    """Uid of the pod that was chosen before, by us or by another operator: none other is, as long as this one is due and there."""
    brokers: bool = True
    """Whether the pods are brokers, which register; a controller on standby does not."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Every pod is Ready and none is due."""


@dataclass(frozen=True, slots=True)
class AskKafka:
    """A pod is due and Kubernetes' state permits it: query all partitions, or (`min_isr`) the min.insync.replicas of their topics."""

    min_isr: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing may be replaced now."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Delete this pod; its StatefulSet makes a new one."""

    pod: Pod
    reason: str
    message: str


RollDecision = Settled | AskKafka | Hold | Replace


def decide_roll(view: RollView) -> RollDecision:
    """Return what to do about one StatefulSet's pods."""
    pods = view.pod_set.pods
    due = [pod for pod in pods if not pod.deleting and _why(pod, view) is not None]
    stuck = [pod for pod in pods if pod.unavailable and _overdue(pod, view.now)]
    coming = [pod.name for pod in pods if pod.unavailable and pod not in stuck] + _missing(view.pod_set)
    hopeless = [pod for pod in stuck if pod not in due]
    if hopeless:
        return _stuck(hopeless)
    if coming:
        return Hold("WaitingForPods", f"Waiting for {', '.join(sorted(coming))} to be Ready.")
    if not due:
        return Settled()
    if view.health is None:
        return AskKafka()
    if isinstance(view.health, Unavailable):
        return _decide_without_kafka(view, stuck, view.health)
    return _decide_with_health(view, view.health, stuck, due)


def _decide_with_health(
    view: RollView, health: ReplicaHealth, stuck: Sequence[Pod], due: Sequence[Pod]
) -> RollDecision:
    """Decide by what Kafka shows."""
    stuck_ids = {pod.node_id for pod in stuck}
    unknown = [pod for pod in view.pod_set.pods if pod.ready and view.brokers and pod.node_id not in health.broker_ids]
    if unknown:
        names = ", ".join(f"{pod.name} (id {pod.node_id})" for pod in unknown)
        return Hold("WaitingForBrokers", f"Kafka does not list {names} among its brokers.")
    if isinstance(health.quorum, Unavailable):
        message = f"No pod is replaced while the quorum is not visible: the pod may host one of its voters. {health.quorum.message}"
        return Hold(health.quorum.reason, message)
    if not stuck and health.controller_id < 0:
        return Hold("WaitingForController", "The cluster has no active controller.")
    late = out_of_sync(health.partitions, without=stuck_ids)
    if late:
        return Hold("UnderReplicated", f"Waiting until every replica is in sync. Out of sync: {partition_names(late)}.")
    if health.min_isr is None:
        return AskKafka(min_isr=True)
    turn = _in_order(view, health, stuck or due)
    refused: Hold | None = None
    for pod in turn:
        hold = _why_not(pod, health)
        if hold is None:
            return _replace(pod, view)
        refused = refused or hold
    assert refused is not None, view.pod_set.name
    return refused


def _why_not(pod: Pod, health: ReplicaHealth) -> Hold | None:
    """Return why a pod must not be stopped now: the partitions or the quorum would lose too much."""
    if isinstance(health.quorum, Quorum):
        missed = voters_missed_without(health.quorum, pod.node_id)
        if missed:
            message = f"{pod.name} hosts a voter of the quorum, and other voters are not in sync: {', '.join(map(str, missed))}."
            return Hold("WaitingForQuorum", message)
    lost = under_min_isr_without(health, pod.node_id)
    if not lost:
        return None
    message = f"Replacing {pod.name} would leave partitions below min.insync.replicas: {partition_names(lost)}."
    return Hold("WouldFallUnderMinIsr", message)


def _decide_without_kafka(view: RollView, stuck: Sequence[Pod], unavailable: Unavailable) -> RollDecision:
    """Decide without Kafka: where no pod is Ready, replacing one harms no client."""
    if stuck and not any(pod.ready for pod in view.pod_set.pods):
        return _replace(stuck[0], view)
    return Hold(unavailable.reason, f"No pod is replaced while the cluster is unreachable. {unavailable.message}")


def _in_order(view: RollView, health: ReplicaHealth, pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods that may be next: those of a drain first, and the controller only when it is the last."""
    chosen = [pod for pod in pods if pod.uid == view.chosen]
    if chosen:
        return chosen
    draining = [pod for pod in pods if pod.node in view.leaving_nodes]
    first = draining or list(pods)
    return [pod for pod in first if pod.node_id != health.controller_id] or first


def _replace(pod: Pod, view: RollView) -> Replace:
    reason = "Draining" if pod.node in view.leaving_nodes else "Rolling"
    return Replace(pod, reason, f"Pod {pod.name} is being replaced: {_why(pod, view)}.")


def _why(pod: Pod, view: RollView) -> str | None:
    """Return the reason why a pod is due, None when it is not."""
    if pod.node in view.leaving_nodes:
        return f"its node {pod.node} is being drained, {view.leaving_nodes[pod.node]}"
    made = view.pod_set
    if made.on_delete and made.observed and made.update_revision and pod.revision != made.update_revision:
        return f"it has revision {pod.revision or '(none)'}, not {made.update_revision}"
    return None


def _overdue(pod: Pod, now: datetime) -> bool:
    return (now - pod.since).total_seconds() > READY_WITHIN_S


def _missing(pod_set: PodSet) -> list[str]:
    """Return the names of pods that are still to be made."""
    current = {pod.node_id for pod in pod_set.pods}
    return [
        f"{pod_set.name}-{ordinal}" for ordinal in range(pod_set.replicas) if pod_set.first_id + ordinal not in current
    ]


def _stuck(pods: Sequence[Pod]) -> Hold:
    what = ", ".join(f"{pod.name} ({'not gone' if pod.deleting else 'not Ready'})" for pod in pods)
    limit = f"{READY_WITHIN_S:.0f} s"
    return Hold("PodStuck", f"For more than {limit}: {what}. No further pod is replaced until this is resolved.")
