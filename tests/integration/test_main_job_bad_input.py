"""Bad input: each case gets a reason and a message, nothing is lost or moved, and corrected input takes effect.

What the API server refuses is tested in tests/kafka_operator/resources, a cluster that does not
answer in tests/kafka_operator/end_to_end/test_end_to_end.py.
"""

import time
from datetime import datetime

import pytest
from kafka import KafkaAdminClient, TopicPartition

from lab.processes.waiting import wait_until
from tests.effort import in_soak
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.kubernetes import User, plan_text, topic_text
from tests.integration.moves import on_1_2_3, throttled

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes]

NOWHERE = {
    "topic": (
        {("unheard-of", 0): [1, 2, 3]},
        "UnknownTopic",
        "Topics do not exist: unheard-of. Nothing is moved.",
    ),
    "partition": (
        {("here", 0): [4, 2, 1], ("here", 7): [1, 2, 3]},
        "UnknownPartition",
        "Partitions do not exist: here-7. Nothing is moved.",
    ),
    "broker": (
        {("here", 0): [4, 2, 9]},
        "UnknownBroker",
        "Brokers are not live: 9. Live brokers: 1, 2, 3, 4. Nothing is moved.",
    ),
    "the controller": (
        {("here", 0): [4, 2, 1000]},
        "UnknownBroker",
        "Brokers are not live: 1000. Live brokers: 1, 2, 3, 4. Nothing is moved.",
    ),
}
BAD_CONFIGS = {
    "key": ({"no.such.key": "1"}, "Unknown topic config name: no.such.key"),
    "value": (
        {"retention.ms": "a while"},
        "Invalid value a while for configuration retention.ms: Not a number of type LONG",
    ),
}


def test_more_replicas_than_brokers_wait_for_the_brokers(held: Held, user: User) -> None:
    """NotEnoughBrokers with Kafka's message, which does not count the controller; the topic is created once the fourth broker is back."""
    broker = held.cluster.broker(4)
    broker.stop()
    broker.wait_until_deregistered()
    try:
        user.apply(topic_text("wide", replication_factor=4))
        message = user.wait_for("topics", "wide", "False", "NotEnoughBrokers")
        made = "wide" in held.topics()
    finally:
        broker.start()
    user.wait_until_ready("wide")

    assert message == "Replication factor: 4 larger than available brokers: 3."
    assert not made
    assert [set(replicas) for replicas in held.cluster.assignment("wide").values()] == [{1, 2, 3, 4}]
    user.wait_for_events("wide", ("Normal", "AsDeclared"), ("Warning", "NotEnoughBrokers"))


@pytest.mark.parametrize("case", ["value", *in_soak("key")])
def test_an_invalid_setting_is_reported_with_the_brokers_message(held: Held, user: User, case: str) -> None:
    """InvalidConfig at creation and at a change; the topic is not created, or keeps its settings; a valid setting ends it."""
    config, message = BAD_CONFIGS[case]
    user.apply(topic_text("settled", config={"retention.ms": "3600000"}), topic_text("unborn", config=config))
    user.wait_until_ready("settled")
    user.apply(topic_text("settled", config={"min.insync.replicas": "2", **config}))

    assert message == user.wait_for("topics", "unborn", "False", "InvalidConfig")
    assert user.wait_for("topics", "settled", "False", "InvalidConfig").endswith(message)
    assert "unborn" not in held.topics()
    assert held.config_of("settled") == {"retention.ms": "3600000"}

    user.apply(topic_text("settled", config={"min.insync.replicas": "2"}), topic_text("unborn"))
    user.wait_until_ready("settled", "unborn")
    assert held.config_of("settled") == {"min.insync.replicas": "2"}
    assert held.config_of("unborn") == {}


def test_a_plan_with_unknown_objects_moves_nothing(held: Held, user: User) -> None:
    """A reason each: topic, partition, broker; the controller is no broker. A plan is applied completely or not at all."""
    user.apply(topic_text("here"))
    user.wait_until_ready("here")
    before = held.cluster.assignment("here")

    user.apply(*(plan_text(case.replace(" ", "-"), plan) for case, (plan, _, _) in NOWHERE.items()))
    for case, (_, reason, message) in NOWHERE.items():
        assert message == user.wait_for("reassignments", case.replace(" ", "-"), "False", reason), case

    assert before == held.cluster.assignment("here")
    assert held.cluster.zookeeper.read(f"{CHROOT}/admin/reassign_partitions") is None


