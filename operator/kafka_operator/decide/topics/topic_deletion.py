"""Deletion of a Topic.

The Kafka topic goes only if this Topic holds it, owns it and it is the one that was seen before (O4), and not before everybody else
has released the resource: a foreign finalizer means that another client has to act first. Beyond that the resource goes in
bounded time whatever Kafka does, so that a namespace is never blocked: then the Kafka topic is kept, and an event reports it.

A controller lets a topic's moves end before it deletes it, and cancels none of a topic that waits for its deletion. So the moves are
cancelled first: the copies are made for nothing, and the Reassignment that wants them may be deleted in the same breath.
"""

from __future__ import annotations

from kafka_operator.decide.kafka.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION, message_of
from kafka_operator.decide.kafka.observed import KafkaTopic, Unavailable
from kafka_operator.decide.steps import Apply, DropTopic, StopMoves
from kafka_operator.decide.tenants.quota import QUOTA_EXCEEDED
from kafka_operator.decide.timeouts import release_after_timeout
from kafka_operator.decide.topics.topic import TopicView
from kafka_operator.decide.topics.topic_origin import is_ours
from kafka_operator.decide.topics.topic_status import with_ready_only
from kafka_operator.resources.topic import DeletionPolicy, Topic, TopicStatus
from reconciler.decide.conditions import FALSE
from reconciler.decide.steps import Done, Release, ResourceEvent, Retry, WriteStatus
from reconciler.names import FINALIZER

PROTECTED = (
    "Its deletionPolicy is Protect; the deletion was allowed because its namespace is being deleted, or because the chart's "
    "ValidatingAdmissionPolicy is not installed."
)

Step = Apply | Release | WriteStatus[TopicStatus] | Retry | Done


def decide_topic_deletion(topic: Topic, view: TopicView) -> Step:
    """Return the next step for a Topic that is being deleted, on a cluster that answers."""
    assert topic.metadata.deleted is not None, topic.key
    if not topic.metadata.has_finalizer:
        return Done()
    if view.owner is not None:
        return Release()
    kept = _why_kept(topic, view)
    if kept is not None:
        return Release(kept)
    if _is_gone(view):
        return Release()
    others = [name for name in topic.metadata.finalizers if name != FINALIZER]
    if others:
        message = (
            f"The Kafka topic {topic.name} will be deleted after other finalizers are removed: {', '.join(others)}."
        )
        return with_ready_only(topic, FALSE, "Deleting", message, view.now) or Done()
    if view.failure is not None:
        return release_after_timeout(view.waited_s, _kept(topic, message_of(view.failure)))
    assert view.observed is not None, topic.key
    return _drop(topic, view, view.observed)


def decide_topic_deletion_unavailable(
    topic: Topic, unavailable: Unavailable, waited_s: float
) -> Release | Retry | Done:
    """Return the next step for a Topic that is being deleted while its cluster cannot be read."""
    assert topic.metadata.deleted is not None, topic.key
    if not topic.metadata.has_finalizer:
        return Done()
    if topic.retain or topic.metadata.paused:
        return Release()
    return release_after_timeout(waited_s, _kept(topic, unavailable.message), unavailable)


def _is_gone(view: TopicView) -> bool:
    if view.failure is None:
        return view.observed is None
    return view.failure.code == UNKNOWN_TOPIC_OR_PARTITION


def _drop(topic: Topic, view: TopicView, observed: KafkaTopic) -> Step:
    if not is_ours(topic, observed):
        why = f"It has another ID ({observed.topic_id}) than the topic managed by this Topic ({topic.status.topic_id})."
        return Release(_kept(topic, why))
    if view.applied:
        return release_after_timeout(
            view.waited_s, _kept(topic, "Kafka has accepted the deletion, but does not complete it.")
        )
    stop = (StopMoves(topic.name, observed.moving),) if observed.moving else ()
    return Apply((*stop, DropTopic(topic.name)))


def _why_kept(topic: Topic, view: TopicView) -> ResourceEvent | None:
    """Return the event for a Kafka topic that is to stay, None for one that is to go."""
    if topic.deletion_policy is DeletionPolicy.PROTECT:
        return ResourceEvent(True, "TopicRetained", f"The Kafka topic {topic.name} is kept. {PROTECTED}")
    if topic.retain:
        why = "policy Observe" if topic.observes else "deletionPolicy Retain"
        return ResourceEvent(False, "TopicRetained", f"The Kafka topic {topic.name} is kept ({why}).")
    if topic.metadata.paused:
        return _kept(topic, "The Topic was deleted while its reconciliation is paused.")
    if view.refusal is not None and view.refusal.reason != QUOTA_EXCEEDED:
        return _kept(topic, view.refusal.message)
    return None


def _kept(topic: Topic, why: str) -> ResourceEvent:
    return ResourceEvent(True, "TopicKept", f"The Kafka topic {topic.name} is kept. {why}")
