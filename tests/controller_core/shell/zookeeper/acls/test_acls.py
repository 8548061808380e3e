"""ACLs in ZooKeeper: what brokers write is followed, what we write brokers hear of (AclAuthorizer, KIP-290)."""

import logging

import pytest

from controller_core.shell.zookeeper import acls as keeper_module
from controller_core.shell.zookeeper.acls import (
    LOCKED,
    MAX_AGE_S,
    MAX_PURGED_AT_ONCE,
    NotificationPurger,
    encode_entries,
)
from controller_core.shell.zookeeper.optimistic import MAX_ATTEMPTS
from kafka_node.authorization.acl import Operation, PatternType
from kafka_node.authorization.acls import Entries
from kafka_wire.errors import ErrorCode
from kafka_zookeeper.writes import Refused, RefusedReason
from tests.controller_core.shell.terms import settled
from tests.controller_core.shell.zookeeper.acls.acl_world import AclZooKeeper, allow, following, topic
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault

READ, WRITE = allow(Operation.READ), allow(Operation.WRITE)
ORDERS = "/kafka-acl/Topic/orders"
NOTICE = "/kafka-acl-changes/acl_changes_"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a change anew at once."""
    monkeypatch.setattr(keeper_module, "PAUSE_S", 0.0)


def plus(*entries: object):  # type: ignore[no-untyped-def]
    """Add entries."""
    return lambda now: now | frozenset(entries)


def of(*entries: object) -> Entries:
    """A set of entries."""
    return frozenset(entries)  # type: ignore[arg-type]


async def test_all_are_read_at_the_start() -> None:
    """Of both kinds of patterns."""
    server = AclZooKeeper()
    server.put(ORDERS, encode_entries([READ]))
    server.put("/kafka-acl-extended/prefixed/Topic/or", encode_entries([WRITE]))
    async with following(server) as keeper:
        assert dict(keeper.known.acls.patterns()) == {
            topic("orders"): of(READ),
            topic("or", PatternType.PREFIXED): of(WRITE),
        }


async def test_a_notice_has_what_it_names_read_again() -> None:
    """What stands in the znode counts: a notice that comes late does no harm."""
    server = AclZooKeeper()
    async with following(server) as keeper:
        server.put(ORDERS, encode_entries([READ]))
        server.put(NOTICE + "0000000007", b"TOPIC:orders")
        await settled()
        assert of(READ) == keeper.known.acls.of(topic("orders"))
        server.drop(ORDERS)
        server.put("/kafka-acl-changes/acl_changes_0000000008", b"TOPIC:orders")
        await settled()
        assert list(keeper.known.acls.patterns()) == []


async def test_a_garbage_notice_is_logged_once_and_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it was about, everything is read again; the notices after it count."""
    server = AclZooKeeper()
    async with following(server) as keeper:
        server.put(ORDERS, encode_entries([READ]))
        server.put(NOTICE + "0000000001", b"\xff no notice")
        await settled()
        assert of(READ) == keeper.known.acls.of(topic("orders"))
        server.put(ORDERS, encode_entries([WRITE]))
        server.put(NOTICE + "0000000002", b"TOPIC:orders")
        await settled()
        assert of(WRITE) == keeper.known.acls.of(topic("orders"))

    assert sum("notification" in record.message for record in caplog.records if record.levelno >= logging.ERROR) == 1


async def test_a_znode_that_cannot_be_read_locks_what_it_guards(caplog: pytest.LogCaptureFixture) -> None:
    """A torn document opens nothing, and disturbs nothing else."""
    server = AclZooKeeper()
    server.put(ORDERS, b"{torn")
    server.put("/kafka-acl/Topic/payments", encode_entries([READ]))
    async with following(server) as keeper:
        assert keeper.known.acls.of(topic("orders")) == LOCKED
        assert of(READ) == keeper.known.acls.of(topic("payments"))
        failure = await keeper.change(topic("orders"), plus(READ))
        assert failure is not None
        assert failure.message == "the stored ACLs of orders are malformed"

    assert sum(record.levelno >= logging.ERROR for record in caplog.records) == 1


async def test_a_change_is_written_with_its_notice_at_once() -> None:
    """One transaction: no broker can miss it."""
    server = AclZooKeeper()
    async with following(server) as keeper:
        assert await keeper.change(topic("orders"), plus(READ)) is None
        assert await keeper.change(topic("or", PatternType.PREFIXED), plus(WRITE)) is None
        assert of(READ) == keeper.known.acls.of(topic("orders"))

    assert encode_entries([READ]) == server.at(ORDERS).data
    assert server.at(NOTICE + "0000000001").data == b"TOPIC:orders"
    extended = server.at("/kafka-acl-extended-changes/acl_changes_0000000002").data
    assert extended == b'{"version":1,"resourceType":"TOPIC","name":"or","patternType":"PREFIXED"}'


