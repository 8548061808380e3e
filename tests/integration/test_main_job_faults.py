"""The main job under failures: of a leader, of the controller, and of the operator at every stage of its work."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kafka import KafkaAdminClient, TopicPartition

from lab.checks.traffic import Traffic
from lab.peers.kafka import KafkaBroker
from lab.peers.steward import StewardOperator, StewardProcess
from lab.processes.waiting import wait_until
from tests.integration.conftest import BROKERS, PATIENCE_S, Held
from tests.integration.kubernetes import User, plan_text, topic_text
from tests.integration.moves import on_1_2_3, throttled

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes]

MANY = 40
KILLS = 4


@contextmanager
def killed(peer: KafkaBroker | StewardProcess) -> Iterator[None]:
    """Kill -9, and restart at the end of the block in any case: other tests need the process."""
    peer.kill()
    try:
        yield
    finally:
        peer.start()


def settled(user: User, *names: str) -> list[object]:
    """Resource versions of some Topics: they stay the same as long as the operator writes nothing."""
    return [user.read("topics", name) for name in names]


def wait_until_native(held: Held) -> None:
    """Wait until a broker has replaced the controller."""
    wait_until(
        lambda: held.cluster.controller_id() in held.cluster.brokers, timeout_s=PATIENCE_S, what="a native controller"
    )


def test_a_killed_leader_does_not_affect_declared_resources(held: Held, user: User) -> None:
    """B1: kill -9 under load; other leaders, no acknowledged record is lost; the Topic stays Ready, the Cluster's status is correct."""
    user.apply(topic_text("steady", 3, config={"min.insync.replicas": "2"}))
    user.wait_until_ready("steady")
    victim = held.leaders("steady")[0]
    before = settled(user, "steady")

    with Traffic(held.cluster.bootstrap(), "steady") as traffic:
        with killed(held.cluster.broker(victim)):
            wait_until(
                lambda: victim not in held.leaders("steady").values(),
                timeout_s=PATIENCE_S,
                what="leaders that are alive",
            )
            alive = [broker for broker in BROKERS if broker != victim]
            wait_until(
                lambda: user.read("clusters", "main")["status"]["brokerIds"] == alive,
                timeout_s=PATIENCE_S,
                what="three brokers in the Cluster's status",
            )
            user.apply(topic_text("new", 3))
            user.wait_until_ready("new")
            without = held.cluster.assignment("new")
            traffic.wait_for_acks(40)
        held.wait_until_all_are_back("steady")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert all(victim not in replicas for replicas in without.values())
    assert before == settled(user, "steady")


def test_the_operator_is_not_affected_by_a_change_of_controllers(held: Held, user: User) -> None:
    """Kill -9 of Steward's controller, a native broker takes over, Steward's comes back: Topics become Ready under each, without an error."""
    user.apply(topic_text("before", 2))
    user.wait_until_ready("before")
    before = settled(user, "before")

    with killed(held.controller):
        user.apply(topic_text("orphan", 2))  # without a controller
        wait_until_native(held)
        user.wait_until_ready("orphan")
        user.apply(topic_text("native", 2), topic_text("orphan", 3))
        user.wait_until_ready("native", "orphan")
        native = held.cluster.controller_id()
    held.wait_until_held()
    user.apply(topic_text("back", 2), topic_text("native", 3))
    user.wait_until_ready("back", "native")
    user.wait_until_ready("main", kind="clusters")

    assert native in held.cluster.brokers
    assert {name: len(held.cluster.assignment(name)) for name in ("before", "orphan", "native", "back")} == {
        "before": 2,
        "orphan": 3,
        "native": 3,
        "back": 2,
    }
    assert before == settled(user, "before")
    assert user.events() == []


