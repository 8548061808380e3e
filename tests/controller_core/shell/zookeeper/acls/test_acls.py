"""ACLs in ZooKeeper: changes by brokers are followed, own changes are written with a notification (AclAuthorizer, KIP-290)."""

import logging

import pytest

from controller_core.shell.zookeeper import acls as acls_module
from controller_core.shell.zookeeper.acls import (
    MAX_AGE_S,
    MAX_PURGED_AT_ONCE,
    NotificationPurger,
    encode_entries,
)
from controller_core.shell.zookeeper.optimistic import MAX_ATTEMPTS
from kafka_node.authorization.acl import LOCKED, Operation, PatternType
from kafka_node.authorization.acls import Entries
from kafka_wire import ErrorCode
from kafka_zookeeper.writes import Refused, RefusedReason
from tests.controller_core.shell.terms import settled
from tests.controller_core.shell.zookeeper.acls.acl_world import AclZooKeeper, allow, following, topic
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault

READ, WRITE = allow(Operation.READ), allow(Operation.WRITE)
ORDERS = "/kafka-acl/Topic/orders"
NOTIFICATION = "/kafka-acl-changes/acl_changes_"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat changes without a pause."""
    monkeypatch.setattr(acls_module, "PAUSE_S", 0.0)


def plus(*entries: object):
    """Add entries."""
    return lambda now: now | frozenset(entries)


def of(*entries: object) -> Entries:
    """A set of entries."""
    return frozenset(entries)


async def test_all_acls_are_read_at_the_start() -> None:
    """Literal and prefixed patterns."""
    server = AclZooKeeper()
    server.put(ORDERS, encode_entries([READ]))
    server.put("/kafka-acl-extended/prefixed/Topic/or", encode_entries([WRITE]))
    async with following(server) as acls:
        assert dict(acls.known.acls.patterns()) == {
            topic("orders"): of(READ),
            topic("or", PatternType.PREFIXED): of(WRITE),
        }


async def test_a_notification_makes_the_named_acls_be_read_again() -> None:
    """The znode's data applies: a late notification does no harm."""
    server = AclZooKeeper()
    async with following(server) as acls:
        server.put(ORDERS, encode_entries([READ]))
        server.put(NOTIFICATION + "0000000007", b"TOPIC:orders")
        await settled()
        assert acls.known.acls.of(topic("orders")) == of(READ)
        server.drop(ORDERS)
        server.put("/kafka-acl-changes/acl_changes_0000000008", b"TOPIC:orders")
        await settled()
        assert list(acls.known.acls.patterns()) == []


async def test_a_garbage_notification_is_logged_once_and_all_acls_are_read(caplog: pytest.LogCaptureFixture) -> None:
    """No change is lost, whatever it named; later notifications are processed as usual."""
    server = AclZooKeeper()
    async with following(server) as acls:
        server.put(ORDERS, encode_entries([READ]))
        server.put(NOTIFICATION + "0000000001", b"\xff garbage")
        await settled()
        assert acls.known.acls.of(topic("orders")) == of(READ)
        server.put(ORDERS, encode_entries([WRITE]))
        server.put(NOTIFICATION + "0000000002", b"TOPIC:orders")
        await settled()
        assert acls.known.acls.of(topic("orders")) == of(WRITE)

    assert sum("notification" in record.message for record in caplog.records if record.levelno >= logging.ERROR) == 1


async def test_a_znode_that_cannot_be_decoded_denies_access_to_its_resource(caplog: pytest.LogCaptureFixture) -> None:
    """A corrupt document grants no access and affects no other resource."""
    server = AclZooKeeper()
    server.put(ORDERS, b"{torn")
    server.put("/kafka-acl/Topic/payments", encode_entries([READ]))
    async with following(server) as acls:
        assert acls.known.acls.of(topic("orders")) == {LOCKED}
        assert acls.known.acls.of(topic("payments")) == of(READ)
        failure = await acls.change(topic("orders"), plus(READ))
        assert failure is not None
        assert failure.message == "the stored ACLs of orders are malformed"

    assert sum(record.levelno >= logging.ERROR for record in caplog.records) == 1


async def test_a_change_and_its_notification_are_one_transaction() -> None:
    """No broker can miss it."""
    server = AclZooKeeper()
    async with following(server) as acls:
        assert await acls.change(topic("orders"), plus(READ)) is None
        assert await acls.change(topic("or", PatternType.PREFIXED), plus(WRITE)) is None
        assert acls.known.acls.of(topic("orders")) == of(READ)

    assert server.at(ORDERS).data == encode_entries([READ])
    assert server.at(NOTIFICATION + "0000000001").data == b"TOPIC:orders"
    extended = server.at("/kafka-acl-extended-changes/acl_changes_0000000002").data
    assert extended == b'{"version":1,"resourceType":"TOPIC","name":"or","patternType":"PREFIXED"}'


