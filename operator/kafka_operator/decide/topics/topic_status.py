"""Status of a Topic, and events for its changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from kafka_operator.decide.kafka.observed import KafkaTopic
from kafka_operator.decide.topics.topic_drift import drift_text
from kafka_operator.resources.topic import Drift, ReplicationChange, Topic, TopicStatus
from reconciler.decide.conditions import FALSE, TRUE, event_of_change, with_condition, with_ready, without_condition
from reconciler.decide.steps import ResourceEvent, WriteStatus
from reconciler.resources.metadata import Condition

DRIFTED = "Drifted"
"""The condition that is True as long as differences are listed; a Topic that only observes has it always."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Value of the Ready condition, with drift and replication change."""

    status: str
    reason: str
    message: str
    drift: tuple[Drift, ...] = ()
    change: ReplicationChange | None = None
    stalled: bool = False
    """Whether nothing happens before a user acts."""


def judged(
    topic: Topic,
    readiness: Readiness,
    now: datetime,
    *,
    shown: KafkaTopic | None = None,
    event: ResourceEvent | None = None,
) -> WriteStatus[TopicStatus] | None:
    """Return the write of a status for this generation; None if it is already written.

    `shown` is the Kafka topic where it is this Topic's own, or observed. `event` is the event instead of the change of Ready.
    """
    conditions = with_ready(
        topic.status.conditions,
        status=readiness.status,
        reason=readiness.reason,
        message=readiness.message,
        generation=topic.metadata.generation,
        now=now,
        stalled=readiness.stalled,
    )
    status = replace(
        topic.status,
        observed_generation=topic.metadata.generation,
        topic_name=topic.name,
        drift=readiness.drift,
        replication_change=readiness.change,
        conditions=_with_drift(topic, conditions, readiness.drift, now),
    )
    if readiness.status == TRUE and not readiness.drift:
        status = replace(status, settled_generation=topic.metadata.generation)
    if shown is not None:
        status = replace(
            status,
            topic_id=shown.topic_id,
            partitions=len(shown.partitions),
            replication_factor=shown.replication_factor,
        )
    return written(topic, status, event)


def with_ready_only(
    topic: Topic, status: str, reason: str, message: str, now: datetime
) -> WriteStatus[TopicStatus] | None:
    """Return the write of another Ready; all else, the observed generation too, stays as it was."""
    conditions = with_ready(
        topic.status.conditions,
        status=status,
        reason=reason,
        message=message,
        generation=topic.metadata.generation,
        now=now,
    )
    return written(topic, replace(topic.status, conditions=conditions))


def written(topic: Topic, status: TopicStatus, event: ResourceEvent | None = None) -> WriteStatus[TopicStatus] | None:
    """Return the write of a status that differs from the current one, with its event."""
    if status == topic.status:
        return None
    return WriteStatus(status, event or event_of_change(topic.status.conditions, status.conditions))


def _with_drift(
    topic: Topic, conditions: tuple[Condition, ...], drift: tuple[Drift, ...], now: datetime
) -> tuple[Condition, ...]:
    if not drift and not topic.observes:
        return without_condition(conditions, DRIFTED)
    return with_condition(
        conditions,
        DRIFTED,
        status=TRUE if drift else FALSE,
        reason="Differs" if drift else "AsDeclared",
        message=f"The Kafka topic differs: {drift_text(drift)}." if drift else "The Kafka topic matches the spec.",
        generation=topic.metadata.generation,
        now=now,
    )
