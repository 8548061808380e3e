"""What to do for one Topic.

    claim (finalizer, settings' names) ─► create, grow, alter ─► look again ─► status
    deletion: drop ─► look again ─► release

The status is written after the effects, from what is then seen, so `observedGeneration` never promises what has not happened (O6).
What is left out: a changed replication factor (a Reassignment does it), drift that is only reported, values left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from kafka_operator.decide.conditions import FALSE, TRUE, UNKNOWN, announce, with_ready
from kafka_operator.decide.config import config_changes
from kafka_operator.decide.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION, message_of, passes_by_itself, reason_of
from kafka_operator.decide.observed import Away, Failure, KafkaTopic
from kafka_operator.decide.ownership import conflict_message
from kafka_operator.decide.patience import let_go_or_retry
from kafka_operator.decide.steps import (
    RETRY_LATER_S,
    AlterConfig,
    Apply,
    Claim,
    CreateTopic,
    Done,
    GrowTopic,
    Release,
    Retry,
    TopicAction,
    WriteStatus,
)
from kafka_operator.names import Key
from kafka_operator.resources.topic import Topic, TopicStatus

PATIENCE_S = 5.0
"""How long a passing trouble is kept to ourselves: a hundred times the usual delay of metadata, and less than a person waits."""

FAILOVER_PATIENCE_S = 25.0
"""The same for a controller that does not answer: Kafka's default ZooKeeper session of 18 s must end before another takes over."""

FAILOVER_RETRY_CAP_S = 1.0
"""Longest delay between two tries meanwhile: what waits should go on soon after the new controller is there."""

Step = Claim | Apply | WriteStatus[TopicStatus] | Release | Retry | Done


@dataclass(frozen=True, slots=True)
class TopicView:
    """What a decision on a Topic looks at.

    `waited_s` is for how long it has been tried in vain; `applied` and `failure` tell of the effects of this very try.
    """

    now: datetime
    waited_s: float = 0.0
    owner: Key | None = None
    """The older Topic that owns the same Kafka topic, if there is one."""
    seen: KafkaTopic | None = None
    applied: bool = False
    failure: Failure | None = None


def decide_topic(topic: Topic, view: TopicView) -> Step:
    """Return the next step for a Topic that is not being deleted, on a cluster that answers."""
    assert topic.metadata.deleted is None, topic.key
    if view.owner is not None:
        message = conflict_message(topic.name, view.owner)
        return _judged(topic, view, FALSE, "Conflict", message) or Done()
    wanted = frozenset(dict(topic.config))
    if not topic.metadata.held or not wanted <= topic.managed_config:
        return Claim(wanted | topic.managed_config)
    if view.failure is not None:
        return _after_failure(topic, view, view.failure)
    actions = wanted_actions(topic, view.seen)
    if actions and not view.applied:
        return Apply(actions)
    if actions:
        return _not_visible(topic, view)
    assert view.seen is not None, topic.key
    return _as_seen(topic, view, view.seen)


def wanted_actions(topic: Topic, seen: KafkaTopic | None) -> tuple[TopicAction, ...]:
    """Return what makes the Kafka topic as declared; never fewer partitions than it has (O8)."""
    if seen is None:
        return (CreateTopic(topic.name, topic.partitions, topic.replication_factor, topic.config),)
    actions: list[TopicAction] = []
    if len(seen.partitions) < topic.partitions:
        actions.append(GrowTopic(topic.name, topic.partitions))
    to_set, to_reset = config_changes(dict(topic.config), topic.managed_config, seen.config)
    if to_set or to_reset:
        actions.append(AlterConfig(topic.name, to_set, to_reset))
    return tuple(actions)


