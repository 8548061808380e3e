"""Decisions on a Topic that is not being deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import ConfigValue, Failure, KafkaPartition, Unavailable
from kafka_operator.decide.steps import AlterConfig, Apply, Claim, CreateTopic, GrowTopic
from kafka_operator.decide.timeouts import FAILOVER_TIMEOUT_S, TRANSIENT_ERROR_TIMEOUT_S
from kafka_operator.decide.topics.topic import decide_topic, decide_topic_unavailable, desired_actions
from kafka_operator.resources.topic import Topic, TopicStatus
from reconciler.decide.steps import Done, Retry, WriteStatus
from reconciler.names import Key
from tests.kafka_operator.makers import NOW, OURS, TO_CREATE, kafka_topic, ready, topic, topic_view

OTHER = Key(kinds.TOPIC, "shop", "older")


def written(step: object) -> TopicStatus:
    """The status that a step writes."""
    assert isinstance(step, WriteStatus), step
    status = step.status
    assert isinstance(status, TopicStatus)
    return status


def settled(declared: Topic, step: object) -> Topic:
    """The Topic after a step has written its status."""
    return replace(declared, status=written(step))


def test_nothing_is_done_in_kafka_before_the_finalizer_is_on() -> None:
    """O4: a topic that exists is always held, so that its deletion is never missed."""
    assert decide_topic(topic(held=False), topic_view()) == Claim(origin=TO_CREATE)
    assert decide_topic(topic(held=False), topic_view(kafka_topic())) == Claim(origin=OURS)


def test_settings_are_noted_before_they_are_set() -> None:
    """A setting that a crash or a changed spec leaves behind is known by its name, so that it can be reset."""
    step = decide_topic(topic(config={"a": "1"}, managed="b"), topic_view())

    assert step == Claim(frozenset({"a", "b"}), TO_CREATE)


def test_a_missing_topic_is_created_as_declared() -> None:
    """The create carries everything: partitions, copies, settings."""
    step = decide_topic(topic(config={"retention.ms": "5"}, origin=TO_CREATE), topic_view())

    assert step == Apply((CreateTopic("orders", 6, 3, (("retention.ms", "5"),)),))


@pytest.mark.shows("F2")
def test_the_kafka_name_is_topic_name_if_it_is_set() -> None:
    """Names that Kubernetes does not allow, such as Order_Lines, are written in spec.topicName."""
    step = decide_topic(topic(topicName="Order_Lines", origin=TO_CREATE), topic_view())

    assert step == Apply((CreateTopic("Order_Lines", 6, 3, ()),))


def test_partitions_grow_and_settings_change_in_one_step() -> None:
    """Both differences are mended at once; what is right is left alone."""
    seen = kafka_topic(partitions=4, retention_ms="1", cleanup_policy="compact", segment_ms="9")
    declared = topic(
        config={"retention.ms": "2", "cleanup.policy": "compact"}, managed="cleanup.policy,retention.ms,x.y"
    )

    step = decide_topic(declared, topic_view(seen))

    assert step == Apply((GrowTopic("orders", 6), AlterConfig("orders", (("retention.ms", "2"),), ())))


def test_a_setting_taken_out_of_the_spec_is_reset() -> None:
    """Only what this Topic may have set: settings of others stay."""
    seen = kafka_topic(retention_ms="1", leader_replication_throttled_replicas="*")

    step = decide_topic(topic(managed="retention.ms"), topic_view(seen))

    assert step == Apply((AlterConfig("orders", (), ("retention.ms",)),))


@pytest.mark.shows("O6")
def test_a_topic_as_declared_is_ready_and_shows_its_state() -> None:
    """O6: the generation is observed once it has taken effect."""
    step = decide_topic(topic(generation=3), topic_view(kafka_topic()))

    status = written(step)
    assert ready(status.conditions) == ("True", "AsDeclared")
    assert (
        status.observed_generation,
        status.topic_name,
        status.partitions,
        status.replication_factor,
    ) == (3, "orders", 6, 3)


@pytest.mark.shows("O2")
def test_a_ready_topic_is_left_alone() -> None:
    """O2: the second poll finds nothing to do and writes nothing."""
    declared = topic()
    ready_topic = settled(declared, decide_topic(declared, topic_view(kafka_topic())))

    assert decide_topic(ready_topic, topic_view(kafka_topic())) == Done()


def test_names_of_settings_are_forgotten_after_their_reset() -> None:
    """If another owner sets them later, the Topic does not reset them."""
    declared = topic(managed="retention.ms")
    ready_topic = settled(declared, decide_topic(declared, topic_view(kafka_topic())))

    assert decide_topic(ready_topic, topic_view(kafka_topic())) == Claim(frozenset())


@pytest.mark.shows("F4", "O8")
def test_more_partitions_than_declared_are_reported_and_never_removed() -> None:
    """O8."""
    seen = kafka_topic(partitions=9)

    step = decide_topic(topic(), topic_view(seen))

    assert desired_actions(topic(), seen) == ()
    status = written(step)
    assert ready(status.conditions) == ("False", "NotSupported")
    assert "Set spec.partitions to 9." in status.conditions[0].message


def test_settings_are_corrected_even_if_the_replication_factor_differs() -> None:
    """One problem does not stop the other changes."""
    declared = topic(replicationFactor=2, config={"retention.ms": "2"})

    step = decide_topic(declared, topic_view(kafka_topic(retention_ms="1")))

    assert step == Apply((AlterConfig("orders", (("retention.ms", "2"),), ()),))


def test_a_topic_that_is_being_created_by_kafka_is_waited_for() -> None:
    """Metadata may lag behind the answer to CreateTopics."""
    assert decide_topic(topic(origin=TO_CREATE), topic_view(None, applied=True)) == Retry()
    assert decide_topic(topic(), topic_view(kafka_topic(leader=-1))) == Retry()


def test_a_change_that_kafka_never_shows_is_reported_after_a_time() -> None:
    """A wait that a person would notice has a reason."""
    step = decide_topic(topic(origin=TO_CREATE), topic_view(None, applied=True, waited_s=TRANSIENT_ERROR_TIMEOUT_S))

    assert ready(written(step).conditions) == ("False", "Progressing")


def test_partitions_without_leader_are_named() -> None:
    """The user learns which."""
    seen = kafka_topic()
    leaderless = replace(seen, partitions=(*seen.partitions[:5], KafkaPartition(5, -1, (1, 2, 3))))

    status = written(decide_topic(topic(), topic_view(leaderless, waited_s=TRANSIENT_ERROR_TIMEOUT_S)))

    assert ready(status.conditions) == ("False", "NoLeader")
    assert "Partitions without a leader: 5." in status.conditions[0].message


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (
            Failure(38, "INVALID_REPLICATION_FACTOR", "Replication factor: 4 larger than available brokers: 3."),
            "NotEnoughBrokers",
        ),
        (Failure(40, "INVALID_CONFIG", "Unknown topic config name: no.such"), "InvalidConfig"),
        (Failure(17, "INVALID_TOPIC", "Topic 'a_b' collides with existing topics: a.b"), "InvalidTopic"),
        (Failure(44, "POLICY_VIOLATION", "No."), "PolicyViolation"),
        (Failure(29, "TOPIC_AUTHORIZATION_FAILED", "Not authorized."), "NotAuthorized"),
        (Failure(9999, "UNKNOWN", "What is this?"), "KafkaError"),
    ],
)
def test_a_refusal_is_reported_with_the_brokers_message(failure: Failure, reason: str) -> None:
    """Bad input gets a clear error, and is tried again later without a write."""
    declared = topic()

    step = decide_topic(declared, topic_view(failure=failure))

    status = written(step)
    assert ready(status.conditions) == ("False", reason)
    assert failure.message == status.conditions[0].message
    again = decide_topic(settled(declared, step), topic_view(failure=failure))
    assert isinstance(again, Retry)


def test_a_passing_refusal_is_kept_to_ourselves_for_a_while() -> None:
    """TOPIC_ALREADY_EXISTS after a time-out of the operator's own request: the next poll adopts the topic."""
    exists = Failure(36, "TOPIC_ALREADY_EXISTS", "Topic 'orders' already exists.")

    assert isinstance(decide_topic(topic(), topic_view(failure=exists)), Retry)
    late = decide_topic(topic(), topic_view(failure=exists, waited_s=TRANSIENT_ERROR_TIMEOUT_S))
    assert ready(written(late).conditions) == ("False", "TopicExists")


