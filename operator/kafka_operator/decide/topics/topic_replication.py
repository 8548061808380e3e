"""Changes of the replication factor: one Reassignment at a time, with its progress in the Topic's status.

    factor differs ─► create the Reassignment ─► it runs: mirrored ─► it completed: the factor is read again
                                                 it failed or was cancelled: reported, and retried when the Topic is edited or it is deleted
    edited again ─► the Reassignment is cancelled ─► the factor is read again
    raised by another client ─► reported; additional replicas stay

The Reassignment's name follows from the Topic's generation, so that a process killed after it was created finds it by that name. What
it moves where, how fast and in which order is its own affair.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from kafka_operator.decide.kafka.observed import KafkaTopic
from kafka_operator.decide.steps import CancelReassignment, CreateReassignment
from kafka_operator.decide.topics.topic_drift import find_drift, has_factor
from kafka_operator.decide.topics.topic_status import Readiness
from kafka_operator.resources.reassignment import Reassignment, State
from kafka_operator.resources.reassignment_terms import Action
from kafka_operator.resources.topic import ReplicationChange, Topic
from reconciler.decide.conditions import FALSE, ready_of

POLL_INTERVAL_S = 2.0
"""Interval of mirroring a change in progress: users watch it, and its Reassignment reports more, each second."""

PERCENT_STEP = 5
"""Progress is mirrored in steps, so that a change costs the Topic at most some twenty writes, however long it takes."""

MAX_NAME_LENGTH = 200
"""Of the Topic's name within its Reassignment's: with the rest it stays below the 253 characters of an object's name."""

CHANGING, FAILED, WAITING = "ReplicationChanging", "ReplicationChangeFailed", "ReassignmentInProgress"

RAISED = "ReplicationFactorRaised"
"""More copies than declared, that something else than this Topic asked for."""


def decide_replication(
    topic: Topic, observed: KafkaTopic, reassignments: Mapping[str, Reassignment]
) -> Readiness | CreateReassignment | CancelReassignment | None:
    """Return the status to report, or the Reassignment to create or cancel; None when the factor is as declared and no change is in progress.

    `reassignments` are those of the Topic's namespace by name.
    """
    own = [item for item in reassignments.values() if item.metadata.owner == topic.key]
    running = min((item for item in own if not _ended(item)), key=lambda item: item.key, default=None)
    if running is not None:
        if running.action is Action.EXECUTE and _target(topic, running) != topic.replication_factor:
            return CancelReassignment(running.key.name, running.metadata.resource_version)
        message = f"Reassignment {running.key.name} changes the replication factor."
        return _readiness(topic, observed, CHANGING, message, running)
    if has_factor(observed, topic.replication_factor):
        return None
    name, last = _next_name(topic, reassignments)
    if last is not None and last.status.state is not State.COMPLETED:
        message = (
            f"Reassignment {last.key.name} did not change the replication factor; its state is {last.status.state}: "
            f"{_message(last)} Delete it, or edit this Topic, to retry."
        )
        return _readiness(topic, observed, FAILED, message, last)
    if _was_raised_elsewhere(topic, observed):
        message = (
            f"The Kafka topic has up to {_most_replicas(observed)} replicas of a partition and spec.replicationFactor is "
            f"{topic.replication_factor}: it was increased outside this resource, and replicas are not removed for that. Set "
            "spec.replicationFactor to the desired value; to apply the current value, set it again after another number, "
            "or use a Reassignment."
        )
        return Readiness(FALSE, RAISED, message, find_drift(topic, observed), stalled=True)
    if observed.moving:
        message = "The replication factor will be changed when moves of partitions of the topic have completed."
        return Readiness(FALSE, WAITING, message, find_drift(topic, observed))
    return CreateReassignment(name, _spec(topic))


def _was_raised_elsewhere(topic: Topic, observed: KafkaTopic) -> bool:
    """Return whether this generation had taken effect, and the topic has more replicas since than it declares."""
    settled = topic.status.settled_generation == topic.metadata.generation
    return settled and _most_replicas(observed) > topic.replication_factor


def _most_replicas(observed: KafkaTopic) -> int:
    return max((len(partition.replicas) for partition in observed.partitions), default=0)


def is_repeated(step: CreateReassignment, topic: Topic) -> bool:
    """Return whether an earlier one for the same generation has completed, so that what is seen may only lag behind it."""
    return step.name != _name(topic, 0)


def _spec(topic: Topic) -> dict[str, Any]:
    ref = {"name": topic.cluster.name}
    if topic.cluster.namespace != topic.key.namespace:
        ref["namespace"] = topic.cluster.namespace
    spec: dict[str, Any] = {
        "clusterRef": ref,
        "goal": {"replicationFactor": topic.replication_factor, "topics": [topic.name]},
        "approval": "Automatic",
    }
    if topic.throttle is not None:
        spec["throttle"] = dict(topic.throttle)
    return spec


def _next_name(topic: Topic, reassignments: Mapping[str, Reassignment]) -> tuple[str, Reassignment | None]:
    """Return a name that is free, and the last own Reassignment of this generation; names may be taken by others."""
    last: Reassignment | None = None
    for number in range(len(reassignments) + 1):
        name = _name(topic, number)
        found = reassignments.get(name)
        if found is None:
            return name, last
        if found.metadata.owner == topic.key:
            last = found
    raise AssertionError(f"more names taken than there are Reassignments: {topic.key}")


def _name(topic: Topic, number: int) -> str:
    stem = topic.key.name
    if len(stem) > MAX_NAME_LENGTH:
        stem = f"{stem[:MAX_NAME_LENGTH]}-{hashlib.sha256(stem.encode()).hexdigest()[:8]}"
    name = f"{stem}-rf{topic.replication_factor}-{topic.metadata.generation}"
    return f"{name}-{number}" if number else name


def _readiness(topic: Topic, observed: KafkaTopic, reason: str, message: str, item: Reassignment) -> Readiness:
    progress = item.status.progress
    percent = 0 if progress is None else progress.percent // PERCENT_STEP * PERCENT_STEP
    change = ReplicationChange(
        target_replication_factor=_target(topic, item),
        state=(item.status.state or State.PENDING).value,
        message=_message(item),
        percent=percent,
        reassignment=item.key.name,
    )
    drift = find_drift(topic, observed)
    return Readiness(FALSE, reason, message, drift, change, stalled=reason == FAILED)


def _target(topic: Topic, item: Reassignment) -> int:
    """Return what the Reassignment aims at; the Topic may have been edited again since."""
    factor = None if item.goal is None else item.goal.replication_factor
    return topic.replication_factor if factor is None else factor


def _message(item: Reassignment) -> str:
    """Return the Reassignment's state; its message only after its end, since that changes with each partition."""
    ready = ready_of(item.status.conditions)
    if not _ended(item) or ready is None:
        return "It is in progress."
    return ready.message


def _ended(item: Reassignment) -> bool:
    return item.status.state is not None and item.status.state.ended
