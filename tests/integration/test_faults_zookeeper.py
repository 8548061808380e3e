"""The connection to ZooKeeper breaks at one transaction: it is done without an answer, or it is not done.

Each step of the controller's work is cut once. The work ends as without the fault, clients get the true result, and acknowledged
records are kept. Cuts that cost the session are in test_faults_zookeeper_sessions.
"""

import pytest
from confluent_kafka.cimpl import NewTopic

from lab.checks.traffic import Traffic
from lab.faults.zookeeper_proxy import End
from lab.processes.waiting import wait_until
from tests.effort import in_soak
from tests.integration.conftest import CHROOT, PATIENCE_S
from tests.integration.faults import controller_epoch, controller_session, judge_history, wait_until_converged
from tests.integration.faults_zookeeper import (
    WITNESS,
    Stage,
    contains_a_move,
    creates,
    deletes,
    isr_is,
    led_by_other_than,
    queue_path,
    sets,
    state_path,
    topic_path,
)

pytestmark = pytest.mark.kafka

ENDS = ["done", "not-done"]

either_end = pytest.mark.parametrize("end", [End.DONE, End.NOT_DONE], ids=ENDS)

done_first = pytest.mark.parametrize("end", [End.DONE, *in_soak(End.NOT_DONE)], ids=ENDS)
"""What is not done is repeated alike for all transactions: the tests with `either_end` show it."""


@pytest.fixture
def held(stage: Stage) -> Stage:
    """A cluster whose controller's connection can be cut; leave every broker running."""
    return stage


def logs(held: Stage, topic: str) -> set[str]:
    """List a topic's logs on all brokers; a deleted log is renamed at once."""
    return {str(log) for broker in held.cluster.brokers.values() for log in broker.data_folder.glob(f"{topic}-?")}


@either_end
def test_a_topic_is_created_once_and_its_client_gets_success(held: Stage, end: End) -> None:
    """C5, C6, C12: cut at the topic's znode and at its first states; the answer is success, as the topic is the caller's."""
    topic = f"created-{end.name.lower()}"
    session = controller_session(held)
    held.admin.list_topics(timeout=PATIENCE_S)  # the client knows its controller
    faults = [held.proxy.arm(creates(path), end) for path in (topic_path(topic), state_path(topic))]

    with Traffic(held.cluster.bootstrap(), WITNESS, consume=False) as traffic:
        held.admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(PATIENCE_S)
        for fault in faults:
            fault.wait()
        wait_until_converged(held, f"a creation that was {end.value}")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert sorted(held.cluster.assignment(topic)) == [0, 1, 2]
    assert session == controller_session(held), "a broken connection must not cost controllership"
    judge_history(held)


@done_first
def test_a_move_ends_exactly_at_its_target(held: Stage, end: End) -> None:
    """C9, C4: cut at its start, at the state for the brokers, at the removal of the old replica and at its end."""
    topic = f"moved-{end.name.lower()}"
    held.create(topic, partitions=2, min_insync_replicas="2")
    targets = held.targets(topic)
    steps = [
        sets(topic_path(topic), contains_a_move),
        sets(state_path(topic)),
        sets(state_path(topic), isr_is(*targets[0])),
        sets(topic_path(topic), lambda data: not contains_a_move(data)),
    ]

    with Traffic(held.cluster.bootstrap(), topic, consume=False) as traffic:
        faults = [held.proxy.arm(step, end) for step in steps]
        held.move(topic, targets)
        for fault in faults:
            fault.wait()
        wait_until_converged(held, f"a move whose steps were {end.value}")
        traffic.wait_for_acks(20)
        report = traffic.stop()

    assert report.ok, report.summary()
    assert targets == held.cluster.assignment(topic)
    judge_history(held)


@done_first
def test_a_deletion_leaves_nothing_behind(held: Stage, end: End) -> None:
    """C10: cut when it is queued, at the states below the topic, and at the topic itself; its logs and its name are removed."""
    topic = f"deleted-{end.name.lower()}"
    held.create(topic)
    steps = [creates(queue_path(topic)), deletes(state_path(topic)), deletes(topic_path(topic))]
    faults = [held.proxy.arm(step, end) for step in steps]

    with Traffic(held.cluster.bootstrap(), WITNESS, consume=False) as traffic:
        held.admin.delete_topics([topic], operation_timeout=PATIENCE_S)[topic].result(PATIENCE_S)
        for fault in faults:
            fault.wait()
        wait_until_converged(held, f"a deletion whose steps were {end.value}")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert topic not in held.topics()
    assert held.cluster.zookeeper.read(f"{CHROOT}/config/topics/{topic}") is None
    wait_until(lambda: not logs(held, topic), timeout_s=PATIENCE_S, what=f"no log of {topic}")
    judge_history(held)


@done_first
def test_a_dead_brokers_partitions_get_their_leaders(held: Stage, end: End) -> None:
    """C1, C4, B1: kill -9 under load, and the elections' transaction is cut: every partition gets a live leader."""
    victim = held.leaders(WITNESS)[0]
    broker = held.cluster.broker(victim)
    fault = held.proxy.arm(sets(state_path(WITNESS), led_by_other_than(victim)), end)

    with Traffic(held.cluster.bootstrap(), WITNESS) as traffic:
        broker.kill()
        fault.wait()
        took_s = wait_until(
            lambda: victim not in held.leaders(WITNESS).values(), timeout_s=PATIENCE_S, what="leaders that are alive"
        )
        print(f"\nled again {took_s:.1f} s after an election that was {end.value}")  # noqa: T201
        traffic.wait_for_acks(40)
        broker.start()
        wait_until_converged(held, "its broker was back")
        report = traffic.stop()

    assert report.ok, report.summary()
    judge_history(held)


@either_end
def test_a_controller_election_with_a_lost_answer_is_repeated(held: Stage, end: End) -> None:
    """C5: the election itself is cut: the process has won without knowing, which costs one more epoch; only one controller acts (C6)."""
    before = controller_epoch(held)
    fault = held.proxy.arm(creates(f"{CHROOT}/controller"), end)

    with Traffic(held.cluster.bootstrap(), WITNESS, consume=False) as traffic:
        held.cluster.zookeeper.client.delete(f"{CHROOT}/controller")
        fault.wait()
        wait_until_converged(held, f"a claim of the place that was {end.value}")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert controller_epoch(held) > before
    judge_history(held)
