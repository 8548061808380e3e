"""Whose a Kafka topic is that is there already, and what is done before it is taken over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator.decide.steps import AlterConfig, Apply, Claim, CreateTopic, Done, Release, Retry, WriteStatus
from kafka_operator.decide.topic import PATIENCE_S, decide_topic
from kafka_operator.decide.topic_deletion import decide_topic_deletion
from kafka_operator.decide.topic_drift import digest_of, find_drift
from kafka_operator.decide.topic_origin import is_ours
from kafka_operator.names import ADOPT
from kafka_operator.resources.topic import Drift, TopicStatus
from tests.kafka_operator.makers import OURS, TO_CREATE, TOPIC_ID, kafka_topic, ready, topic, topic_view

OTHER_ID = "22222222-2222-2222-2222-222222222222"
DIFFERENT = {"partitions": 8, "config": {"retention.ms": "2"}}


def status_of(step: object) -> TopicStatus:
    """The status that a step writes."""
    assert isinstance(step, WriteStatus), step
    assert isinstance(step.status, TopicStatus)
    return step.status


def test_a_topic_as_declared_is_adopted_at_once() -> None:
    """Features (e) 8: it must match."""
    assert decide_topic(topic(held=False), topic_view(kafka_topic())) == Claim(origin=OURS)


def test_a_topic_that_differs_is_shown_and_not_touched() -> None:
    """Features (e) 8: or show the difference first. No finalizer: its deletion must not delete what is not ours."""
    declared = topic(held=False, **DIFFERENT)
    seen = kafka_topic(retention_ms="1")

    step = decide_topic(declared, topic_view(seen))

    status = status_of(step)
    assert ready(status.conditions) == ("False", "AdoptionPending")
    assert status.drift == (Drift("partitions", "8", "6"), Drift("config.retention.ms", "2", "1"))
    assert (status.topic_id, status.partitions) == (None, None)
    message = status.conditions[0].message
    assert "partitions 6 (declared 8), retention.ms 1 (declared 2)" in message
    assert f"{ADOPT}={digest_of(status.drift, seen)}" in message
    assert decide_topic(replace(declared, status=status), topic_view(seen)) == Done()


@pytest.mark.shows("E8")
@pytest.mark.parametrize("word", ["true", "digest"])
def test_it_is_taken_over_when_its_user_agrees_to_these_differences(word: str) -> None:
    """By their digest, or to whatever differs."""
    seen = kafka_topic(retention_ms="1")
    digest = digest_of(find_drift(topic(**DIFFERENT), seen), seen)
    agreed = topic(held=False, annotations={ADOPT: digest if word == "digest" else word}, **DIFFERENT)

    assert decide_topic(agreed, topic_view(seen)) == Claim(frozenset({"retention.ms"}), OURS)
    claimed = topic(annotations={ADOPT: "whatever"}, **DIFFERENT)
    assert isinstance(decide_topic(claimed, topic_view(seen)), Apply)


def test_an_agreement_to_other_differences_is_none() -> None:
    """What has changed since is shown anew."""
    stale = topic(held=False, annotations={ADOPT: "0123456789ab"}, **DIFFERENT)

    message = status_of(decide_topic(stale, topic_view(kafka_topic()))).conditions[0].message

    assert "is 0123456789ab, which is for other differences" in message


def test_a_digest_is_of_one_topic_alone() -> None:
    """Deleted and created anew in between, it is another one."""
    drift = find_drift(topic(**DIFFERENT), kafka_topic())

    assert digest_of(drift, kafka_topic()) != digest_of(drift, kafka_topic(topic_id=OTHER_ID))


def test_what_we_created_ourselves_is_not_looked_on_as_found() -> None:
    """A crash between the creation and the status; the spec may have changed meanwhile."""
    created = topic(origin=TO_CREATE, generation=2, config={"retention.ms": "2"})

    assert is_ours(created, kafka_topic())
    assert decide_topic(created, topic_view(kafka_topic())) == Apply(
        (AlterConfig("orders", (("retention.ms", "2"),), ()),)
    )


def test_what_somebody_else_created_in_the_moment_of_our_creation_is_shown_first() -> None:
    """The spec is the one of which the creation was announced, and the topic is not as it says."""
    declared = topic(origin=TO_CREATE, config={"retention.ms": "2"})

    assert not is_ours(declared, kafka_topic())
    assert isinstance(decide_topic(declared, topic_view(kafka_topic())), Retry)
    late = decide_topic(declared, topic_view(kafka_topic(), waited_s=PATIENCE_S))
    assert ready(status_of(late).conditions) == ("False", "AdoptionPending")


def test_a_creation_that_came_to_nothing_proves_nothing_later() -> None:
    """The brokers refused it; somebody else creates a topic of that name; then the spec is mended."""
    mended = replace(
        topic(origin=TO_CREATE, generation=2, config={"retention.ms": "2"}), status=TopicStatus(observed_generation=1)
    )

    assert not is_ours(mended, kafka_topic())
    step = decide_topic(mended, topic_view(kafka_topic()))
    assert ready(status_of(step).conditions) == ("False", "AdoptionPending")
    assert decide_topic(mended, topic_view()) == Claim(frozenset({"retention.ms"}), "created/2/-")


@pytest.mark.parametrize("note", ["created", "created/x/-", "created//-", "adopted", "nonsense"])
def test_a_note_that_somebody_spoilt_proves_nothing(note: str) -> None:
    """And is written anew."""
    spoilt = topic(origin=note, config={"retention.ms": "2"})

    assert not is_ours(spoilt, kafka_topic())
    assert decide_topic(spoilt, topic_view()) == Claim(frozenset({"retention.ms"}), TO_CREATE)


def test_a_creation_that_is_refused_is_announced_once() -> None:
    """However often it is tried for the same spec."""
    refused = replace(topic(origin=TO_CREATE), status=TopicStatus(observed_generation=1))

    assert isinstance(decide_topic(refused, topic_view()), Apply)


def test_another_topic_of_the_same_name_is_not_ours() -> None:
    """Somebody deleted the Kafka topic and created another one: as declared it is adopted, else its differences are shown."""
    declared = replace(topic(origin=TO_CREATE), status=TopicStatus(topic_id=OTHER_ID, partitions=6))

    assert not is_ours(declared, kafka_topic())
    assert decide_topic(declared, topic_view(kafka_topic())) == Claim(origin=OURS)
    step = decide_topic(declared, topic_view(kafka_topic(partitions=3)))
    assert ready(status_of(step).conditions) == ("False", "AdoptionPending")


def test_a_topic_that_went_is_created_anew_and_that_is_noted_first() -> None:
    """The note names the topic before: the one that comes is ours, the one that was is no proof of it."""
    gone = replace(topic(origin=TO_CREATE), status=TopicStatus(topic_id=OTHER_ID))

    assert decide_topic(gone, topic_view()) == Claim(origin=f"created/1/{OTHER_ID}")
    noted = replace(topic(origin=f"created/1/{OTHER_ID}"), status=TopicStatus(topic_id=OTHER_ID))
    assert decide_topic(noted, topic_view()) == Apply((CreateTopic("orders", 6, 3, ()),))
    assert is_ours(noted, kafka_topic())


def test_a_cluster_without_topic_ids_is_served_too() -> None:
    """Before Kafka 2.8: what the status shows is ours."""
    old = kafka_topic(topic_id=None)
    known = replace(topic(origin="created/1/-", config={"a": "1"}), status=TopicStatus(partitions=6))

    assert is_ours(known, old)
    assert not is_ours(topic(origin="", config={"a": "1"}), old)
    assert decide_topic(topic(held=False), topic_view(old)) == Claim(origin="adopted/-")


def test_what_was_not_agreed_to_is_kept_when_the_topic_goes() -> None:
    """O4, with the finalizer still there from a topic before."""
    pending = replace(topic(origin=TO_CREATE, deleted=True), status=TopicStatus(topic_id=OTHER_ID))

    step = decide_topic_deletion(pending, topic_view(kafka_topic(partitions=3)))

    assert isinstance(step, Release)
    assert step.announcement is not None
    assert step.announcement.reason == "TopicKept"


def test_an_adoption_is_told_once() -> None:
    """With the status that first shows the topic."""
    step = decide_topic(topic(), topic_view(kafka_topic()))

    assert isinstance(step, WriteStatus)
    assert step.announcement is not None
    assert (step.announcement.warning, step.announcement.reason) == (False, "Adopted")
    assert status_of(step).topic_id == TOPIC_ID
