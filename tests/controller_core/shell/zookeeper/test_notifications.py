"""Notifications of ISR changes and failed log directories: processed and removed; those that cannot be decoded are logged once."""

import logging

import numpy as np
import pytest

from controller_core.model.decision import SendLeaderAndIsr, SendMetadata
from controller_core.model.events import AlterReassignments
from controller_core.shell.zookeeper import notifications as notifications_module
from kafka_zookeeper import paths
from kafka_zookeeper.formats.documents import TopicPartition
from kafka_zookeeper.formats.notifications import encode_isr_change, encode_log_dir_event
from tests.controller_core.shell.terms import Term, settled
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core.shell.zookeeper.vocabulary import tp


def notify_isr_change(term: Term, number: int, *partitions: str) -> None:
    """A broker notifies the controller that it wrote ISRs."""
    named = tuple(TopicPartition(*tp(partition)) for partition in partitions)
    term.server.put(f"{paths.ISR_CHANGE_PREFIX}{number:010}", encode_isr_change(named))


def unprocessed(term: Term) -> list[str]:
    """Notifications that are still there."""
    server = term.server
    return [*server.children(paths.ISR_CHANGE_NOTIFICATION), *server.children(paths.LOG_DIR_EVENT_NOTIFICATION)]


async def test_an_isr_written_by_a_broker_is_sent_to_all_brokers(term: Term) -> None:
    """KafkaController.processIsrChangeNotification: the cache is updated, and all brokers get UpdateMetadata."""
    await term.create("orders", (1, 2, 3), (2, 3, 1))
    term.channels.sent.clear()

    term.isr_by("orders-0", (1, 3))
    notify_isr_change(term, 0, "orders-0", "orders-1")
    await settled()

    assert term.state("orders-0") == (1, 0, (1, 3))
    (send,) = term.channels.sent
    assert isinstance(send, SendMetadata)
    assert (send.brokers, send.rows.tolist()) == ((1, 2, 3), [term.cluster.row_of("orders", 0)])
    assert unprocessed(term) == []


async def test_a_notification_of_known_states_sends_nothing(term: Term) -> None:
    """A refused write found the states before, and they were sent then."""
    await term.create("orders", (1, 2))
    term.channels.sent.clear()

    notify_isr_change(term, 0, "orders-0", "never-7")
    await settled()

    assert term.channels.sent == []
    assert unprocessed(term) == []


async def test_a_move_continues_when_a_broker_writes_an_isr_with_its_target(term: Term) -> None:
    """During a rolling upgrade some brokers write ISRs themselves; processIsrChangeNotification also completes reassignments."""
    await term.create("orders", (1, 2))
    await term.controller.submit(AlterReassignments({tp("orders-0"): (3,)}))

    term.isr_by("orders-0", (1, 2, 3))
    notify_isr_change(term, 0, "orders-0")
    await settled()

    leader, _, isr = term.state("orders-0")
    assert (leader, isr) == (3, (3,))
    assert {send.broker for send in term.channels.deletions()} == {1, 2}


async def test_a_broker_with_a_failed_log_directory_gets_its_partitions_with_unchanged_epochs(term: Term) -> None:
    """KafkaController.onBrokerLogDirFailure: its answer reports the offline replicas; no other broker gets a request."""
    await term.create("orders", (1, 2), (2, 3), (3, 1))
    term.channels.sent.clear()

    term.server.put(f"{paths.LOG_DIR_EVENT_PREFIX}0000000000", encode_log_dir_event(2))
    term.server.put(f"{paths.LOG_DIR_EVENT_PREFIX}0000000001", encode_log_dir_event(77))
    await settled()

    (send,) = term.channels.sent
    assert isinstance(send, SendLeaderAndIsr)
    assert (send.broker, term.cluster.columns.partition[send.rows].tolist()) == (2, [0, 1])
    assert not np.any(send.is_new)
    assert term.state("orders-0") == (1, 0, (1, 2))
    assert unprocessed(term) == []


@pytest.mark.parametrize(
    "garbage", [None, b"", b"\xff\xfe", b"{", b"[1]", b'{"version":1}', b'{"partitions":[{"topic":3}]}']
)
async def test_a_garbage_notification_is_logged_once_and_removed(
    term: Term, caplog: pytest.LogCaptureFixture, garbage: bytes | None
) -> None:
    """With its path and the reason. The other notifications are processed."""
    await term.create("orders", (1, 2))
    term.isr_by("orders-0", (1,))

    term.server.put(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/garbage", garbage)
    term.server.put(f"{paths.ISR_CHANGE_NOTIFICATION}/garbage", garbage)
    notify_isr_change(term, 0, "orders-0")
    await settled(200)

    assert term.state("orders-0") == (1, 0, (1,))
    assert unprocessed(term) == []
    named = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert {vars(record)["path"] for record in named} == {
        f"{paths.LOG_DIR_EVENT_NOTIFICATION}/garbage",
        f"{paths.ISR_CHANGE_NOTIFICATION}/garbage",
    }
    assert len(named) == 2
    assert all(vars(record)["error"] for record in named)


async def test_a_notification_with_children_is_removed(term: Term) -> None:
    """An administrator created it: it must not be read again and again."""
    term.server.put(f"{paths.ISR_CHANGE_NOTIFICATION}/deep/er/and deeper")
    await settled()

    assert unprocessed(term) == []


async def test_more_notifications_than_one_read_takes_are_all_processed(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal of the first ones causes the next read."""
    monkeypatch.setattr(notifications_module, "MAX_NOTIFICATIONS_PER_READ", 2)
    await term.create("orders", (1, 2), (1, 2), (1, 2))
    for partition in range(3):
        term.isr_by(f"orders-{partition}", (1,))
    term.session.lose_connection()
    for number in range(7):
        notify_isr_change(term, number, f"orders-{number % 3}")
    await settled(300)

    assert [term.state(f"orders-{partition}") for partition in range(3)] == [(1, 0, (1,))] * 3
    assert unprocessed(term) == []


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_a_removal_whose_answer_is_lost_is_completed(term: Term, fault: Fault) -> None:
    """Whether the write was done or not: at worst brokers get the state twice, which does no harm."""
    await term.create("orders", (1, 2))
    term.isr_by("orders-0", (1,))
    term.server.faults.append(fault)
    notify_isr_change(term, 0, "orders-0")
    await settled()

    assert term.state("orders-0") == (1, 0, (1,))
    assert unprocessed(term) == []