def decide_topic_away(topic: Topic, away: Away, now: datetime, waited_s: float) -> Step:
    """Return the next step for a Topic whose cluster could not be looked at: say so, keep the rest, try again."""
    assert topic.metadata.deleted is None, topic.key
    if not away.definite and waited_s < FAILOVER_PATIENCE_S:
        return Retry(cap_s=FAILOVER_RETRY_CAP_S)
    written = _write(topic, _status(topic, UNKNOWN, away.reason, away.message, now))
    if written is not None:
        return written
    return let_go_or_retry(away, waited_s, held=topic.metadata.held)


def _as_seen(topic: Topic, view: TopicView, seen: KafkaTopic) -> Step:
    """Judge a topic that needs no further action."""
    trouble = _unsupported(topic, seen)
    if trouble is not None:
        return _judged(topic, view, FALSE, "NotSupported", trouble) or Done()
    if seen.leaderless:
        if view.waited_s < PATIENCE_S:
            return Retry()
        listed = ", ".join(map(str, seen.leaderless))
        message = f"Partitions without a leader: {listed}. No replica of them that is in sync is alive."
        return _judged(topic, view, FALSE, "NoLeader", message) or Retry(RETRY_LATER_S)
    written = _judged(topic, view, TRUE, "AsDeclared", "The Kafka topic is as declared.")
    if written is not None:
        return written
    wanted = frozenset(dict(topic.config))
    return Claim(wanted) if topic.managed_config != wanted else Done()


def _unsupported(topic: Topic, seen: KafkaTopic) -> str | None:
    """Return the words for a difference that a Topic cannot mend."""
    if len(seen.partitions) > topic.partitions:
        return (
            f"The Kafka topic has {len(seen.partitions)} partitions and spec.partitions says {topic.partitions}: partitions can "
            f"never be taken away. Set spec.partitions to {len(seen.partitions)}."
        )
    if seen.replication_factor != topic.replication_factor:
        return (
            f"The Kafka topic has {seen.replication_factor} replicas of each partition and spec.replicationFactor says "
            f"{topic.replication_factor}: a Topic does not change the replication factor of a topic that exists. Name the new "
            "replicas in a Reassignment and set spec.replicationFactor to their number."
        )
    return None


def _after_failure(topic: Topic, view: TopicView, failure: Failure) -> Step:
    passing = passes_by_itself(failure) or failure.code == UNKNOWN_TOPIC_OR_PARTITION  # it went while we looked
    if passing and view.waited_s < PATIENCE_S:
        return Retry()
    written = _judged(topic, view, FALSE, reason_of(failure), message_of(failure))
    return written or Retry(RETRY_LATER_S)


def _not_visible(topic: Topic, view: TopicView) -> Step:
    """Kafka took the change and does not show it yet."""
    if view.waited_s < PATIENCE_S:
        return Retry()
    message = "Kafka has accepted the change and does not show it yet."
    return _judged(topic, view, FALSE, "Progressing", message) or Retry()


def _judged(topic: Topic, view: TopicView, status: str, reason: str, message: str) -> Step | None:
    """Return the write of a status for this generation, with what was seen; None when it is written already."""
    wanted = replace(
        _status(topic, status, reason, message, view.now),
        observed_generation=topic.metadata.generation,
        topic_name=topic.name,
    )
    if view.owner is None and view.seen is not None:
        wanted = replace(
            wanted,
            topic_id=view.seen.topic_id,
            partitions=len(view.seen.partitions),
            replication_factor=view.seen.replication_factor,
        )
    return _write(topic, wanted)


def _status(topic: Topic, status: str, reason: str, message: str, now: datetime) -> TopicStatus:
    conditions = with_ready(
        topic.status.conditions,
        status=status,
        reason=reason,
        message=message,
        generation=topic.metadata.generation,
        now=now,
    )
    return replace(topic.status, conditions=conditions)


def _write(topic: Topic, status: TopicStatus) -> WriteStatus[TopicStatus] | None:
    if status == topic.status:
        return None
    return WriteStatus(status, announce(topic.status.conditions, status.conditions))
