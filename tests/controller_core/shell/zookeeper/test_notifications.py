"""What brokers tell by sequential znodes is heeded and removed; what cannot be read is removed as well, and named once."""

import logging
from collections.abc import AsyncIterator

import numpy as np
import pytest

from controller_core.model.events import AlterReassignments
from controller_core.model.sends import SendLeaderAndIsr, SendMetadata
from controller_core.shell.zookeeper import notifications as notifications_module
from controller_core.shell.zookeeper import watching as watching_module
from controller_core.shell.zookeeper.watching import ClusterWatcher
from kafka_zookeeper import paths
from kafka_zookeeper.formats.documents import TopicPartition
from kafka_zookeeper.formats.notifications import encode_isr_change, encode_log_dir_event
from tests.controller_core.shell.terms import Term, settled
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core.shell.zookeeper.vocabulary import tp


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """A tenure over brokers 1, 2 and 3 that has had its first looks."""
    monkeypatch.setattr(watching_module, "OVERLOAD_PAUSE_S", 0.0)
    term = Term(monkeypatch, 1, 2, 3)
    ClusterWatcher(term.controller, term.session, term.store.unreadable).start()
    await settled()
    yield term
    assert not term.controller.has_ended, await term.controller.ended()
    await term.controller.close()


def tell_isr(term: Term, number: int, *partitions: str) -> None:
    """A broker leaves a notice that it wrote ISRs."""
    named = tuple(TopicPartition(*tp(partition)) for partition in partitions)
    term.server.put(f"{paths.ISR_CHANGE_PREFIX}{number:010}", encode_isr_change(named))


def notices(term: Term) -> list[str]:
    """What nobody has heeded yet."""
    server = term.server
    return [*server.children(paths.ISR_CHANGE_NOTIFICATION), *server.children(paths.LOG_DIR_EVENT_NOTIFICATION)]


async def test_an_isr_that_a_broker_wrote_is_known_and_told_to_everybody(term: Term) -> None:
    """KafkaController.processIsrChangeNotification: the cache is updated, and UpdateMetadata goes to all brokers."""
    await term.create("orders", (1, 2, 3), (2, 3, 1))
    term.channels.sent.clear()

    term.isr_by("orders-0", (1, 3))
    tell_isr(term, 0, "orders-0", "orders-1")
    await settled()

    assert term.state("orders-0") == (1, 0, (1, 3))
    (told,) = term.channels.sent
    assert isinstance(told, SendMetadata)
    assert ((1, 2, 3), [term.cluster.row_of("orders", 0)]) == (told.brokers, told.rows.tolist())
    assert notices(term) == []


async def test_a_notice_of_what_is_known_tells_nobody(term: Term) -> None:
    """A refused write found it before: brokers were told then."""
    await term.create("orders", (1, 2))
    term.channels.sent.clear()

    tell_isr(term, 0, "orders-0", "never-7")
    await settled()

    assert term.channels.sent == []
    assert notices(term) == []


async def test_a_move_goes_on_when_a_broker_writes_that_its_target_is_in_sync(term: Term) -> None:
    """Brokers of both kinds take part in a rolling upgrade; processIsrChangeNotification completes reassignments, too."""
    await term.create("orders", (1, 2))
    await term.controller.submit(AlterReassignments({tp("orders-0"): (3,)}))

    term.isr_by("orders-0", (1, 2, 3))
    tell_isr(term, 0, "orders-0")
    await settled()

    leader, _, isr = term.state("orders-0")
    assert (leader, isr) == (3, (3,))
    assert {send.broker for send in term.channels.deletions()} == {1, 2}


async def test_a_broker_whose_log_directory_failed_is_told_all_it_holds_under_the_same_epochs(term: Term) -> None:
    """KafkaController.onBrokerLogDirFailure: its answer says which replicas are lost; nobody else hears anything."""
    await term.create("orders", (1, 2), (2, 3), (3, 1))
    term.channels.sent.clear()

    term.server.put(f"{paths.LOG_DIR_EVENT_PREFIX}0000000000", encode_log_dir_event(2))
    term.server.put(f"{paths.LOG_DIR_EVENT_PREFIX}0000000001", encode_log_dir_event(77))
    await settled()

    (told,) = term.channels.sent
    assert isinstance(told, SendLeaderAndIsr)
    assert (told.broker, term.cluster.columns.partition[told.rows].tolist()) == (2, [0, 1])
    assert not np.any(told.is_new)
    assert term.state("orders-0") == (1, 0, (1, 2))
    assert notices(term) == []


@pytest.mark.parametrize(
    "garbage", [None, b"", b"\xff\xfe", b"{", b"[1]", b'{"version":1}', b'{"partitions":[{"topic":3}]}']
)
async def test_garbage_is_named_once_with_path_and_reason_and_removed(
    term: Term, caplog: pytest.LogCaptureFixture, garbage: bytes | None
) -> None:
    """Bad input: nothing else is disturbed; the notices beside it are heeded."""
    await term.create("orders", (1, 2))
    term.isr_by("orders-0", (1,))

    term.server.put(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/by hand", garbage)
    term.server.put(f"{paths.ISR_CHANGE_NOTIFICATION}/by hand", garbage)
    tell_isr(term, 0, "orders-0")
    await settled(200)

    assert term.state("orders-0") == (1, 0, (1,))
    assert notices(term) == []
    named = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert {record.path for record in named} == {
        f"{paths.LOG_DIR_EVENT_NOTIFICATION}/by hand",
        f"{paths.ISR_CHANGE_NOTIFICATION}/by hand",
    }
    assert len(named) == 2
    assert all(record.error for record in named)


async def test_a_notice_with_something_below_it_is_removed(term: Term) -> None:
    """Somebody's hand made it: it must not be looked at for ever."""
    term.server.put(f"{paths.ISR_CHANGE_NOTIFICATION}/deep/er/and deeper")
    await settled()

    assert notices(term) == []


async def test_more_notices_than_one_look_takes_are_all_heeded(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on everything: the removal of the first ones brings the next look."""
    monkeypatch.setattr(notifications_module, "MAX_NOTIFICATIONS_PER_READ", 2)
    await term.create("orders", (1, 2), (1, 2), (1, 2))
    for partition in range(3):
        term.isr_by(f"orders-{partition}", (1,))
    term.session.blink()
    for number in range(7):
        tell_isr(term, number, f"orders-{number % 3}")
    await settled(300)

    assert [term.state(f"orders-{partition}") for partition in range(3)] == [(1, 0, (1,))] * 3
    assert notices(term) == []


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_a_removal_whose_answer_is_lost_is_done_all_the_same(term: Term, fault: Fault) -> None:
    """The connection goes, with the write done or not: what was told is told twice at most, which does no harm."""
    await term.create("orders", (1, 2))
    term.isr_by("orders-0", (1,))
    term.server.faults.append(fault)
    tell_isr(term, 0, "orders-0")
    await settled()

    assert term.state("orders-0") == (1, 0, (1,))
    assert notices(term) == []
