"""The controller loses its session or its controllership, or ZooKeeper restarts, in the middle of work.

A broker takes over and continues the work; the former controller detects that, writes nothing more under its old epoch, and takes over
under a new one. The history of ZooKeeper is checked after each test for every write.
"""

from contextlib import suppress

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewTopic
from kazoo.exceptions import ConnectionLoss, SessionExpiredError

from lab.checks.traffic import Traffic
from lab.faults.zookeeper_proxy import End
from lab.faults.zookeeper_sessions import end_session
from lab.processes.waiting import wait_until
from tests.integration.conftest import BROKERS, CHROOT, PATIENCE_S
from tests.integration.faults import (
    controller_epoch,
    controller_session,
    is_queued_for_deletion,
    judge_history,
    wait_until_converged,
)
from tests.integration.faults_zookeeper import WITNESS, Stage, creates, topic_path

pytestmark = pytest.mark.kafka

ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"


@pytest.fixture
def held(stage: Stage) -> Stage:
    """A cluster whose controller's sessions can end; leave every broker running."""
    return stage


def broker_sessions(held: Stage) -> dict[int, int]:
    """Read the sessions of the brokers that are registered: on a busy machine one may be between two sessions."""
    client = held.cluster.zookeeper.client
    found = {broker: client.exists(f"{CHROOT}/brokers/ids/{broker}") for broker in BROKERS}
    return {broker: stat.ephemeralOwner for broker, stat in found.items() if stat is not None}


def have_new_sessions(held: Stage, before: dict[int, int]) -> bool:
    """Whether every broker is registered under another session than before; the test's session may have ended with theirs."""
    try:
        now = broker_sessions(held)
    except (ConnectionLoss, SessionExpiredError):
        return False
    return now.keys() == set(BROKERS) and all(now[broker] != before.get(broker) for broker in now)


def test_a_session_that_ends_at_rest_is_followed_by_another(held: Stage) -> None:
    """C5, C6: the process goes on, and wins the election under a new session and a greater epoch."""
    before, session, pid = controller_epoch(held), controller_session(held), held.controller.process.pid

    with Traffic(held.cluster.bootstrap(), WITNESS, consume=False) as traffic:
        end_session(held.cluster.zookeeper.port, session)
        wait_until_converged(held, "the end of a session at rest")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert controller_epoch(held) > before
    assert controller_session(held) not in {0, session}
    assert held.controller.process.running
    assert pid == held.controller.process.pid
    judge_history(held)


@pytest.mark.soak("integration/test_faults_zookeeper_sessions.py::test_a_frozen_controller_finds_another_controller")
def test_a_session_that_expires_in_a_black_hole_leaves_moves_to_a_broker(held: Stage) -> None:
    """C5, C6, C9: nothing passes until a native controller is active; then Steward takes over again, and the moves end."""
    before = controller_epoch(held)

    with Traffic(held.cluster.bootstrap(), WITNESS, consume=False) as traffic:
        with held.with_running_moves("halfway") as targets:
            with held.proxy.holding():
                native = held.wait_until_native()
                native_epoch = controller_epoch(held)
                traffic.wait_for_acks(20)
            held.wait_until_held()
        wait_until_converged(held, "the return from a black hole and the end of a throttle")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert native in BROKERS
    assert before < native_epoch < controller_epoch(held)
    assert targets == held.cluster.assignment("halfway")
    judge_history(held)


