"""Decisions on a Topic that is being deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import Failure, Unavailable
from kafka_operator.decide.steps import Apply, DropTopic, StopMoves
from kafka_operator.decide.timeouts import DELETION_TIMEOUT_S
from kafka_operator.decide.topics.topic_deletion import (
    decide_topic_deletion,
    decide_topic_deletion_unavailable,
)
from kafka_operator.resources.topic import TopicStatus
from reconciler.decide.steps import Done, Release, Retry
from reconciler.names import Key
from tests.kafka_operator.makers import TO_CREATE, TOPIC_ID, kafka_topic, topic, topic_view

AWAY = Unavailable("ClusterUnreachable", "No broker answers.")


def test_the_kafka_topic_goes_before_the_finalizer() -> None:
    """The resource is there as long as its topic is."""
    assert decide_topic_deletion(topic(deleted=True), topic_view(kafka_topic())) == Apply((DropTopic("orders"),))
    assert decide_topic_deletion(topic(deleted=True), topic_view(None, applied=True)) == Release()


def test_a_topic_that_moves_is_stopped_before_it_goes() -> None:
    """C10: a controller lets a topic's moves end first, and cancels none once the deletion waits (KafkaController)."""
    moving = replace(kafka_topic(), moving=(0, 2))

    expected = Apply((StopMoves("orders", (0, 2)), DropTopic("orders")))
    assert decide_topic_deletion(topic(deleted=True), topic_view(moving)) == expected


@pytest.mark.shows("O4")
def test_a_topic_without_the_finalizer_is_not_managed() -> None:
    """O4: no delete of a Kafka topic without the finalizer."""
    assert decide_topic_deletion(topic(deleted=True, held=False), topic_view(kafka_topic())) == Done()


def test_the_loser_of_a_conflict_goes_and_the_kafka_topic_stays() -> None:
    """O4, O5: only the owner deletes."""
    owner = Key(kinds.TOPIC, "shop", "older")

    assert decide_topic_deletion(topic(deleted=True), topic_view(kafka_topic(), owner=owner)) == Release()


@pytest.mark.shows("O4")
def test_a_topic_of_another_id_is_kept() -> None:
    """O4: the Topic's own topic was deleted, and another one of the same name was created."""
    ours = replace(
        topic(deleted=True, origin=TO_CREATE), status=TopicStatus(topic_id="22222222-2222-2222-2222-222222222222")
    )

    step = decide_topic_deletion(ours, topic_view(kafka_topic()))

    assert isinstance(step, Release)
    assert step.event is not None
    assert step.event.reason == "TopicKept"
    assert TOPIC_ID in step.event.message


def test_retain_keeps_the_kafka_topic() -> None:
    """DeletionPolicy Retain, with the cluster there or not."""
    retained = topic(deleted=True, deletionPolicy="Retain")

    step = decide_topic_deletion(retained, topic_view(kafka_topic()))

    assert isinstance(step, Release)
    assert step.event is not None
    assert step.event.reason == "TopicRetained"
    assert decide_topic_deletion_unavailable(retained, AWAY, 0) == Release()


def test_a_topic_that_is_gone_already_is_released() -> None:
    """Deleted by hand, or by our own call whose answer was lost."""
    gone = Failure(3, "UNKNOWN_TOPIC_OR_PARTITION", "no such topic")

    assert decide_topic_deletion(topic(deleted=True), topic_view(None)) == Release()
    assert decide_topic_deletion(topic(deleted=True), topic_view(kafka_topic(), failure=gone)) == Release()


@pytest.mark.shows("E7")
def test_deletion_never_blocks_a_namespace() -> None:
    """Bounded wait, then the finalizer goes, and an event reports that the topic is kept and why."""
    deleted = topic(deleted=True)
    disabled = Failure(73, "TOPIC_DELETION_DISABLED", "Topic deletion is disabled.")
    steps = {
        "No broker answers.": (
            decide_topic_deletion_unavailable(deleted, AWAY, DELETION_TIMEOUT_S - 1),
            decide_topic_deletion_unavailable(deleted, AWAY, DELETION_TIMEOUT_S),
        ),
        "Topic deletion is disabled.": (
            decide_topic_deletion(deleted, topic_view(kafka_topic(), failure=disabled)),
            decide_topic_deletion(deleted, topic_view(kafka_topic(), failure=disabled, waited_s=DELETION_TIMEOUT_S)),
        ),
        "does not complete it": (
            decide_topic_deletion(deleted, topic_view(kafka_topic(), applied=True)),
            decide_topic_deletion(deleted, topic_view(kafka_topic(), applied=True, waited_s=DELETION_TIMEOUT_S)),
        ),
    }
    for message, (before, after) in steps.items():
        assert isinstance(before, Retry)
        assert isinstance(after, Release)
        assert after.event is not None
        assert after.event.reason == "TopicKept"
        assert message in after.event.message
