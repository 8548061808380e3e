"""Reconciliation of a Topic.

    authorize ─► check ownership ─► claim (finalizer, settings' names, origin) ─► create, grow, alter ─► read again ─► status
    deletion: drop ─► read again ─► release

The status is written after the effects, from the state read afterwards, so `observedGeneration` is never ahead of Kafka (O6).
A Topic that only observes has no effect on Kafka, and needs no finalizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kafka_operator.decide.kafka.kafka_errors import (
    INVALID_REPLICATION_FACTOR,
    UNKNOWN_TOPIC_OR_PARTITION,
    message_of,
    passes_by_itself,
    reason_of,
)
from kafka_operator.decide.kafka.observed import Failure, KafkaTopic, Unavailable
from kafka_operator.decide.steps import (
    AlterConfig,
    Apply,
    CancelReassignment,
    Claim,
    CreateReassignment,
    CreateTopic,
    GrowTopic,
    TopicAction,
)
from kafka_operator.decide.tenants.ownership import conflict_message
from kafka_operator.decide.tenants.tenancy import Refusal
from kafka_operator.decide.timeouts import (
    FAILOVER_RETRY_CAP_S,
    FAILOVER_TIMEOUT_S,
    TRANSIENT_ERROR_TIMEOUT_S,
    release_or_retry,
)
from kafka_operator.decide.topics.config import config_changes
from kafka_operator.decide.topics.topic_drift import drift_text, find_drift
from kafka_operator.decide.topics.topic_origin import (
    adoption_message,
    adoption_of,
    creates,
    creation_of,
    is_adopted,
    is_ours,
    may_adopt,
)
from kafka_operator.decide.topics.topic_replication import POLL_INTERVAL_S, RAISED, decide_replication, is_repeated
from kafka_operator.decide.topics.topic_status import Readiness, judged, with_ready_only
from kafka_operator.resources.reassignment import Reassignment
from kafka_operator.resources.topic import Topic, TopicStatus
from reconciler.decide.conditions import FALSE, TRUE, UNKNOWN, ready_of
from reconciler.decide.steps import RETRY_LATER_S, Done, Release, ResourceEvent, Retry, Wait, WriteStatus
from reconciler.names import Key

BROKERS_START_S = 60.0
"""How long too few brokers count as brokers that are still starting: a Topic is often applied together with its cluster."""

AS_DECLARED = Readiness(TRUE, "AsDeclared", "The Kafka topic matches the spec.")

Step = (
    Claim | Apply | CreateReassignment | CancelReassignment | WriteStatus[TopicStatus] | Release | Retry | Wait | Done
)


@dataclass(frozen=True, slots=True)
class TopicView:
    """Input of a decision on a Topic.

    `waited_s` is the time since the first failed attempt, in seconds; `applied` and `failure` are results of this attempt.
    """

    now: datetime
    waited_s: float = 0.0
    refusal: Refusal | None = None
    """Why its namespace may not have it on this Cluster; None if it may."""
    owner: Key | None = None
    """The older Topic that owns the same Kafka topic, if there is one."""
    observed: KafkaTopic | None = None
    applied: bool = False
    failure: Failure | None = None
    reassignments: Mapping[str, Reassignment] = field(default_factory=dict)
    """Reassignments of its namespace, by name."""


def decide_topic(topic: Topic, view: TopicView) -> Step:
    """Return the next step for a Topic that is not being deleted, on a cluster that answers."""
    assert topic.metadata.deleted is None, topic.key
    if view.refusal is not None:
        return refused(topic, view.refusal, view.now)
    if view.owner is not None:
        readiness = Readiness(FALSE, "Conflict", conflict_message(topic.name, view.owner), stalled=True)
        return judged(topic, readiness, view.now) or Done()
    if view.failure is not None and not (topic.observes and view.applied):  # a rejected validation is not a failure
        return _after_failure(topic, view, view.failure)
    if topic.observes:
        return _observe(topic, view)
    if view.observed is None:
        return _create(topic, view)
    if not is_ours(topic, view.observed):
        return _adopt(topic, view, view.observed)
    return _enforce(topic, view, view.observed)


def refused(topic: Topic, refusal: Refusal, now: datetime) -> Step:
    """Return the next step for a Topic that is not allowed for its namespace: report it, without an effect."""
    return judged(topic, Readiness(FALSE, refusal.reason, refusal.message, stalled=True), now) or Done()


def desired_actions(topic: Topic, observed: KafkaTopic | None) -> tuple[TopicAction, ...]:
    """Return the changes that make the Kafka topic as declared; never fewer partitions than it has (O8)."""
    if observed is None:
        return (CreateTopic(topic.name, topic.partitions, topic.replication_factor, topic.config),)
    actions: list[TopicAction] = []
    if len(observed.partitions) < topic.partitions:
        actions.append(GrowTopic(topic.name, topic.partitions))
    to_set, to_reset = config_changes(dict(topic.config), topic.managed_config, observed.config)
    if to_set or to_reset:
        actions.append(AlterConfig(topic.name, to_set, to_reset))
    return tuple(actions)


def decide_topic_unavailable(topic: Topic, unavailable: Unavailable, now: datetime, waited_s: float) -> Step:
    """Return the next step for a Topic whose cluster could not be read: report it, keep the rest of the status, and retry."""
    assert topic.metadata.deleted is None, topic.key
    if not unavailable.definite and waited_s < FAILOVER_TIMEOUT_S:
        return Retry(cap_s=FAILOVER_RETRY_CAP_S)
    written = with_ready_only(topic, UNKNOWN, unavailable.reason, unavailable.message, now)
    return written or release_or_retry(unavailable, waited_s, has_finalizer=topic.metadata.has_finalizer)


def _observe(topic: Topic, view: TopicView) -> Step:
    """Report the differences of the Kafka topic, and which corrections the brokers would reject; change nothing."""
    drift = find_drift(topic, view.observed)
    actions = desired_actions(topic, view.observed)
    if actions and not view.applied:
        return Apply(actions, asks_only=True)
    leaderless = None if drift or view.observed is None else _without_leader(topic, view, view.observed)
    if leaderless is not None:
        return leaderless
    readiness = AS_DECLARED
    if drift:
        message = (
            f"The Kafka topic differs: {drift_text(drift)}. Not changed (policy Observe).{_would_be_refused(view)}"
        )
        readiness = Readiness(FALSE, "Drifted", message, drift, stalled=True)
    written = judged(topic, readiness, view.now, shown=view.observed)
    return written or (Release() if topic.metadata.has_finalizer else Done())


def _would_be_refused(view: TopicView) -> str:
    if view.failure is None or passes_by_itself(view.failure):
        return ""
    return f" The brokers would reject the declared state: {message_of(view.failure)}"


def _create(topic: Topic, view: TopicView) -> Step:
    wanted = frozenset(dict(topic.config))
    if _is_first_sight(topic, view):
        return Retry()
    if not topic.metadata.has_finalizer or not wanted <= topic.noted_config or not creates(topic):
        return Claim(wanted | topic.managed_config, creation_of(topic))
    if view.applied:
        return _not_visible(topic, view)
    message = f"The Kafka topic {topic.name} had been deleted together with its data; recreating it."
    event = ResourceEvent(True, "TopicRecreated", message) if _was_as_declared(topic) else None
    return Apply(desired_actions(topic, None), event)


def _adopt(topic: Topic, view: TopicView, observed: KafkaTopic) -> Step:
    """Adopt an existing topic; one that differs only after its user has seen the differences."""
    drift = find_drift(topic, observed)
    if may_adopt(topic, observed, drift):
        return Claim(frozenset(dict(topic.config)) | topic.managed_config, adoption_of(observed))
    if (
        creates(topic) and view.waited_s < TRANSIENT_ERROR_TIMEOUT_S
    ):  # a topic that the operator is creating may appear piece by piece
        return Retry()
    readiness = Readiness(FALSE, "AdoptionPending", adoption_message(topic, observed, drift), drift, stalled=True)
    return judged(topic, readiness, view.now) or Done()


def _enforce(topic: Topic, view: TopicView, observed: KafkaTopic) -> Step:
    wanted = frozenset(dict(topic.config))
    if not topic.metadata.has_finalizer or not wanted <= topic.noted_config:
        return Claim(wanted | topic.managed_config)
    actions = desired_actions(topic, observed)
    if not actions:
        return _report(topic, view, observed)
    if view.applied:
        return _not_visible(topic, view)
    if _is_first_sight(topic, view):
        return Retry()
    event: ResourceEvent | None = None
    if _was_as_declared(topic):
        message = f"The Kafka topic had been changed by another client; restored the declared state: {_restored(topic, observed)}."
        event = ResourceEvent(False, "DriftReverted", message)
    return Apply(actions, event)


def _report(topic: Topic, view: TopicView, observed: KafkaTopic) -> Step:
    """Return the status of a topic that needs no call to the brokers."""
    if len(observed.partitions) > topic.partitions:
        readiness = Readiness(
            FALSE, "NotSupported", _too_many(topic, observed), find_drift(topic, observed), stalled=True
        )
        return judged(topic, readiness, view.now, shown=observed) or Done()
    change = decide_replication(topic, observed, view.reassignments)
    if isinstance(change, CancelReassignment):
        return change
    if isinstance(change, CreateReassignment):
        return Retry() if is_repeated(change, topic) and view.waited_s < TRANSIENT_ERROR_TIMEOUT_S else change
    if change is not None:
        if change.reason == RAISED and _is_first_sight(topic, view):
            return Retry()
        return judged(topic, change, view.now, shown=observed) or Wait(POLL_INTERVAL_S)
    leaderless = _without_leader(topic, view, observed)
    if leaderless is not None:
        return leaderless
    written = judged(topic, AS_DECLARED, view.now, shown=observed, event=_adopted(topic, observed))
    if written is not None:
        return written
    wanted = frozenset(dict(topic.config))
    return Claim(wanted) if topic.noted_config != wanted else Done()


def _without_leader(topic: Topic, view: TopicView, observed: KafkaTopic) -> Step | None:
    if not observed.leaderless:
        return None
    if view.waited_s < TRANSIENT_ERROR_TIMEOUT_S:
        return Retry()
    listed = ", ".join(map(str, observed.leaderless))
    message = f"Partitions without a leader: {listed}. None of their in-sync replicas is live."
    return judged(topic, Readiness(FALSE, "NoLeader", message), view.now, shown=observed) or Retry(RETRY_LATER_S)


def _after_failure(topic: Topic, view: TopicView, failure: Failure) -> Step:
    passing = passes_by_itself(failure) or failure.code == UNKNOWN_TOPIC_OR_PARTITION  # it was deleted during the read
    if passing and view.waited_s < TRANSIENT_ERROR_TIMEOUT_S:
        return Retry()
    limit_s = BROKERS_START_S if failure.code == INVALID_REPLICATION_FACTOR else 0.0
    stalled = not passing and view.waited_s >= limit_s
    readiness = Readiness(FALSE, reason_of(failure), message_of(failure), stalled=stalled)
    shown = view.observed if view.observed is not None and (topic.observes or is_ours(topic, view.observed)) else None
    return judged(topic, readiness, view.now, shown=shown) or Retry(RETRY_LATER_S)


def _not_visible(topic: Topic, view: TopicView) -> Step:
    """Kafka accepted the change and does not show it yet."""
    if view.waited_s < TRANSIENT_ERROR_TIMEOUT_S:
        return Retry()
    message = "Kafka has accepted the change, but it is not visible yet."
    return with_ready_only(topic, FALSE, "Progressing", message, view.now) or Retry()


def _is_first_sight(topic: Topic, view: TopicView) -> bool:
    """Return whether a topic that was as declared is seen to differ for the first time.

    A new controller may have incomplete metadata, and that of a broker may not have the end of a move yet. A difference that is seen
    twice is trusted.
    """
    return _was_as_declared(topic) and not view.waited_s and not view.applied


def _was_as_declared(topic: Topic) -> bool:
    """Return whether this generation had taken effect, so that another client made the current differences."""
    ready = ready_of(topic.status.conditions)
    return ready is not None and ready.status == TRUE and topic.status.observed_generation == topic.metadata.generation


def _restored(topic: Topic, observed: KafkaTopic) -> str:
    return drift_text([item for item in find_drift(topic, observed) if item.field != "replicationFactor"])


def _adopted(topic: Topic, observed: KafkaTopic) -> ResourceEvent | None:
    if topic.status.topic_id == observed.topic_id or not is_adopted(topic, observed):
        return None
    return ResourceEvent(False, "Adopted", f"The Kafka topic {topic.name} already existed; this Topic manages it now.")


def _too_many(topic: Topic, observed: KafkaTopic) -> str:
    return (
        f"The Kafka topic has {len(observed.partitions)} partitions and spec.partitions is {topic.partitions}: partitions "
        f"cannot be removed. Set spec.partitions to {len(observed.partitions)}."
    )
