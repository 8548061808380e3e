"""Ownership of an existing Kafka topic, and its adoption."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator.decide.steps import AlterConfig, Apply, Claim, CreateTopic
from kafka_operator.decide.timeouts import TRANSIENT_ERROR_TIMEOUT_S
from kafka_operator.decide.topics.topic import decide_topic
from kafka_operator.decide.topics.topic_deletion import decide_topic_deletion
from kafka_operator.decide.topics.topic_drift import digest_of, find_drift
from kafka_operator.decide.topics.topic_origin import is_ours
from kafka_operator.names import ADOPT
from kafka_operator.resources.topic import Drift, TopicStatus
from reconciler.decide.steps import Done, Release, Retry, WriteStatus
from tests.kafka_operator.makers import OURS, TO_CREATE, TOPIC_ID, kafka_topic, ready, topic, topic_view

OTHER_ID = "22222222-2222-2222-2222-222222222222"
DIFFERENT = {"partitions": 8, "config": {"retention.ms": "2"}}


def status_of(step: object) -> TopicStatus:
    """The status that a step writes."""
    assert isinstance(step, WriteStatus), step
    assert isinstance(step.status, TopicStatus)
    return step.status


def test_a_topic_as_declared_is_adopted_at_once() -> None:
    """E8: a topic that matches the declaration is adopted."""
    assert decide_topic(topic(held=False), topic_view(kafka_topic())) == Claim(origin=OURS)


def test_differences_of_an_existing_topic_are_shown_and_it_is_not_changed() -> None:
    """E8: the differences are shown first. Without a finalizer: the deletion of the resource must not delete a topic that it does not own."""
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
def test_a_topic_is_adopted_when_its_user_accepts_these_differences(word: str) -> None:
    """By their digest, or by `true` for any differences."""
    seen = kafka_topic(retention_ms="1")
    digest = digest_of(find_drift(topic(**DIFFERENT), seen), seen)
    agreed = topic(held=False, annotations={ADOPT: digest if word == "digest" else word}, **DIFFERENT)

    assert decide_topic(agreed, topic_view(seen)) == Claim(frozenset({"retention.ms"}), OURS)
    claimed = topic(annotations={ADOPT: "whatever"}, **DIFFERENT)
    assert isinstance(decide_topic(claimed, topic_view(seen)), Apply)


def test_consent_to_other_differences_is_not_accepted() -> None:
    """The message shows that the annotation is for other differences."""
    stale = topic(held=False, annotations={ADOPT: "0123456789ab"}, **DIFFERENT)

    message = status_of(decide_topic(stale, topic_view(kafka_topic()))).conditions[0].message

    assert "is 0123456789ab, which is for other differences" in message


def test_a_digest_is_valid_for_one_topic_id_only() -> None:
    """A topic that was deleted and recreated has another digest."""
    drift = find_drift(topic(**DIFFERENT), kafka_topic())

    assert digest_of(drift, kafka_topic()) != digest_of(drift, kafka_topic(topic_id=OTHER_ID))


def test_a_topic_that_the_operator_created_needs_no_adoption() -> None:
    """After a crash between the creation and the write of the status. The spec may have changed in the meantime."""
    created = topic(origin=TO_CREATE, generation=2, config={"retention.ms": "2"})

    assert is_ours(created, kafka_topic())
    assert decide_topic(created, topic_view(kafka_topic())) == Apply(
        (AlterConfig("orders", (("retention.ms", "2"),), ()),)
    )


def test_a_topic_that_another_client_created_at_the_same_time_is_pending_adoption() -> None:
    """The spec has the generation of the noted creation, but the topic differs from it."""
    declared = topic(origin=TO_CREATE, config={"retention.ms": "2"})

    assert not is_ours(declared, kafka_topic())
    assert isinstance(decide_topic(declared, topic_view(kafka_topic())), Retry)
    late = decide_topic(declared, topic_view(kafka_topic(), waited_s=TRANSIENT_ERROR_TIMEOUT_S))
    assert ready(status_of(late).conditions) == ("False", "AdoptionPending")


def test_a_failed_creation_is_no_proof_of_ownership() -> None:
    """The brokers reject the creation, another client creates a topic of that name, and then the spec is corrected."""
    corrected = replace(
        topic(origin=TO_CREATE, generation=2, config={"retention.ms": "2"}), status=TopicStatus(observed_generation=1)
    )

    assert not is_ours(corrected, kafka_topic())
    step = decide_topic(corrected, topic_view(kafka_topic()))
    assert ready(status_of(step).conditions) == ("False", "AdoptionPending")
    assert decide_topic(corrected, topic_view()) == Claim(frozenset({"retention.ms"}), "created/2/-")


@pytest.mark.parametrize("note", ["created", "created/x/-", "created//-", "adopted", "nonsense"])
def test_an_invalid_note_is_no_proof_of_ownership(note: str) -> None:
    """It is written again."""
    invalid = topic(origin=note, config={"retention.ms": "2"})

    assert not is_ours(invalid, kafka_topic())
    assert decide_topic(invalid, topic_view()) == Claim(frozenset({"retention.ms"}), TO_CREATE)


def test_a_rejected_creation_is_noted_once() -> None:
    """For any number of attempts with the same spec."""
    refused = replace(topic(origin=TO_CREATE), status=TopicStatus(observed_generation=1))

    assert isinstance(decide_topic(refused, topic_view()), Apply)


def test_another_topic_of_the_same_name_is_not_owned() -> None:
    """Another client has deleted the Kafka topic and created another one: it is adopted if it matches, otherwise its differences are shown."""
    declared = replace(topic(origin=TO_CREATE), status=TopicStatus(topic_id=OTHER_ID, partitions=6))

    assert not is_ours(declared, kafka_topic())
    assert decide_topic(declared, topic_view(kafka_topic())) == Claim(origin=OURS)
    step = decide_topic(declared, topic_view(kafka_topic(partitions=3)))
    assert ready(status_of(step).conditions) == ("False", "AdoptionPending")


def test_a_deleted_topic_is_recreated_after_a_note_of_it() -> None:
    """The note contains the id of the deleted topic; a topic with another id is the recreated one."""
    gone = replace(topic(origin=TO_CREATE), status=TopicStatus(topic_id=OTHER_ID))

    assert decide_topic(gone, topic_view()) == Claim(origin=f"created/1/{OTHER_ID}")
    noted = replace(topic(origin=f"created/1/{OTHER_ID}"), status=TopicStatus(topic_id=OTHER_ID))
    assert decide_topic(noted, topic_view()) == Apply((CreateTopic("orders", 6, 3, ()),))
    assert is_ours(noted, kafka_topic())


def test_clusters_without_topic_ids_are_supported() -> None:
    """Before Kafka 2.8: a topic that the status shows is owned."""
    old = kafka_topic(topic_id=None)
    known = replace(topic(origin="created/1/-", config={"a": "1"}), status=TopicStatus(partitions=6))

    assert is_ours(known, old)
    assert not is_ours(topic(origin="", config={"a": "1"}), old)
    assert decide_topic(topic(held=False), topic_view(old)) == Claim(origin="adopted/-")


def test_a_kafka_topic_pending_adoption_is_kept_when_its_resource_is_deleted() -> None:
    """O4, with the finalizer for a previous Kafka topic."""
    pending = replace(topic(origin=TO_CREATE, deleted=True), status=TopicStatus(topic_id=OTHER_ID))

    step = decide_topic_deletion(pending, topic_view(kafka_topic(partitions=3)))

    assert isinstance(step, Release)
    assert step.event is not None
    assert step.event.reason == "TopicKept"


def test_an_adoption_posts_one_event() -> None:
    """With the status that first shows the topic."""
    step = decide_topic(topic(), topic_view(kafka_topic()))

    assert isinstance(step, WriteStatus)
    assert step.event is not None
    assert (step.event.warning, step.event.reason) == (False, "Adopted")
    assert status_of(step).topic_id == TOPIC_ID