def test_the_younger_of_two_topics_for_one_kafka_topic_touches_nothing() -> None:
    """O5: it names the winner, and takes no finalizer: its deletion must not delete the other's topic."""
    step = decide_topic(topic(held=False), topic_view(kafka_topic(), owner=OTHER))

    status = written(step)
    assert ready(status.conditions) == ("False", "Conflict")
    assert "shop/older" in status.conditions[0].message
    assert status.topic_id is None


def test_a_cluster_that_does_not_answer_makes_ready_unknown_and_keeps_the_rest() -> None:
    """What was seen last is still the best that is known; the generation is not called observed."""
    declared = topic(generation=2)
    known = settled(topic(), decide_topic(topic(), topic_view(kafka_topic())))
    away = Unavailable("ClusterUnreachable", "No broker of Cluster main responds at kafka:9092.")

    status = written(decide_topic_unavailable(replace(declared, status=known.status), away, NOW, 0))

    assert ready(status.conditions) == ("Unknown", "ClusterUnreachable")
    assert (status.observed_generation, status.partitions) == (1, 6)


def test_a_controllers_failover_is_waited_for_in_silence() -> None:
    """Kill -9 of the controller: the operator's users notice nothing."""
    away = Unavailable("ControllerUnavailable", "The cluster's controller does not respond.", definite=False)

    assert isinstance(decide_topic_unavailable(topic(), away, NOW, FAILOVER_TIMEOUT_S - 1), Retry)
    late = decide_topic_unavailable(topic(), away, NOW, FAILOVER_TIMEOUT_S)
    assert ready(written(late).conditions) == ("Unknown", "ControllerUnavailable")


