"""`/admin/reassign_partitions` and `/admin/preferred_replica_election`, over a ZooKeeper in memory: watched, done, removed."""

import logging
from collections.abc import AsyncIterator, Sequence

import pytest

from controller_core.model.events import AlterPartition, BrokersRead, IsrChange
from controller_core.shell import state_log
from controller_core.shell.zookeeper import watching as watching_module
from controller_core.shell.zookeeper.watching import Watching
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
    """A tenure over brokers 1, 2 and 3, with a topic of two partitions, that has had its first looks."""
    monkeypatch.setattr(watching_module, "LOOK_AGAIN_S", 0.0)
    term = Term(monkeypatch, 1, 2, 3)
    await term.create("orders", (1, 2), (1, 2))
    Watching(term.controller, term.session, term.store.unreadable).start()
    await settled()
    yield term
    assert not term.controller.has_ended, await term.controller.ended()
    await term.controller.close()


def moves(**targets: Sequence[int]) -> bytes:
    """Write a list of moves: `moves(orders_0=[1, 3])`."""
    asked = {TopicPartition(*tp(name.replace("_", "-"))): tuple(target) for name, target in targets.items()}
    return encode_reassignment(asked)


def elections(*partitions: str) -> bytes:
    """Write a list of elections: `elections("orders-0")`."""
    return encode_preferred_replica_election(tuple(TopicPartition(*tp(partition)) for partition in partitions))


async def all_in_sync(term: Term, partition: str) -> None:
    """The leader takes all replicas into the ISR; brokers that have to delete theirs do."""
    columns, row = term.cluster.columns, term.cluster.row_of(*tp(partition))
    assert row is not None
    leader, epochs = int(columns.leader[row]), (int(columns.leader_epoch[row]), int(columns.partition_epoch[row]))
    wish = IsrChange(tp(partition), epochs[0], columns.replicas_of(row), epochs[1])
    await term.controller.submit(AlterPartition(leader, term.cluster.brokers[leader].epoch, (wish,)))
    await settled()
    term.channels.answer_deletions()
    await settled()


async def led_by_another(term: Term) -> None:
    """Broker 1 was away, and is in sync again: broker 2 leads in its place."""
    two = (term.broker(2), term.broker(3))
    await term.controller.submit(BrokersRead(two))
    await term.controller.submit(BrokersRead((term.broker(1), *two)))
    await all_in_sync(term, "orders-0")
    await all_in_sync(term, "orders-1")


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What was said that somebody should hear."""
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_moves_are_begun_and_taken_out_one_by_one(term: Term) -> None:
    """The list is written as Kafka writes it, and its znode goes with the last of them."""
    term.server.put(MOVES, moves(orders_0=[1, 3], orders_1=[3, 1]))
    await settled()
    assert len(term.cluster.moves) == 2
    await all_in_sync(term, "orders-0")
    assert moves(orders_1=[3, 1]) == term.server.at(MOVES).data
    await all_in_sync(term, "orders-1")

    assert MOVES not in term.server.znodes
    assert term.cluster.columns.replicas_of(0) == (1, 3)


async def test_a_second_list_is_seen_when_the_first_is_done(term: Term) -> None:
    """The watch waits for the znode's coming as well as for its change."""
    for target in ([1, 3], [1, 2]):
        term.server.put(MOVES, moves(orders_0=target))
        await settled()
        await all_in_sync(term, "orders-0")

        assert MOVES not in term.server.znodes
        assert tuple(target) == term.cluster.columns.replicas_of(0)