@pytest.mark.soak(
    "kafka_operator/end_to_end/test_end_to_end.py::test_an_operator_killed_while_it_creates_many_topics_converges"
)
@pytest.mark.shows("O3")
def test_an_operator_killed_while_it_creates_topics_ends_with_all_of_them(
    held: Held, user: User, operator: StewardOperator
) -> None:
    """O2, O3: kill -9 whenever some more topics exist; in the end all exist, each once and as declared, and nothing more is written (O1)."""
    names = [f"many-{number:02}" for number in range(MANY)]
    draw = random.Random(3)
    user.apply(*(topic_text(name, 2, config={"retention.ms": "3600000"}) for name in names))
    for _ in range(KILLS):
        more = min(MANY, len(held.topics() & set(names)) + draw.randint(0, MANY // KILLS))
        wait_until(
            lambda more=more: len(held.topics() & set(names)) >= more, timeout_s=PATIENCE_S, what=f"{more} topics"
        )
        with killed(operator):
            made = held.topics() & set(names)
            assert {2} >= {len(held.cluster.assignment(name)) for name in made}
    user.wait_until_ready(*names)

    assert [len(held.cluster.assignment(name)) for name in names] == [2] * MANY
    assert held.config_of(draw.choice(names)) == {"retention.ms": "3600000"}
    assert [topic["metadata"]["finalizers"] for topic in user.listed("topics")] == [["steward.dev/operator"]] * MANY
    assert user.events() == []


@pytest.mark.soak("kafka_operator/engine/test_crash_anywhere.py::test_killed_at_any_call_the_end_is_the_same")
@pytest.mark.shows("O4")
def test_an_operator_killed_while_it_deletes_topics_leaves_none(
    held: Held, user: User, operator: StewardOperator
) -> None:
    """O3, O4: resources that are deleted while no operator runs are handled by the next process."""
    names = [f"few-{number}" for number in range(6)]
    last = "deleted-unseen"
    user.apply(*(topic_text(name) for name in (*names, last)))
    user.wait_until_ready(*names, last)
    user.kubectl("delete", "topics", *names, "--wait=false")
    wait_until(lambda: not held.topics() >= set(names), timeout_s=PATIENCE_S, what="the first topic deleted")
    with killed(operator):
        user.kubectl("delete", "topics", last, "--wait=false")
    wait_until(lambda: not user.listed("topics"), timeout_s=PATIENCE_S, what="all Topics deleted")

    assert held.topics() & {*names, last} == set()


@pytest.mark.soak(
    "kafka_operator/end_to_end/test_end_to_end.py::test_a_running_reassignment_survives_a_kill_refuses_an_overlap_and_is_cancelled"
)
@pytest.mark.shows("E3", "O9", "F19")
def test_an_operator_killed_during_a_move_follows_it_to_its_end_and_moves_once(
    held: Held, user: User, operator: StewardOperator
) -> None:
    """O9: killed right after apply and again while it runs; the move ends in the meantime; a finished plan is never applied again."""
    on_1_2_3(held, user, "followed", 2)
    plan = {("followed", 0): [4, 2, 3], ("followed", 1): [2, 3, 4]}
    with throttled(held, "followed", 4):
        user.apply(plan_text("once", plan))
        with killed(operator):
            pass  # at any point of its work
        user.wait_for("reassignments", "once", "False", "Running")
        operator.kill()
    with killed(operator):
        wait_until(
            lambda: held.cluster.assignment("followed") == {0: [4, 2, 3], 1: [2, 3, 4]},
            timeout_s=PATIENCE_S,
            what="the end of the move, with no operator",
        )
    user.wait_until_ready("once", kind="reassignments")
    # The event comes a moment after the status: an operator that is killed in between has not posted it.
    wait_until(lambda: completions(user, "once") == 1, timeout_s=PATIENCE_S, what="the event about the end")

    elsewhere = {TopicPartition("followed", 0): [1, 2, 3]}
    KafkaAdminClient(bootstrap_servers=held.cluster.bootstrap()).alter_partition_reassignments(elsewhere)
    with killed(operator):
        pass  # it starts with a full resync
    user.apply(topic_text("probe"))
    user.wait_until_ready("probe")
    wait_until(lambda: held.cluster.assignment("followed")[0] == [1, 2, 3], timeout_s=PATIENCE_S, what="elsewhere")
    assert user.read("reassignments", "once")["status"]["state"] == "Completed"
    assert completions(user, "once") == 1


def completions(user: User, name: str) -> int:
    """Return how often an event was posted that a Reassignment is completed."""
    return user.events(name).count(("Normal", "Completed"))


def test_a_move_goes_on_under_every_controller(held: Held, user: User) -> None:
    """C9 over a change of controllers and back: started by Steward's, continued by a native broker, ended by Steward's; no error is reported."""
    on_1_2_3(held, user, "passed-on", 2)
    with throttled(held, "passed-on", 4):
        user.apply(plan_text("passed-on", {("passed-on", 0): [4, 2, 3], ("passed-on", 1): [4, 3, 1]}))
        user.wait_for("reassignments", "passed-on", "False", "Running")
        with killed(held.controller):
            wait_until_native(held)
        held.wait_until_held()
        during = held.cluster.assignment("passed-on")
    user.wait_until_ready("passed-on", kind="reassignments")

    assert [set(replicas) for replicas in during.values()] == [{1, 2, 3, 4}] * 2
    assert held.cluster.assignment("passed-on") == {0: [4, 2, 3], 1: [4, 3, 1]}
    assert "Warning" not in {kind for kind, _ in user.events()}


@pytest.mark.shows("O1", "O7")
def test_nothing_is_written_for_a_ready_topic(user: User, operator: StewardOperator) -> None:
    """O1, O7: after the effects no write follows, whatever is polled, including a restart of the operator."""
    user.apply(topic_text("resting", config={"retention.ms": "3600000"}))
    user.wait_until_ready("resting")
    before = settled(user, "resting")

    operator.stop()
    operator.start()
    user.apply(topic_text("probe"))
    user.wait_until_ready("probe")

    assert before == settled(user, "resting")
