"""Transactions on a real ZooKeeper: committed, rejected with a reason, or unknown."""

import asyncio

import pytest
from kazoo.security import make_acl

from kafka_zookeeper.protocol import MULTI
from kafka_zookeeper.session import SessionState, ZooKeeperSession
from kafka_zookeeper.writes import (
    ANY_VERSION,
    Check,
    Committed,
    Create,
    Delete,
    Operation,
    Refused,
    RefusedReason,
    SetData,
    Unknown,
)
from lab.peers.zookeeper import ZooKeeperServer, zookeeper_server
from tests.kafka_zookeeper.conftest import OpenSession
from tests.kafka_zookeeper.fake_zookeeper import FakeZooKeeper
from tests.kafka_zookeeper.test_session import end_from_elsewhere, state_of

pytestmark = pytest.mark.zookeeper

REFUSED: list[tuple[RefusedReason, Operation]] = [
    (RefusedReason.BAD_VERSION, Check("/a", 1)),
    (RefusedReason.BAD_VERSION, SetData("/a", b"", 1)),
    (RefusedReason.BAD_VERSION, Delete("/a/leaf", 5)),
    (RefusedReason.NO_NODE, Check("/missing", 0)),
    (RefusedReason.NO_NODE, SetData("/missing", b"", ANY_VERSION)),
    (RefusedReason.NO_NODE, Delete("/missing", ANY_VERSION)),
    (RefusedReason.NO_NODE, Create("/missing/child", None)),
    (RefusedReason.NODE_EXISTS, Create("/a", None)),
    (RefusedReason.NOT_EMPTY, Delete("/a", 0)),
    (RefusedReason.NO_AUTH, SetData("/locked", b"", ANY_VERSION)),
    (RefusedReason.OTHER, Create("/mine/child", None)),
]


@pytest.fixture
async def tree(session: ZooKeeperSession, zookeeper: ZooKeeperServer, chroot: str) -> ZooKeeperSession:
    """Return a session with some znodes for rejected operations."""
    await session.multi(
        [
            Create("/a", b"0"),
            Create("/a/leaf", b"0"),
            Create("/mine", b"0", ephemeral=True),
            Create("/locked", b"0"),
        ]
    )
    zookeeper.client.set_acls(f"{chroot}/locked", [make_acl("world", "anyone", read=True)])
    return session


@pytest.mark.parametrize(
    ("reason", "operation"), REFUSED, ids=[f"{reason.name} {operation}" for reason, operation in REFUSED]
)
async def test_a_transaction_is_rejected_because_of_the_first_failed_operation(
    tree: ZooKeeperSession, reason: RefusedReason, operation: Operation
):
    """The result contains its index, and no operation is executed, neither before nor after it."""
    result = await tree.multi([Create("/before", None), SetData("/a/leaf", b"1", 0), operation, Create("/after", None)])

    assert isinstance(result, Refused)
    assert (2, reason) == (result.index, result.reason)
    assert [await tree.exists("/before"), await tree.exists("/after")] == [False, False]
    leaf = await tree.get("/a/leaf")
    assert leaf
    assert (leaf.data, leaf.version) == (b"0", 0)


async def test_a_transaction_sees_its_own_operations(tree: ZooKeeperSession):
    """A znode with its children, and two changes of a version: required for topic creation and takeover."""
    result = await tree.multi(
        [
            Create("/t", None),
            Create("/t/partitions", None),
            SetData("/a", b"1", 0),
            SetData("/a", b"2", 1),
            Delete("/mine", 0),
            Create("/mine", b"next", ephemeral=True),
        ]
    )

    assert result == Committed(("/t", "/t/partitions", 1, 2, None, "/mine"))


async def test_the_fence_stops_a_former_controller(tree: ZooKeeperSession, open_session: OpenSession):
    """Invariant: every write checks the version of /controller_epoch, so that a former controller writes nothing."""
    successor = await open_session(tree.settings.connect)
    await tree.multi([Create("/controller_epoch", b"1")])
    fence = Check("/controller_epoch", 0)
    assert isinstance(await tree.multi([fence, SetData("/a", b"1", 0)]), Committed)

    await successor.multi([SetData("/controller_epoch", b"2", 0)])

    assert await tree.multi([fence, SetData("/a", b"2", 1)]) == Refused(0, RefusedReason.BAD_VERSION, "BadVersionError")


