"""Requests in `/admin/reassign_partitions` and `/admin/preferred_replica_election`: watched, executed and removed."""

import logging
from collections.abc import AsyncIterator, Sequence

import pytest

from controller_core.model.events import AlterPartition, IsrChange
from controller_core.model.zookeeper_events import BrokersRead
from controller_core.shell import state_log
from controller_core.shell.zookeeper import watching as watching_module
from controller_core.shell.zookeeper.watching import ClusterWatcher
from kafka_zookeeper import paths
from kafka_zookeeper.formats.admin import encode_preferred_replica_election, encode_reassignment
from kafka_zookeeper.formats.documents import TopicPartition
from tests.controller_core.shell.terms import Term, settled
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core.shell.zookeeper.vocabulary import tp

MOVES, ELECTIONS = paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION
GARBAGE = [
    *(None, b"", b" ", b"\x00\xff", b"move it", b"[]", b"7", b"null", b'"x"', b"{}", b'{"partitions":{}}'),
    *(b'{"partitions":[7]}', b'{"partitions":[{}]}', b'{"partitions":[{"topic":"orders"}]}', b"[" * 100_000),
    b'{"partitions":[{"topic":7,"partition":0,"replicas":[1]}]}',
    b'{"partitions":[{"topic":"orders","partition":"0","replicas":[1]}]}',
    b'{"partitions":[{"topic":"orders","partition":-1,"replicas":[1]}]}',
]
GARBAGE_OF_MOVES = [
    *(b'{"version":1,"partitions":[],"more":1}', b'{"partitions":[{"topic":"orders","partition":0}]}'),
    b'{"partitions":[{"topic":"orders","partition":0,"replicas":"1,2"}]}',
    b'{"partitions":[{"topic":"orders","partition":0,"replicas":[-1]}]}',
    b'{"partitions":[{"topic":"orders","partition":0,"replicas":[1.5]}]}',
    b'{"partitions":[{"topic":"orders","partition":0,"replicas":[99999999999]}]}',
]


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """An active term with brokers 1, 2 and 3 and a topic of two partitions, after the first reads."""
    monkeypatch.setattr(watching_module, "OVERLOAD_PAUSE_S", 0.0)
    term = Term(monkeypatch, 1, 2, 3)
    await term.create("orders", (1, 2), (1, 2))
    ClusterWatcher(term.controller, term.session, term.store.versions, term.store.unreadable).start()
    await settled()
    yield term
    assert not term.controller.has_ended, await term.controller.ended()
    await term.controller.close()


def moves(**targets: Sequence[int]) -> bytes:
    """Encode a list of moves: `moves(orders_0=[1, 3])`."""
    targets_by_name = {TopicPartition(*tp(name.replace("_", "-"))): tuple(target) for name, target in targets.items()}
    return encode_reassignment(targets_by_name)


def elections(*partitions: str) -> bytes:
    """Encode a list of elections: `elections("orders-0")`."""
    return encode_preferred_replica_election(tuple(TopicPartition(*tp(partition)) for partition in partitions))


async def all_in_sync(term: Term, partition: str) -> None:
    """The leader adds all replicas to the ISR, and brokers complete their deletions."""
    columns, row = term.cluster.columns, term.cluster.row_of(*tp(partition))
    assert row is not None
    leader, epochs = int(columns.leader[row]), (int(columns.leader_epoch[row]), int(columns.partition_epoch[row]))
    change = IsrChange(tp(partition), epochs[0], columns.replicas_of(row), epochs[1])
    await term.controller.submit(AlterPartition(leader, term.cluster.brokers[leader].epoch, (change,)))
    await settled()
    term.channels.answer_deletions()
    await settled()


