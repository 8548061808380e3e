"""What to do for a Topic that is being deleted.

The Kafka topic goes only if this Topic holds it, owns it and it is the one that was seen before (O4); and the resource goes in
bounded time whatever Kafka does, so that a namespace is never wedged: then the Kafka topic is kept, and an event says so.

A controller lets a topic's moves end before it deletes it, and cancels none of a topic that waits for its deletion. So the moves are
cancelled first: the copies are made for nothing, and the Reassignment that wants them may be deleted in the same breath.
"""

from __future__ import annotations

from kafka_operator.decide.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION, message_of
from kafka_operator.decide.observed import Away
from kafka_operator.decide.patience import give_up_late
from kafka_operator.decide.steps import (
    Announcement,
    Apply,
    Done,
    DropTopic,
    Release,
    Retry,
    StopMoves,
)
from kafka_operator.decide.topic import TopicView
from kafka_operator.resources.topic import Topic

Step = Apply | Release | Retry | Done


def decide_topic_deletion(topic: Topic, view: TopicView) -> Step:
    """Return the next step for a Topic that is being deleted, on a cluster that answers."""
    assert topic.metadata.deleted is not None, topic.key
    if not topic.metadata.held:
        return Done()
    if view.owner is not None:
        return Release()
    if topic.retain:
        return Release(
            Announcement(False, "TopicRetained", f"The Kafka topic {topic.name} stays (deletionPolicy Retain).")
        )
    if view.failure is not None:
        if view.failure.code == UNKNOWN_TOPIC_OR_PARTITION:
            return Release()
        return give_up_late(view.waited_s, _kept(topic, message_of(view.failure)))
    if view.seen is None:
        return Release()
    if topic.status.topic_id is not None and topic.status.topic_id != view.seen.topic_id:
        why = (
            f"It has another id ({view.seen.topic_id}) than the one that this Topic managed ({topic.status.topic_id})."
        )
        return Release(_kept(topic, why))
    if view.applied:
        return give_up_late(view.waited_s, _kept(topic, "Kafka has accepted the deletion and does not finish it."))
    stop = (StopMoves(topic.name, view.seen.moving),) if view.seen.moving else ()
    return Apply((*stop, DropTopic(topic.name)))


def decide_topic_deletion_away(topic: Topic, away: Away, waited_s: float) -> Step:
    """Return the next step for a Topic that is being deleted while its cluster cannot be looked at."""
    assert topic.metadata.deleted is not None, topic.key
    if not topic.metadata.held:
        return Done()
    if topic.retain:
        return Release()
    return give_up_late(waited_s, _kept(topic, away.message), away)


def _kept(topic: Topic, why: str) -> Announcement:
    return Announcement(True, "TopicKept", f"The Kafka topic {topic.name} is kept. {why}")