async def test_moves_that_cannot_be_are_named_and_taken_out(term: Term, caplog: pytest.LogCaptureFixture) -> None:
    """Unknown partitions, and brokers that are not there: each is said once, with the reason."""
    term.server.put(MOVES, moves(ghost_0=[1], orders_0=[1, 9], orders_1=[1, 3]))
    await settled()

    assert moves(orders_1=[1, 3]) == term.server.at(MOVES).data
    assert [(record.topic, record.error) for record in warnings(caplog)] == [
        ("ghost", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("orders", "INVALID_REPLICA_ASSIGNMENT"),
    ]


async def test_preferred_leaders_are_elected_and_the_znode_goes(term: Term, caplog: pytest.LogCaptureFixture) -> None:
    """KafkaController: all of it goes; what could not be elected is said."""
    await led_by_another(term)
    term.server.put(ELECTIONS, elections("orders-0", "ghost-0", "orders-0"))
    await settled()

    assert term.state("orders-0") == (1, 2, (1, 2))
    assert term.state("orders-1")[0] == 2
    assert ELECTIONS not in term.server.znodes
    assert [(record.topic, record.partition, record.error) for record in warnings(caplog)] == [
        ("ghost", 0, "UNKNOWN_TOPIC_OR_PARTITION")
    ]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        *((path, data) for path in (MOVES, ELECTIONS) for data in GARBAGE),
        *((MOVES, data) for data in GARBAGE_OF_MOVES),
    ],
    ids=lambda value: "" if value is None else str(value)[:60],
)
async def test_what_cannot_be_read_is_said_once_with_its_path_and_removed(
    term: Term, caplog: pytest.LogCaptureFixture, path: str, data: bytes | None
) -> None:
    """Bad input: logged once with the path and the reason, removed, nothing else disturbed."""
    sent = len(term.channels.sent)
    term.server.put(path, data)
    await settled()

    assert path not in term.server.znodes
    assert [record.path for record in warnings(caplog)] == [path]
    assert all(record.why for record in warnings(caplog))
    assert sent == len(term.channels.sent)
    assert term.cluster.moves == {}


async def test_a_good_list_after_a_bad_one_is_done(term: Term) -> None:
    """Whoever wrote it tries again."""
    term.server.put(MOVES, b"garbage")
    await settled()
    term.server.put(MOVES, moves(orders_0=[1, 3]))
    await settled()

    assert len(term.cluster.moves) == 1


async def test_garbage_over_a_list_that_runs_disturbs_no_move(term: Term) -> None:
    """The moves that were begun come to their end."""
    term.server.put(MOVES, moves(orders_0=[1, 3]))
    await settled()
    term.server.put(MOVES, b"garbage")
    await settled()
    assert MOVES not in term.server.znodes
    await all_in_sync(term, "orders-0")

    assert term.cluster.columns.replicas_of(0) == (1, 3)


async def test_a_list_that_was_there_before_the_tenure_is_taken_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written while nobody held the cluster: the first look finds it."""
    term = Term(monkeypatch, 1, 2, 3)
    await term.create("orders", (1, 2), (1, 2))
    await led_by_another(term)
    term.server.put(MOVES, moves(orders_1=[1, 3]))
    term.server.put(ELECTIONS, elections("orders-0"))
    Watching(term.controller, term.session, term.store.unreadable).start()
    await settled()

    assert term.state("orders-0")[0] == 1
    assert ELECTIONS not in term.server.znodes
    assert len(term.cluster.moves) == 1
    assert not term.controller.has_ended
    await term.controller.close()


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
@pytest.mark.parametrize("write", range(4))
async def test_a_connection_that_goes_leaves_nothing_behind(term: Term, fault: Fault, write: int) -> None:
    """A watch that ends with the connection says "look again", and what is there is decided on."""
    await led_by_another(term)
    term.server.faults += [None] * write + [fault]  # type: ignore[list-item]
    term.server.put(MOVES, moves(orders_1=[1, 3], ghost_0=[1]))
    term.server.put(ELECTIONS, elections("orders-0"))
    await settled(200)
    term.session.blink()
    await settled(200)
    term.server.faults.clear()
    assert term.state("orders-0")[0] == 1
    await all_in_sync(term, "orders-1")
    term.session.blink()
    await settled(200)

    assert {MOVES, ELECTIONS}.isdisjoint(term.server.znodes)
    assert term.cluster.moves == {}


async def test_a_list_that_changes_under_our_hands_is_not_written_over(term: Term) -> None:
    """The version that was read is the one that is written on; the look that follows begins what was added."""
    other = moves(orders_0=[1, 3], orders_1=[1, 3])
    term.server.put(MOVES, moves(orders_0=[1, 3], ghost_0=[1]))
    term.server.before_writes += [lambda: None, lambda: None, lambda: term.server.put(MOVES, other)]
    await settled(400)

    assert other == term.server.at(MOVES).data
    assert len(term.cluster.moves) == 2


async def test_a_long_list_of_failures_is_summed_up(
    term: Term, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A limit on everything: one line for each up to a bound, and a count."""
    monkeypatch.setattr(state_log, "MAX_LINES_PER_CHANGE", 2)
    term.server.put(ELECTIONS, elections(*(f"ghost-{partition}" for partition in range(5))))
    await settled()

    words = "Requested preferred leader not elected"
    assert [record.getMessage() for record in warnings(caplog)] == [words, words, f"{words}, and more"]
    assert warnings(caplog)[-1].more == 3