async def led_by_another(term: Term) -> None:
    """Broker 1 failed and is in sync again: broker 2 is the leader."""
    two = (term.broker(2), term.broker(3))
    await term.controller.submit(BrokersRead(two))
    await term.controller.submit(BrokersRead((term.broker(1), *two)))
    await all_in_sync(term, "orders-0")
    await all_in_sync(term, "orders-1")


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Log records of level WARNING and above."""
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_moves_are_started_and_removed_one_by_one(term: Term) -> None:
    """The list is written as Kafka writes it, and its znode is deleted with the last move."""
    term.server.put(MOVES, moves(orders_0=[1, 3], orders_1=[3, 1]))
    await settled()
    assert len(term.cluster.moves) == 2
    await all_in_sync(term, "orders-0")
    assert term.server.at(MOVES).data == moves(orders_1=[3, 1])
    await all_in_sync(term, "orders-1")

    assert MOVES not in term.server.znodes
    assert term.cluster.columns.replicas_of(0) == (1, 3)


async def test_a_second_list_is_read_when_the_first_is_done(term: Term) -> None:
    """The watch also reports the creation of the znode."""
    for target in ([1, 3], [1, 2]):
        term.server.put(MOVES, moves(orders_0=target))
        await settled()
        await all_in_sync(term, "orders-0")

        assert MOVES not in term.server.znodes
        assert term.cluster.columns.replicas_of(0) == tuple(target)


async def test_invalid_moves_are_logged_and_removed(term: Term, caplog: pytest.LogCaptureFixture) -> None:
    """Unknown partitions and brokers: each is logged once, with the reason."""
    term.server.put(MOVES, moves(ghost_0=[1], orders_0=[1, 9], orders_1=[1, 3]))
    await settled()

    assert term.server.at(MOVES).data == moves(orders_1=[1, 3])
    assert [(vars(record)["topic"], vars(record)["error"]) for record in warnings(caplog)] == [
        ("ghost", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("orders", "INVALID_REPLICA_ASSIGNMENT"),
    ]


async def test_preferred_leaders_are_elected_and_the_znode_is_deleted(
    term: Term, caplog: pytest.LogCaptureFixture
) -> None:
    """KafkaController: the whole list is deleted; failed elections are logged."""
    await led_by_another(term)
    term.server.put(ELECTIONS, elections("orders-0", "ghost-0", "orders-0"))
    await settled()

    assert term.state("orders-0") == (1, 2, (1, 2))
    assert term.state("orders-1")[0] == 2
    assert ELECTIONS not in term.server.znodes
    assert [
        (vars(record)["topic"], vars(record)["partition"], vars(record)["error"]) for record in warnings(caplog)
    ] == [("ghost", 0, "UNKNOWN_TOPIC_OR_PARTITION")]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        *((path, data) for path in (MOVES, ELECTIONS) for data in GARBAGE),
        *((MOVES, data) for data in GARBAGE_OF_MOVES),
    ],
    ids=lambda value: "" if value is None else str(value)[:60],
)
async def test_a_request_that_cannot_be_decoded_is_logged_once_and_removed(
    term: Term, caplog: pytest.LogCaptureFixture, path: str, data: bytes | None
) -> None:
    """Bad input is logged with its path and the reason, and affects nothing else."""
    sent = len(term.channels.sent)
    term.server.put(path, data)
    await settled()

    assert path not in term.server.znodes
    assert [vars(record)["path"] for record in warnings(caplog)] == [path]
    assert all(vars(record)["error"] for record in warnings(caplog))
    assert len(term.channels.sent) == sent
    assert term.cluster.moves == {}


async def test_a_valid_list_after_an_invalid_one_is_executed(term: Term) -> None:
    """The tool was called again."""
    term.server.put(MOVES, b"garbage")
    await settled()
    term.server.put(MOVES, moves(orders_0=[1, 3]))
    await settled()

    assert len(term.cluster.moves) == 1


async def test_garbage_written_over_a_list_stops_no_running_move(term: Term) -> None:
    """Moves that were started are completed."""
    term.server.put(MOVES, moves(orders_0=[1, 3]))
    await settled()
    term.server.put(MOVES, b"garbage")
    await settled()
    assert MOVES not in term.server.znodes
    await all_in_sync(term, "orders-0")

    assert term.cluster.columns.replicas_of(0) == (1, 3)


async def test_a_list_written_before_the_active_term_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first read of the term finds it."""
    term = Term(monkeypatch, 1, 2, 3)
    await term.create("orders", (1, 2), (1, 2))
    await led_by_another(term)
    term.server.put(MOVES, moves(orders_1=[1, 3]))
    term.server.put(ELECTIONS, elections("orders-0"))
    ClusterWatcher(term.controller, term.session, term.store.versions, term.store.unreadable).start()
    await settled()

    assert term.state("orders-0")[0] == 1
    assert ELECTIONS not in term.server.znodes
    assert len(term.cluster.moves) == 1
    assert not term.controller.has_ended
    await term.controller.close()


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
@pytest.mark.parametrize("write", range(4))
async def test_a_lost_connection_leaves_no_request_behind(term: Term, fault: Fault, write: int) -> None:
    """A watch that ends with the connection causes another read and a new decision."""
    await led_by_another(term)
    term.server.faults += [None] * write + [fault]
    term.server.put(MOVES, moves(orders_1=[1, 3], ghost_0=[1]))
    term.server.put(ELECTIONS, elections("orders-0"))
    await settled(200)
    term.session.lose_connection()
    await settled(200)
    term.server.faults.clear()
    assert term.state("orders-0")[0] == 1
    await all_in_sync(term, "orders-1")
    term.session.lose_connection()
    await settled(200)

    assert {MOVES, ELECTIONS}.isdisjoint(term.server.znodes)
    assert term.cluster.moves == {}


async def test_a_list_that_changed_in_the_meantime_is_not_overwritten(term: Term) -> None:
    """The write names the version that was read; the next read starts the added moves."""
    other = moves(orders_0=[1, 3], orders_1=[1, 3])
    term.server.put(MOVES, moves(orders_0=[1, 3], ghost_0=[1]))
    term.server.before_writes += [lambda: None, lambda: None, lambda: term.server.put(MOVES, other)]
    await settled(400)

    assert term.server.at(MOVES).data == other
    assert len(term.cluster.moves) == 2


async def test_a_long_list_of_failures_is_summarised(
    term: Term, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One log line for each failure up to a limit, then a count."""
    monkeypatch.setattr(state_log, "MAX_LINES_PER_CHANGE", 2)
    term.server.put(ELECTIONS, elections(*(f"ghost-{partition}" for partition in range(5))))
    await settled()

    message = "Requested preferred leader not elected"
    assert [record.getMessage() for record in warnings(caplog)] == [message, message, f"{message}, and more"]
    assert vars(warnings(caplog)[-1])["more"] == 3
