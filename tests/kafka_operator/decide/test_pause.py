"""Decisions on a resource that is paused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator.decide.topics.topic import decide_topic
from kafka_operator.resources.topic import Topic
from reconciler.decide.pause import PAUSED, decide_pause
from reconciler.decide.steps import Done, WriteStatus
from reconciler.names import PAUSE
from tests.kafka_operator.makers import NOW, kafka_topic, ready, topic, topic_view


def settled(**fields: object) -> Topic:
    """A Topic that is Ready, with the values of `fields`."""
    declared = topic(**fields)
    step = decide_topic(topic(), topic_view(kafka_topic()))
    assert isinstance(step, WriteStatus)
    return replace(declared, status=step.status)


@pytest.mark.shows("F32")
def test_a_paused_resource_keeps_ready_and_reports_the_pause_once() -> None:
    """Features (d): who replaces Ready breaks `kubectl wait --for=condition=Ready`."""
    paused = settled(annotations={PAUSE: "true"})

    step = decide_pause(paused.metadata, paused.status, NOW)

    assert isinstance(step, WriteStatus)
    assert ready(step.status.conditions) == ("True", "AsDeclared")
    assert [condition.type for condition in step.status.conditions] == ["Ready", PAUSED]
    assert step.event is not None
    assert not step.event.warning
    assert decide_pause(paused.metadata, step.status, NOW) == Done()


def test_a_resource_that_is_paused_no_longer_loses_the_condition_and_goes_on() -> None:
    """With the next decision made as usual."""
    paused = settled(annotations={PAUSE: "true"})
    step = decide_pause(paused.metadata, paused.status, NOW)
    assert isinstance(step, WriteStatus)
    resumed = settled()

    after = decide_pause(resumed.metadata, step.status, NOW)

    assert isinstance(after, WriteStatus)
    assert [condition.type for condition in after.status.conditions] == ["Ready"]
    assert decide_pause(resumed.metadata, after.status, NOW) is None


@pytest.mark.parametrize("value", ["false", "True", "yes", ""])
def test_only_the_word_true_pauses(value: str) -> None:
    """As it is documented; anything else is no pause."""
    declared = topic(annotations={PAUSE: value})

    assert decide_pause(declared.metadata, declared.status, NOW) is None


def test_a_paused_resource_that_is_deleted_is_decided_on_as_one_that_goes() -> None:
    """Else it would wedge its namespace."""
    leaving = topic(annotations={PAUSE: "true"}, deleted=True)

    assert decide_pause(leaving.metadata, leaving.status, NOW) is None