@pytest.mark.soak(
    "kafka_operator/end_to_end/test_end_to_end.py::test_a_running_reassignment_survives_a_kill_refuses_an_overlap_and_is_cancelled"
)
def test_a_plan_that_overlaps_a_running_one_moves_nothing(held: Held, user: User) -> None:
    """Overlap: neither the shared partition nor the other one moves, and the running plan goes on."""
    before = on_1_2_3(held, user, "contested", 2)
    with throttled(held, "contested", 4):
        user.apply(plan_text("runs", {("contested", 0): [4, 2, 3]}))
        user.wait_for("reassignments", "runs", "False", "Running")
        user.apply(plan_text("late", {("contested", 0): [1, 2, 4], ("contested", 1): [4, 3, 1]}))
        message = user.wait_for("reassignments", "late", "False", "Overlap")
        during = held.cluster.assignment("contested")
    user.wait_until_ready("runs", kind="reassignments")

    assert message == (
        "Reassignment runs moves the same partitions: contested-0. No replica was moved. "
        "Create another Reassignment to retry."
    )
    assert before[1] == during[1]
    assert held.cluster.assignment("contested") == {0: [4, 2, 3], 1: before[1]}


def test_a_plan_that_overlaps_a_tools_move_moves_nothing(held: Held, user: User) -> None:
    """A move of kafka-reassign-partitions or of another client is respected like one of Steward."""
    on_1_2_3(held, user, "tooled", 2)
    with throttled(held, "tooled", 4):
        admin = KafkaAdminClient(bootstrap_servers=held.cluster.bootstrap())
        admin.alter_partition_reassignments({TopicPartition("tooled", 0): [4, 2, 3]})
        admin.close()
        user.apply(plan_text("late", {("tooled", 0): [1, 2, 4], ("tooled", 1): [4, 3, 1]}))
        message = user.wait_for("reassignments", "late", "False", "Overlap")
    wait_until(
        lambda: held.cluster.assignment("tooled")[0] == [4, 2, 3],
        timeout_s=PATIENCE_S,
        what="the end of the tool's move",
    )

    assert message.startswith(
        "Another reassignment is already moving these partitions: tooled-0. No replica was moved."
    )
    assert set(held.cluster.assignment("tooled")[1]) == {2, 3, 1}


@pytest.mark.soak("kafka_operator/end_to_end/test_end_to_end.py::test_the_oldest_topic_wins_and_the_next_takes_over")
def test_of_two_topics_for_one_kafka_topic_the_oldest_wins(held: Held, user: User) -> None:
    """O5: the other one reports Conflict and changes nothing; when the oldest is deleted and retains the Kafka topic, the other adopts it, if allowed."""
    user.apply(topic_text("elder", 2, topicName="shared", deletionPolicy="Retain"))
    user.wait_until_ready("elder")
    created = datetime.fromisoformat(user.read("topics", "elder")["metadata"]["creationTimestamp"]).timestamp()
    wait_until(lambda: time.time() >= created + 1, timeout_s=PATIENCE_S, what="a later creation time, of whole seconds")
    user.apply(topic_text("younger", 4, topicName="shared"))
    message = user.wait_for("topics", "younger", "False", "Conflict")
    partitions = len(held.cluster.assignment("shared"))

    user.delete("topics", "elder")
    differs = user.wait_for("topics", "younger", "False", "AdoptionPending")
    user.kubectl("annotate", "topics", "younger", "steward.dev/adopt=true")
    user.wait_until_ready("younger")

    assert message == (
        f"Topic {user.namespace}/elder is older and owns the Kafka topic shared. "
        "Delete one of the two; after the owner is deleted, this Topic takes over."
    )
    assert "partitions 2 (declared 4)" in differs
    assert partitions == 2
    assert len(held.cluster.assignment("shared")) == 4
