"""The main job while things die: a leader, our controller, our operator at every stage of its work."""

import random

import pytest
from kafka import KafkaAdminClient, TopicPartition

from lab.steward import StewardOperator
from lab.traffic import Traffic
from lab.waiting import wait_until
from tests.integration.conftest import PATIENCE_S, Held
from tests.integration.kubernetes import User, plan_text, topic_text
from tests.integration.moves import on_1_2_3, throttled

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes, pytest.mark.timeout(240)]

MANY = 40
KILLS = 4


def settled(user: User, *names: str) -> list[object]:
    """What the operator has written to some Topics: it stays the same as long as it notices nothing."""
    return [user.read("topics", name) for name in names]


def test_a_killed_leader_changes_nothing_that_is_declared(held: Held, user: User) -> None:
    """B1: kill -9 under load; other leaders, nothing acknowledged is lost; the Topic stays Ready, the Cluster tells the truth."""
    user.apply(topic_text("steady", 3, config={"min.insync.replicas": "2"}))
    user.wait_until_ready("steady")
    victim = held.leaders("steady")[0]
    before = settled(user, "steady")

    with Traffic(held.cluster.bootstrap(), "steady") as traffic:
        held.cluster.broker(victim).kill()
        wait_until(
            lambda: victim not in held.leaders("steady").values(), timeout_s=PATIENCE_S, what="leaders that are alive"
        )
        alive = [broker for broker in (1, 2, 3, 4) if broker != victim]
        wait_until(
            lambda: user.read("clusters", "main")["status"]["brokerIds"] == alive,
            timeout_s=PATIENCE_S,
            what="three brokers in the Cluster's status",
        )
        user.apply(topic_text("meanwhile", 3))
        user.wait_until_ready("meanwhile")
        without = held.cluster.assignment("meanwhile")
        traffic.wait_for_acks(100)
        held.cluster.broker(victim).restart()
        held.wait_until_all_are_back("steady")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert all(victim not in replicas for replicas in without.values())
    assert before == settled(user, "steady")


def test_the_operator_notices_no_change_of_controllers(held: Held, user: User) -> None:
    """Kill -9 of ours, a native broker stands in, ours comes back: Topics become Ready under each, and no trouble is told."""
    user.apply(topic_text("before", 2))
    user.wait_until_ready("before")
    before = settled(user, "before")

    held.controller.kill()
    user.apply(topic_text("orphan", 2))  # with nobody in the place
    wait_until(lambda: held.cluster.controller_id() in held.cluster.brokers, timeout_s=PATIENCE_S, what="a native one")
    user.wait_until_ready("orphan")
    user.apply(topic_text("native", 2), topic_text("orphan", 3))
    user.wait_until_ready("native", "orphan")
    native = held.cluster.controller_id()
    held.controller.start()
    held.wait_until_held()
    user.apply(topic_text("back", 2), topic_text("native", 3))
    user.wait_until_ready("back", "native")
    user.wait_until_ready("main", kind="clusters")

    assert native in held.cluster.brokers
    assert {"before": 2, "orphan": 3, "native": 3, "back": 2} == {
        name: len(held.cluster.assignment(name)) for name in ("before", "orphan", "native", "back")
    }
    assert before == settled(user, "before")
    assert [] == user.events()


def test_an_operator_killed_while_it_creates_topics_ends_with_all_of_them(
    held: Held, user: User, operator: StewardOperator
) -> None:
    """O2, O3: kill -9 whenever some more topics are there; in the end all are, each once and as declared, and rest (O1)."""
    names = [f"many-{number:02}" for number in range(MANY)]
    draw = random.Random(3)
    user.apply(*(topic_text(name, 2, config={"retention.ms": "3600000"}) for name in names))
    try:
        for _ in range(KILLS):
            operator.kill()
            operator.launch()
            ready = sum(user.ready("topics", name) is not None for name in names)
            more = min(MANY, ready + draw.randint(0, MANY // KILLS))
            wait_until(
                lambda more=more: len(held.topics() & set(names)) >= more, timeout_s=PATIENCE_S, what=f"{more} topics"
            )
    finally:
        operator.kill()
        operator.start()
    user.wait_until_ready(*names)

    assert [2] * MANY == [len(held.cluster.assignment(name)) for name in names]
    assert {"retention.ms": "3600000"} == held.config_of(draw.choice(names))
    assert [["steward.dev/operator"]] * MANY == [topic["metadata"]["finalizers"] for topic in user.listed("topics")]
    assert [] == user.events()


def test_an_operator_killed_while_it_deletes_topics_leaves_none(
    held: Held, user: User, operator: StewardOperator
) -> None:
    """O3, O4: what was deleted while nobody looked is deleted by the next process."""
    names = [f"few-{number}" for number in range(6)]
    user.apply(*(topic_text(name) for name in names))
    user.wait_until_ready(*names)
    try:
        user.kubectl("delete", "topics", *names, "--wait=false")
        wait_until(lambda: not held.topics() >= set(names), timeout_s=PATIENCE_S, what="the first topic gone")
    finally:
        operator.kill()
        operator.start()
    wait_until(lambda: not user.listed("topics"), timeout_s=PATIENCE_S, what="all Topics gone")

    assert set() == held.topics() & set(names)


def test_an_operator_killed_during_a_move_follows_it_to_its_end_and_moves_once(
    held: Held, user: User, operator: StewardOperator
) -> None:
    """O9: killed right after apply and again while it runs; the move ends meanwhile; a finished one is never applied again."""
    on_1_2_3(held, user, "followed", 2)
    plan = {("followed", 0): [4, 2, 3], ("followed", 1): [2, 3, 4]}
    try:
        with throttled(held, "followed", 4):
            user.apply(plan_text("once", plan))
            operator.kill()
            operator.start()
            user.wait_for("reassignments", "once", "False", "Running")
            operator.kill()
        wait_until(
            lambda: held.cluster.assignment("followed") == {0: [4, 2, 3], 1: [2, 3, 4]},
            timeout_s=PATIENCE_S,
            what="the end of the move, with no operator",
        )
    finally:
        operator.kill()
        operator.start()
    user.wait_until_ready("once", kind="reassignments")

    elsewhere = {TopicPartition("followed", 0): [1, 2, 3]}
    KafkaAdminClient(bootstrap_servers=held.cluster.bootstrap()).alter_partition_reassignments(elsewhere)
    operator.kill()
    operator.start()
    user.apply(topic_text("probe"))
    user.wait_until_ready("probe")
    wait_until(lambda: held.cluster.assignment("followed")[0] == [1, 2, 3], timeout_s=PATIENCE_S, what="elsewhere")
    assert "Completed" == user.read("reassignments", "once")["status"]["state"]
    assert 1 == user.events("once").count(("Normal", "Completed"))


def test_a_topic_rests_once_it_is_ready(user: User, operator: StewardOperator) -> None:
    """O1, O7: after the effects no write follows, whatever is looked at, a restart of the operator included."""
    user.apply(topic_text("resting", config={"retention.ms": "3600000"}))
    user.wait_until_ready("resting")
    before = settled(user, "resting")

    operator.stop()
    operator.start()
    user.apply(topic_text("probe"))
    user.wait_until_ready("probe")

    assert before == settled(user, "resting")
