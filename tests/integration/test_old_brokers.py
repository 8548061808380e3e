"""Brokers of inter.broker.protocol.version 2.6: leaders write their ISR themselves, and notify the controller through ZooKeeper."""

import json
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaConnectionError

from lab.checks.traffic import Traffic
from lab.checks.zookeeper_history import DELETED, Write, read_history
from lab.processes.http_get import http_get
from lab.processes.waiting import wait_until
from tests.integration.clusters import create_on, held_cluster, metadata_by
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.faults import controller_session, judge_history, wait_until_converged

pytestmark = pytest.mark.kafka

FREEZES = 3
"""The broker that is frozen for longer than the sessions of the others: its own session lasts."""
SETTINGS = {"replica.lag.time.max.ms": "1500"}
NOTIFICATIONS = f"{CHROOT}/isr_change_notification"


@pytest.fixture(scope="module")
def old() -> Iterator[Held]:
    """Three brokers of 2.6; leave them running."""
    patient = {FREEZES: {"zookeeper.session.timeout.ms": "30000"}}
    with held_cluster((1, 2, 3), inter_broker_protocol_version="2.6", settings=SETTINGS, settings_of=patient) as held:
        yield held


def isr_known_to_the_controller(held: Held, topic: str) -> list[set[int]]:
    """Ask the controller for the ISR of each partition, as it has it in memory."""
    answer = http_get(held.controller.metrics_port, f"/state?topic={topic}")
    assert answer is not None
    return [set(partition["isr"]) for partition in json.loads(answer.body)["partitions"]]


def is_move_requested(held: Held, topic: str, replicas: list[int]) -> bool:
    """Request a move of partition 0; False if the client asked the dead broker for the controller."""
    admin = KafkaAdminClient(bootstrap_servers=held.cluster.broker(2).address())
    try:
        admin.alter_partition_reassignments({TopicPartition(topic, 0): replicas})
    except KafkaConnectionError:
        return False
    finally:
        admin.close()
    return True


def history(held: Held) -> list[Write]:
    """Read all that was ever written."""
    return read_history(held.cluster.zookeeper.process.folder / "zookeeper-data")


def assert_that_only_leaders_wrote_isrs(held: Held) -> None:
    """C6: leaders wrote ISRs, and no other process did; brokers left notifications, and only the controller removed them."""
    states = f"{CHROOT}/brokers/topics/"
    writes, own_session = history(held), controller_session(held)
    isrs = [
        write
        for write in writes
        if write.path.startswith(states) and write.path.endswith("/state") and not write.is_new
    ]
    notifications = [write for write in writes if write.path.startswith(f"{NOTIFICATIONS}/")]

    assert any(isr.session_id != own_session for isr in isrs)
    assert any(notification.is_new for notification in notifications)
    assert {notification.session_id for notification in notifications if notification.data is DELETED} == {own_session}
    assert [notification.path for notification in notifications if notification.is_new] == [
        notification.path for notification in notifications if notification.data is DELETED
    ]


@pytest.mark.shows("C2")
def test_isrs_that_brokers_write_are_read_and_sent_to_brokers(old: Held) -> None:
    """C2, C4, C6, C12, B1 (KafkaController.processIsrChangeNotification): one shrinks, and expands; the notifications are removed.

    Brokers collect notifications for some seconds (IsrChangePropagationConfig: 5 s and 2.5 s).
    """
    create_on(old, "shrunk", [1, 2, 3], [2, 1, 3])
    epochs = [old.state("shrunk", partition)["leader_epoch"] for partition in (0, 1)]
    without = [{1, 2}, {1, 2}]
    frozen = old.cluster.broker(FREEZES)

    with Traffic(old.cluster.bootstrap(), "shrunk", consume=False) as traffic:
        frozen.pause()
        try:
            wait_until(
                lambda: [set(old.state("shrunk", partition)["isr"]) for partition in (0, 1)] == without,
                timeout_s=PATIENCE_S,
                what="ISRs without the frozen one, written by their leaders",
            )
            took_s = wait_until(
                lambda: without == isr_known_to_the_controller(old, "shrunk"),
                timeout_s=PATIENCE_S,
                what="shrunk ISRs known to the controller",
            )
            wait_until(
                lambda: all(
                    without == [set(partition["isr_nodes"]) for partition in metadata_by(old, broker, "shrunk")]
                    for broker in (1, 2)
                ),
                timeout_s=PATIENCE_S,
                what="shrunk ISRs known to the brokers",
            )
        finally:
            frozen.resume()
        print(f"\nshrunk ISRs known {took_s:.1f} s after they were written")  # noqa: T201
        wait_until_converged(old, "a frozen follower's thaw, with brokers of 2.6")
        traffic.wait_for_acks(40)
        report = traffic.stop()

    assert report.ok, report.summary()
    assert epochs == [old.state("shrunk", partition)["leader_epoch"] for partition in (0, 1)]
    assert old.cluster.zookeeper.client.get_children(NOTIFICATIONS) == []
    judge_history(old)
    assert_that_only_leaders_wrote_isrs(old)


def test_a_failover_and_a_move_among_old_brokers(old: Held) -> None:
    """C1, C2, C4, C6, C9, C12, B1: a leader is killed under load; a move to it waits, and ends exactly at its target."""
    create_on(old, "failing", [1, 2, 3], [2, 3, 1], [3, 1, 2])
    create_on(old, "moving", [2, 3])
    target = {0: [3, 1]}
    broker = old.cluster.broker(1)

    with Traffic(old.cluster.bootstrap(), "failing", consume=False) as traffic:
        broker.kill()
        wait_until(lambda: is_move_requested(old, "moving", target[0]), timeout_s=PATIENCE_S, what="a move asked for")
        wait_until(
            lambda: 1 not in old.leaders("failing").values(),
            timeout_s=PATIENCE_S,
            what="leaders other than the dead one",
        )
        traffic.wait_for_acks(40)
        assert set(old.cluster.assignment("moving")[0]) == {1, 2, 3}
        broker.start()
        wait_until_converged(old, "a killed leader's start, with brokers of 2.6")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert target == old.cluster.assignment("moving")
    judge_history(old)
    assert_that_only_leaders_wrote_isrs(old)