async def test_only_one_of_two_concurrent_takeovers_succeeds(tree: ZooKeeperSession, open_session: OpenSession):
    """The election: one multi that deletes and creates /controller and increments the epoch by its version."""
    rivals = [await open_session(tree.settings.connect) for _ in range(4)]
    await tree.multi([Create("/controller_epoch", b"1"), Create("/controller", b"native")])

    results = await asyncio.gather(
        *(
            rival.multi(
                [
                    Delete("/controller", 0),
                    Create("/controller", b"%d" % number, ephemeral=True),
                    SetData("/controller_epoch", b"2", 0),
                ]
            )
            for number, rival in enumerate(rivals)
        )
    )

    won = [number for number, result in enumerate(results) if isinstance(result, Committed)]
    holder = await tree.get("/controller")
    assert holder
    assert [rivals[won[0]].session_id] == [holder.ephemeral_owner]
    assert len(won) == 1
    assert {RefusedReason.BAD_VERSION} >= {
        result.reason for result in results if isinstance(result, Refused) and result.index == 2
    }


async def test_a_too_large_transaction_is_not_sent(session: ZooKeeperSession):
    """A server would close the connection, which would fail all other requests."""
    states: list[SessionState] = []
    session.on_state(states.append)

    fits = await session.multi([Create("/fits", b"x" * 1_048_000)])
    result = await session.multi([Create("/a", b"x" * 600_000), Create("/b", b"x" * 600_000)])

    assert fits == Committed(("/fits",))
    assert isinstance(result, Refused)
    assert (result.index, result.reason) == (-1, RefusedReason.TOO_LARGE)
    assert states == []


async def test_an_invalid_path_is_rejected(session: ZooKeeperSession):
    """ZooKeeper's PathUtils."""
    result = await session.multi([Create("/a\x00b", None)])

    assert isinstance(result, Refused)
    assert result.reason is RefusedReason.OTHER


async def test_a_path_outside_the_chroot_is_never_written(session: ZooKeeperSession):
    """A mistake of the caller raises ValueError."""
    with pytest.raises(ValueError, match="must begin with a slash"):
        await session.multi([Create("a", None)])


async def test_an_empty_transaction_commits(session: ZooKeeperSession):
    """Without any results."""
    assert await session.multi([]) == Committed(())


async def test_the_outcome_is_unknown_without_a_response(fake: FakeZooKeeper, open_session: OpenSession):
    """The server may have executed it before the connection loss."""
    fake.responses[MULTI] = lambda _body: None
    session = await open_session(fake.address)

    assert isinstance(await session.multi([Create("/a", None)]), Unknown)


async def test_the_outcome_is_unknown_with_a_malformed_response(fake: FakeZooKeeper, open_session: OpenSession):
    """A damaged response proves nothing."""
    fake.responses[MULTI] = lambda _body: (0, b"\0\0\0\1\0")
    session = await open_session(fake.address)

    assert isinstance(await session.multi([Create("/a", None)]), Unknown)


async def test_transactions_are_atomic_and_durable_when_the_server_is_killed(open_session: OpenSession):
    """Kill -9 of ZooKeeper during a stream of transactions of two creates each."""
    with zookeeper_server() as server:
        session = await open_session(server.address, session_timeout_ms=30_000)
        enough = asyncio.Event()
        outcomes: dict[int, object] = {}

        async def write(number: int) -> None:
            outcomes[number] = await session.multi([Create(f"/a{number}", None), Create(f"/b{number}", None)])
            if len(outcomes) >= 200:
                enough.set()

        writing = [asyncio.create_task(write(number)) for number in range(2_000)]
        await enough.wait()
        server.kill()
        await state_of(session, SessionState.SUSPENDED)
        await asyncio.to_thread(server.start)
        await asyncio.gather(*writing)

        there = set(await session.children("/") or [])
        assert Unknown in {type(outcome) for outcome in outcomes.values()}
        for number, outcome in outcomes.items():
            pair = {f"a{number}", f"b{number}"} & there
            assert len(pair) in ({2} if isinstance(outcome, Committed) else {0, 2})
        await session.close()


async def test_the_outcome_is_unknown_after_a_paused_server_is_killed(open_session: OpenSession):
    """The transaction was sent, and has no response."""
    with zookeeper_server() as server:
        session = await open_session(server.address)
        server.pause()
        writing = asyncio.create_task(session.multi([Create("/a", None)]))
        await asyncio.sleep(0)
        server.kill()

        assert isinstance(await writing, Unknown)
        await session.close()


async def test_the_outcome_is_unknown_after_the_end_of_the_session(
    session: ZooKeeperSession, zookeeper: ZooKeeperServer
):
    """Transactions in flight at the end of the session also return a value; none of them raises."""
    writing = [asyncio.create_task(session.multi([Create(f"/a{number}", None)])) for number in range(500)]
    await asyncio.to_thread(end_from_elsewhere, session, zookeeper)
    results = await asyncio.gather(*writing)
    await state_of(session, SessionState.LOST)

    assert {Committed, Unknown} >= {type(result) for result in results}
    assert isinstance(await session.multi([Check("/", ANY_VERSION)]), Unknown)