@pytest.mark.shows("C6")
def test_a_deposed_controllers_late_transaction_is_refused(held: Stage) -> None:
    """C5, C6, C10: its session lasts, a rival is the controller, and an earlier transaction arrives: only the fence refuses it.

    Moves are running and a deletion waits for one; the rival and the next Steward controller continue both.
    """
    before = controller_epoch(held)
    session = controller_session(held)

    with Traffic(held.cluster.bootstrap(), WITNESS, consume=False) as traffic:
        with held.with_running_moves("moving", "deleted") as targets:
            held.admin.delete_topics(["deleted"], operation_timeout=1)
            wait_until(lambda: is_queued_for_deletion(held, "deleted"), timeout_s=PATIENCE_S, what="a deletion")
            late = held.proxy.arm(creates(topic_path("late")), End.HELD)
            asked = held.admin.create_topics([NewTopic("late", 1, 3)])["late"]
            late.wait()
            held.cluster.zookeeper.client.delete(f"{CHROOT}/controller")
            held.wait_until_native()
            lived = session in {int(line, 16) for line in open_sessions(held)}
            held.proxy.release()
            held.wait_until_held()
            assert is_queued_for_deletion(held, "deleted"), "deleted while it moved"
        wait_until_converged(held, "a rival in the place and the end of a throttle")
        report = traffic.stop()
        with suppress(KafkaException):
            asked.result(PATIENCE_S)  # the answer of either controller: not the controller, or done

    assert report.ok, report.summary()
    assert lived, "the session must last, or ZooKeeper itself would refuse the late transaction"
    assert controller_epoch(held) >= before + 2
    assert targets == held.cluster.assignment("moving")
    assert "deleted" not in held.topics()
    judge_history(held)


def test_a_frozen_controller_finds_another_controller(held: Stage) -> None:
    """C5, C6, C9: SIGSTOP past its session with a transaction in flight; a broker ends its moves; after SIGCONT it starts again as a standby."""
    before, pid = controller_epoch(held), held.controller.process.pid

    with Traffic(held.cluster.bootstrap(), WITNESS, consume=False) as traffic:
        with held.with_running_moves("frozen") as targets:
            stale = held.proxy.arm(creates(topic_path("stale")), End.HELD)
            held.admin.create_topics([NewTopic("stale", 1, 3)])
            stale.wait()
            held.controller.pause()
            try:
                held.wait_until_native()
                native_epoch = controller_epoch(held)
                held.proxy.release()
                traffic.wait_for_acks(20)
            finally:
                held.proxy.release()
                held.controller.resume()
            held.wait_until_held()
        wait_until_converged(held, "a thaw and the end of a throttle")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert before < native_epoch < controller_epoch(held)
    assert (1.0, pid) == (held.controller.metric(ACTIVE), held.controller.process.pid)
    assert targets == held.cluster.assignment("frozen")
    judge_history(held)


def test_a_restart_of_zookeeper_that_keeps_sessions_keeps_the_term(held: Stage) -> None:
    """C5: stop and start with the same data, in the middle of moves: the same sessions, the same epoch, and the moves end."""
    before, session = controller_epoch(held), controller_session(held)

    with Traffic(held.cluster.bootstrap(), WITNESS, consume=False) as traffic:
        with held.with_running_moves("kept") as targets:
            held.cluster.zookeeper.restart()
        wait_until_converged(held, "a restart of ZooKeeper that kept sessions")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert (before, session) == (controller_epoch(held), controller_session(held))
    assert targets == held.cluster.assignment("kept")
    judge_history(held)


def test_a_restart_of_zookeeper_that_loses_every_session_loses_nothing(held: Stage) -> None:
    """C1, C5, C12, B1: ZooKeeper drops brokers and controller at once, and all come back to the written state."""
    before, session, others = controller_epoch(held), controller_session(held), broker_sessions(held)

    with Traffic(held.cluster.bootstrap(), WITNESS) as traffic:
        with held.with_running_moves("lost") as targets:
            held.cluster.zookeeper.restart()
            for session_ in (session, *others.values()):
                end_session(held.cluster.zookeeper.port, session_)
            wait_until(
                lambda: have_new_sessions(held, others),
                timeout_s=2 * PATIENCE_S,
                what="every broker under a new session",
            )
            held.wait_until_held()
        wait_until_converged(held, "a restart of ZooKeeper that lost every session")
        traffic.wait_for_acks(40)
        report = traffic.stop()

    assert report.ok, report.summary()
    assert controller_epoch(held) > before
    assert controller_session(held) != session
    assert targets == held.cluster.assignment("lost")
    judge_history(held)


def open_sessions(held: Stage) -> list[str]:
    """List the sessions that ZooKeeper has, in hexadecimal."""
    lines = held.cluster.zookeeper.four_letters("dump").splitlines()
    return [line.strip().rstrip(":") for line in lines if line.strip().startswith("0x")]