async def test_removing_the_last_entry_deletes_the_znode() -> None:
    """As Kafka does. An update without effect writes nothing."""
    server = AclZooKeeper()
    server.put(ORDERS, encode_entries([READ]))
    async with following(server) as acls:
        assert await acls.change(topic("orders"), lambda now: now - {READ}) is None
        assert ORDERS not in server.znodes
        written = len(server.lines)
        assert await acls.change(topic("orders"), lambda now: now - {READ}) is None

    assert server.lines[written:] == ["get " + ORDERS]


async def test_a_change_is_computed_again_after_another_process_wrote() -> None:
    """The znode's version protects both: no entry is lost."""
    server = AclZooKeeper()
    async with following(server) as acls:
        server.before_writes.append(lambda: server.put(ORDERS, encode_entries([WRITE])))
        assert await acls.change(topic("orders"), plus(READ)) is None
        assert acls.known.acls.of(topic("orders")) == of(READ, WRITE)


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_a_change_is_written_once_despite_a_lost_connection(fault: Fault) -> None:
    """The next read shows whether it was written."""
    server = AclZooKeeper()
    async with following(server) as acls:
        server.faults.append(fault)
        assert await acls.change(topic("orders"), plus(READ)) is None

    assert server.at(ORDERS).data == encode_entries([READ])
    assert server.children("/kafka-acl-changes") == ["acl_changes_0000000001"]


async def test_a_change_fails_after_a_bounded_number_of_attempts() -> None:
    """As many as in Kafka; a non-retriable refusal fails at once."""
    server = AclZooKeeper()
    async with following(server) as acls:
        server.faults += [Refused(0, RefusedReason.BAD_VERSION)] * MAX_ATTEMPTS
        failure = await acls.change(topic("orders"), plus(READ))
        assert failure is not None
        assert failure.code == ErrorCode.UNKNOWN_SERVER_ERROR
        server.faults.append(Refused(-1, RefusedReason.TOO_LARGE))
        failure = await acls.change(topic("orders"), plus(READ))
        assert failure is not None
        assert "too large" in failure.message
        assert await acls.change(topic("a/b"), plus(READ)) is not None


async def test_no_change_is_missed_after_a_lost_connection() -> None:
    """Watches end with the connection, and their callbacks are called."""
    server = AclZooKeeper()
    async with following(server) as acls:
        server.put(ORDERS, encode_entries([READ]))
        acls._session.lose_connection()  # type: ignore[attr-defined]
        server.put(NOTIFICATION + "0000000001", b"TOPIC:orders")
        await settled()
        assert acls.known.acls.of(topic("orders")) == of(READ)


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        """Return the time in s."""
        return self.now


async def test_old_notifications_are_deleted_when_new_ones_arrive() -> None:
    """ZkNodeChangeNotificationListener.purgeObsoleteNotifications: after a quarter of an hour, in both trees."""
    server, clock = AclZooKeeper(), Clock()
    prefixed = "/kafka-acl-extended-changes/acl_changes_"
    server.put(NOTIFICATION + "0000000001", b"TOPIC:orders")
    server.put(prefixed + "0000000001", b"garbage is deleted as well")
    async with following(server, clock=clock) as acls:
        clock.now += 600
        server.put(NOTIFICATION + "0000000002", b"TOPIC:orders")
        await settled()
        clock.now += MAX_AGE_S - 600
        server.put(NOTIFICATION + "0000000003", b"TOPIC:orders")
        await settled()
        assert server.children("/kafka-acl-changes") == [
            "acl_changes_0000000001",
            "acl_changes_0000000002",
            "acl_changes_0000000003",
        ], "none is older than a quarter of an hour"

        clock.now += 1
        server.put(ORDERS, encode_entries([READ]))
        server.put(NOTIFICATION + "0000000004", b"TOPIC:orders")
        await settled()
        assert [int(name[-1]) for name in server.children("/kafka-acl-changes")] == [2, 3, 4]
        assert server.children("/kafka-acl-extended-changes") == []
        assert acls.known.acls.of(topic("orders")) == of(READ)


async def test_the_number_of_notifications_deleted_at_once_is_limited() -> None:
    """Each deletion causes the next read, which continues; changes of ACLs run in between."""
    purger = NotificationPurger(clock := Clock())
    notifications = [(False, f"acl_changes_{number:010}") for number in range(MAX_PURGED_AT_ONCE + 1)]
    assert purger.expired(notifications) == []
    clock.now += MAX_AGE_S + 1
    assert purger.expired(reversed(notifications)) == notifications[:-1]
    assert purger.expired([*notifications[-1:], (True, "new")]) == notifications[-1:]