async def test_the_last_entrys_removal_removes_the_znode() -> None:
    """As Kafka does; and a change that changes nothing writes nothing."""
    server = AclZooKeeper()
    server.put(ORDERS, encode_entries([READ]))
    async with following(server) as keeper:
        assert await keeper.change(topic("orders"), lambda now: now - {READ}) is None
        assert ORDERS not in server.znodes
        written = len(server.lines)
        assert await keeper.change(topic("orders"), lambda now: now - {READ}) is None

    assert server.lines[written:] == ["get " + ORDERS]


async def test_a_change_is_made_anew_on_what_somebody_else_wrote() -> None:
    """The znode's version guards both: neither entry is lost."""
    server = AclZooKeeper()
    async with following(server) as keeper:
        server.before_writes.append(lambda: server.put(ORDERS, encode_entries([WRITE])))
        assert await keeper.change(topic("orders"), plus(READ)) is None
        assert of(READ, WRITE) == keeper.known.acls.of(topic("orders"))


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_a_lost_connection_leaves_a_change_done_once(fault: Fault) -> None:
    """Read again, it is there or it is made."""
    server = AclZooKeeper()
    async with following(server) as keeper:
        server.faults.append(fault)
        assert await keeper.change(topic("orders"), plus(READ)) is None

    assert encode_entries([READ]) == server.at(ORDERS).data
    assert server.children("/kafka-acl-changes") == ["acl_changes_0000000001"]


async def test_a_change_that_is_refused_for_ever_fails() -> None:
    """After as many attempts as Kafka makes; a refusal that no second look mends fails at once."""
    server = AclZooKeeper()
    async with following(server) as keeper:
        server.faults += [Refused(0, RefusedReason.BAD_VERSION)] * MAX_ATTEMPTS
        failure = await keeper.change(topic("orders"), plus(READ))
        assert failure is not None
        assert failure.code == ErrorCode.UNKNOWN_SERVER_ERROR
        server.faults.append(Refused(-1, RefusedReason.TOO_LARGE))
        failure = await keeper.change(topic("orders"), plus(READ))
        assert failure is not None
        assert "too large" in failure.message
        assert await keeper.change(topic("a/b"), plus(READ)) is not None


async def test_after_a_broken_connection_nothing_is_missed() -> None:
    """Watches are gone with it, and told so."""
    server = AclZooKeeper()
    async with following(server) as keeper:
        server.put(ORDERS, encode_entries([READ]))
        keeper._session.blink()  # type: ignore[attr-defined]
        server.put(NOTICE + "0000000001", b"TOPIC:orders")
        await settled()
        assert of(READ) == keeper.known.acls.of(topic("orders"))


class Clock:
    """Seconds, as they are said to pass."""

    now = 1000.0

    def __call__(self) -> float:
        """Tell them."""
        return self.now


async def test_old_notices_are_deleted_when_new_ones_come() -> None:
    """ZkNodeChangeNotificationListener.purgeObsoleteNotifications: after a quarter of an hour, of either kind."""
    server, clock = AclZooKeeper(), Clock()
    prefixed = "/kafka-acl-extended-changes/acl_changes_"
    server.put(NOTICE + "0000000001", b"TOPIC:orders")
    server.put(prefixed + "0000000001", b"garbage is deleted as well")
    async with following(server, clock=clock) as keeper:
        clock.now += 600
        server.put(NOTICE + "0000000002", b"TOPIC:orders")
        await settled()
        clock.now += MAX_AGE_S - 600
        server.put(NOTICE + "0000000003", b"TOPIC:orders")
        await settled()
        assert server.children("/kafka-acl-changes") == [
            "acl_changes_0000000001",
            "acl_changes_0000000002",
            "acl_changes_0000000003",
        ], "none is older than a quarter of an hour"

        clock.now += 1
        server.put(ORDERS, encode_entries([READ]))
        server.put(NOTICE + "0000000004", b"TOPIC:orders")
        await settled()
        assert [int(name[-1]) for name in server.children("/kafka-acl-changes")] == [2, 3, 4]
        assert server.children("/kafka-acl-extended-changes") == []
        assert of(READ) == keeper.known.acls.of(topic("orders"))


async def test_one_look_deletes_so_many_notices_and_no_more() -> None:
    """The next look, which each deletion brings, goes on: changes of ACLs get their turn between."""
    purging = NotificationPurger(clock := Clock())
    notices = [(False, f"acl_changes_{number:010}") for number in range(MAX_PURGED_AT_ONCE + 1)]
    assert purging.expired(notices) == []
    clock.now += MAX_AGE_S + 1
    assert notices[:-1] == purging.expired(reversed(notices))
    assert notices[-1:] == purging.expired([*notices[-1:], (True, "new")])
