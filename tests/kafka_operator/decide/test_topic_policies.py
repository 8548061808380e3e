"""Decisions by the policies of a Topic: to observe, to keep settings of others, to revert changes of others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import Failure, KafkaPartition
from kafka_operator.decide.steps import AlterConfig, Apply, Claim, CreateTopic, GrowTopic
from kafka_operator.decide.tenants.tenancy import Refusal
from kafka_operator.decide.timeouts import TRANSIENT_ERROR_TIMEOUT_S
from kafka_operator.decide.topics.topic import decide_topic
from kafka_operator.resources.topic import Drift, Topic, TopicStatus
from reconciler.decide.steps import Done, Release, Retry, WriteStatus
from reconciler.names import Key
from reconciler.resources.metadata import Condition
from tests.kafka_operator.makers import TO_CREATE, TOPIC_ID, kafka_topic, ready, topic, topic_view


def status_of(step: object) -> TopicStatus:
    """The status that a step writes."""
    assert isinstance(step, WriteStatus), step
    assert isinstance(step.status, TopicStatus)
    return step.status


def settled(**spec: object) -> Topic:
    """A Topic that is Ready as it was declared, with any further fields."""
    declared = topic(**spec)
    status = TopicStatus(
        observed_generation=1,
        settled_generation=1,
        topic_name="orders",
        topic_id=TOPIC_ID,
        partitions=6,
        replication_factor=3,
        conditions=(
            Condition("Ready", "True", "AsDeclared", "The Kafka topic matches the spec.", 1, "2026-01-01T12:00:00Z"),
        ),
    )
    return replace(declared, status=status)


def condition(status: TopicStatus, condition_type: str) -> tuple[str, str]:
    """Status and message of a condition."""
    (found,) = [item for item in status.conditions if item.type == condition_type]
    return found.status, found.message


@pytest.mark.shows("F9")
def test_a_topic_that_only_observes_lists_what_differs_and_changes_nothing() -> None:
    """Features 8: drift reported, not fixed. No finalizer either: there is nothing to undo."""
    watching = topic(held=False, policy="Observe", partitions=8, replicationFactor=2, config={"a": "1", "b": "2"})
    seen = kafka_topic(b="3", c="4")

    asked = decide_topic(watching, topic_view(seen))
    assert asked == Apply((GrowTopic("orders", 8), AlterConfig("orders", (("a", "1"), ("b", "2")), ())), asks_only=True)
    step = decide_topic(watching, topic_view(seen, applied=True))

    status = status_of(step)
    assert status.drift == (
        Drift("partitions", "8", "6"),
        Drift("replicationFactor", "2", "3"),
        Drift("config.a", "1", None),
        Drift("config.b", "2", "3"),
    )
    assert ready(status.conditions) == ("False", "Drifted")
    message = "partitions 6 (declared 8), replicationFactor 3 (declared 2), a not set (declared 1), b 3 (declared 2)"
    assert condition(status, "Drifted") == ("True", f"The Kafka topic differs: {message}.")
    assert (status.topic_id, status.partitions) == (TOPIC_ID, 6)
    assert decide_topic(replace(watching, status=status), topic_view(seen, applied=True)) == Done()


def test_a_topic_that_only_observes_is_ready_when_nothing_differs() -> None:
    """Drifted is False then, with this reason."""
    status = status_of(decide_topic(topic(held=False, policy="Observe"), topic_view(kafka_topic())))

    assert ready(status.conditions) == ("True", "AsDeclared")
    assert condition(status, "Drifted") == ("False", "The Kafka topic matches the spec.")
    assert status.drift == ()


def test_a_missing_topic_is_observed_too() -> None:
    """It is not created."""
    status = status_of(decide_topic(topic(held=False, policy="Observe"), topic_view(None, applied=True)))

    assert status.drift == (Drift("topic", "present", None),)
    assert "the topic does not exist" in status.conditions[0].message


@pytest.mark.shows("F9")
def test_what_the_brokers_would_refuse_is_shown_before_the_change() -> None:
    """They are asked with validate_only, which changes nothing."""
    watching = topic(held=False, policy="Observe", config={"no.such": "1"})
    failure = Failure(40, "INVALID_CONFIG", "Unknown topic config name: no.such")

    status = status_of(decide_topic(watching, topic_view(kafka_topic(), applied=True, failure=failure)))

    assert ready(status.conditions) == ("False", "Drifted")
    assert "would reject the declared state: Unknown topic config name: no.such" in status.conditions[0].message
    passing = Failure(7, "REQUEST_TIMED_OUT", "Later.")
    status = status_of(decide_topic(watching, topic_view(kafka_topic(), applied=True, failure=passing)))
    assert "Later" not in status.conditions[0].message


def test_a_topic_that_turns_to_observing_lets_go() -> None:
    """After its status, and the names of settings stay noted for the day when it enforces again."""
    watching = settled(policy="Observe", config={"a": "1"})
    status = status_of(decide_topic(watching, topic_view(kafka_topic(a="1"))))

    assert decide_topic(replace(watching, status=status), topic_view(kafka_topic(a="1"))) == Release()


def test_a_topic_that_was_observed_and_is_to_be_enforced_is_ours() -> None:
    """Its user has seen how it differs, and accepts it with Enforce."""
    watched = settled(held=False, config={"a": "1"})

    assert decide_topic(watched, topic_view(kafka_topic())) == Claim(frozenset({"a"}))


def test_drift_that_is_reverted_is_reported_in_an_event() -> None:
    """When it is seen for the second time: a controller that has just begun may know less than there is."""
    drifted = settled(config={"retention.ms": "1"})

    assert decide_topic(drifted, topic_view(kafka_topic(retention_ms="9"))) == Retry()
    step = decide_topic(drifted, topic_view(kafka_topic(retention_ms="9"), waited_s=0.1))

    assert isinstance(step, Apply)
    assert step.actions == (AlterConfig("orders", (("retention.ms", "1"),), ()),)
    assert step.event is not None
    assert (step.event.warning, step.event.reason) == (False, "DriftReverted")
    assert "retention.ms 9 (declared 1)" in step.event.message


def test_a_changed_spec_is_no_drift() -> None:
    """An event reports a change from outside; what the user declares is done at the first poll."""
    edited = settled(config={"retention.ms": "1"}, generation=2)

    step = decide_topic(edited, topic_view(kafka_topic(retention_ms="9")))

    assert isinstance(step, Apply)
    assert step.event is None


def test_a_topic_that_was_deleted_outside_its_resource_is_recreated_with_a_warning() -> None:
    """Its records are gone."""
    gone = settled(origin=f"created/1/{TOPIC_ID}")

    assert decide_topic(gone, topic_view()) == Retry()
    step = decide_topic(gone, topic_view(waited_s=0.1))

    assert isinstance(step, Apply)
    assert step.actions == (CreateTopic("orders", 6, 3, ()),)
    assert step.event is not None
    assert (step.event.warning, step.event.reason) == (True, "TopicRecreated")


def test_settings_left_alone_are_neither_set_nor_reset() -> None:
    """Features 7: by null, or in unmanagedConfig; also when this Topic has set them before."""
    declared = topic(config={"a": "1", "b": None}, unmanagedConfig=["c"], managed="a,b,c,d")
    seen = kafka_topic(a="0", b="2", c="3", d="4")

    step = decide_topic(declared, topic_view(seen))

    assert step == Apply((AlterConfig("orders", (("a", "1"),), ("d",)),))


def test_names_left_alone_are_no_longer_noted() -> None:
    """Removed from that list later, they belong to another owner, and are not reset."""
    declared = settled(unmanagedConfig=["a"], managed="a")

    assert decide_topic(declared, topic_view(kafka_topic(a="1"))) == Claim(frozenset())


def test_more_than_one_effect_is_checked_by_the_brokers_first() -> None:
    """Nothing is half done; one call alone is all or nothing anyhow."""
    grow, alter = GrowTopic("t", 2), AlterConfig("t", (("a", "1"),), ())

    assert Apply((grow, alter)).checked_first
    assert not Apply((CreateTopic("t", 1, 1, ()),)).checked_first
    assert not Apply((grow,)).checked_first
    assert not Apply((alter,)).checked_first


def test_a_namespace_without_permission_is_reported_before_anything_else() -> None:
    """Nothing is claimed, and the conflict with another's Topic is none of its business."""
    refusal = Refusal("NameNotAllowed", "No.")
    view = topic_view(kafka_topic(), refusal=refusal, owner=Key(kinds.TOPIC, "other", "older"))

    status = status_of(decide_topic(topic(held=False), view))

    assert ready(status.conditions) == ("False", "NameNotAllowed")
    assert status.topic_id is None


def test_a_topic_that_may_not_be_read_shows_the_brokers_error_while_it_observes() -> None:
    """The operator lacks the right to describe the topic."""
    failure = Failure(29, "TOPIC_AUTHORIZATION_FAILED", "Not authorized.")
    step = decide_topic(topic(held=False, policy="Observe"), topic_view(failure=failure))

    assert ready(status_of(step).conditions) == ("False", "NotAuthorized")


def test_a_topic_without_leader_is_observed_as_such() -> None:
    """As declared is not all that counts."""
    leaderless = replace(kafka_topic(partitions=1), partitions=(KafkaPartition(0, -1, (1, 2, 3)),))
    step = decide_topic(
        topic(held=False, policy="Observe", partitions=1), topic_view(leaderless, waited_s=TRANSIENT_ERROR_TIMEOUT_S)
    )

    assert ready(status_of(step).conditions) == ("False", "NoLeader")


def test_a_creation_is_announced_by_the_generation_it_is_of() -> None:
    """The note by which a created topic differs from an adopted one."""
    assert decide_topic(topic(held=False, generation=3), topic_view()) == Claim(origin="created/3/-")
    assert isinstance(decide_topic(topic(origin=TO_CREATE), topic_view()), Apply)