def test_events_report_new_problems_and_their_end_and_no_first_success() -> None:
    """A thousand new Topics are no thousand pieces of news."""
    declared = topic(origin=TO_CREATE)
    success = decide_topic(declared, topic_view(kafka_topic()))
    failed = decide_topic(declared, topic_view(failure=Failure(40, "INVALID_CONFIG", "Unknown")))
    assert isinstance(success, WriteStatus)
    assert isinstance(failed, WriteStatus)
    recovered = decide_topic(settled(declared, failed), topic_view(kafka_topic()))

    assert success.event is None
    assert failed.event is not None
    assert (
        failed.event.warning,
        failed.event.reason,
        failed.event.message,
    ) == (True, "InvalidConfig", "Unknown")
    assert isinstance(recovered, WriteStatus)
    assert recovered.event is not None
    assert not recovered.event.warning


def test_kafkas_own_spelling_of_a_value_is_no_drift() -> None:
    """Kafka parses values and writes them its own way: no endless correction (O7)."""
    config = {
        "retention.ms": "0100",
        "cleanup.policy": "compact, delete",
        "unclean.leader.election.enable": "TRUE",
        "min.cleanable.dirty.ratio": "0.50",
    }
    seen = replace(
        kafka_topic(),
        config={
            "retention.ms": ConfigValue("100", "LONG"),
            "cleanup.policy": ConfigValue("compact,delete", "LIST"),
            "unclean.leader.election.enable": ConfigValue("true", "BOOLEAN"),
            "min.cleanable.dirty.ratio": ConfigValue("0.5", "DOUBLE"),
        },
    )

    assert desired_actions(topic(config=config), seen) == ()
