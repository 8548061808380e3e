"""Sessions on a real ZooKeeper."""

import asyncio
import logging
import socket
import threading
import time
from collections import deque
from dataclasses import replace

import pytest
from kazoo.client import KazooClient

from kafka_zookeeper.errors import ConnectFailedError, SessionLostError, ZooKeeperError
from kafka_zookeeper.session import SessionState, ZooKeeperSession, ensure_chroot
from kafka_zookeeper.settings import ZooKeeperSettings
from kafka_zookeeper.writes import ANY_VERSION, Check, Committed, Create, Delete, SetData, Unknown
from lab.faults.zookeeper_proxy import End, zookeeper_proxy
from lab.peers.zookeeper import ZooKeeperServer, zookeeper_server
from tests.kafka_zookeeper.conftest import OpenSession
from tests.kafka_zookeeper.fake_zookeeper import FakeZooKeeper

pytestmark = pytest.mark.zookeeper


async def state_of(session: ZooKeeperSession, wanted: SessionState) -> None:
    """Wait until a session is in a state."""
    reached = asyncio.Event()
    session.on_state(lambda state: reached.set() if state is wanted else None)
    if session.state is not wanted:
        await reached.wait()


def end_from_elsewhere(session: ZooKeeperSession, server: ZooKeeperServer) -> None:
    """Take over the session in a second client by its password and close it: ZooKeeper's method to expire a session."""
    thief = KazooClient(server.address, client_id=session._client.client_id)
    thief.start()
    thief.stop()
    thief.close()


async def test_a_znode_is_read_with_its_metadata(session: ZooKeeperSession):
    """Data (null differs from empty), version, the transactions of creation and change, and the owner."""
    await session.multi([Create("/null", None), Create("/empty", b""), Create("/mine", b"1", ephemeral=True)])
    await session.multi([SetData("/mine", b"2", 0)])

    null, empty, mine = [await session.get(path) for path in ("/null", "/empty", "/mine")]

    assert null
    assert empty
    assert mine
    assert (null.data, null.version, null.ephemeral_owner) == (None, 0, 0)
    assert empty.data == b""
    assert (b"2", 1, session.session_id) == (mine.data, mine.version, mine.ephemeral_owner)
    assert mine.czxid == null.czxid
    assert mine.mzxid > mine.czxid


async def test_a_missing_znode_is_none(session: ZooKeeperSession):
    """A missing znode is not an error."""
    assert [await session.get("/x"), await session.children("/x"), await session.exists("/x")] == [None, None, False]
    assert await session.exists("/")


async def test_children_are_sorted_names(session: ZooKeeperSession):
    """Sequential znodes are in the order of their creation."""
    await session.multi([Create("/p", None)])
    for _ in range(12):
        await session.multi([Create("/p/n-", None, sequential=True)])

    assert [f"n-{number:010}" for number in range(12)] == await session.children("/p")


async def test_the_chroot_applies_to_all_paths(
    session: ZooKeeperSession, open_session: OpenSession, zookeeper: ZooKeeperServer, chroot: str
):
    """For any chroot (zookeeper.connect); results do not contain it."""
    root = await open_session(zookeeper.address)

    result = await session.multi([Create("/a-", b"x", sequential=True), Create("/b", None)])

    assert result == Committed(("/a-0000000000", "/b"))
    assert await session.children("/") == ["a-0000000000", "b"]
    assert await root.children(chroot) == ["a-0000000000", "b"]
    assert zookeeper.read(f"{chroot}/a-0000000000") == b"x"


async def test_a_missing_chroot_is_created(open_session: OpenSession, zookeeper: ZooKeeperServer, chroot: str):
    """As a broker does at its start; its znodes have no data, and creating it again changes nothing."""
    settings = ZooKeeperSettings(zookeeper.connect(f"{chroot}/deep/er"))
    await asyncio.gather(ensure_chroot(settings), ensure_chroot(settings))
    await ensure_chroot(settings)
    await ensure_chroot(settings.without_chroot())

    session = await open_session(settings.connect)

    assert await session.children("/") == []
    outside = await open_session(zookeeper.connect(chroot))
    node = await outside.get("/deep")
    assert node
    assert (node.data, node.version) == (None, 0)


async def test_a_path_that_cannot_be_created_is_an_error(session: ZooKeeperSession):
    """An ephemeral znode has no children."""
    await session.multi([Create("/mine", None, ephemeral=True)])

    with pytest.raises(ZooKeeperError, match=r"/mine/a could not be created"):
        await session.ensure_path("/mine/a")


async def test_closing_ends_the_session_at_once(session: ZooKeeperSession, open_session: OpenSession):
    """Its ephemeral znodes are deleted: the next controller does not wait for a timeout."""
    other = await open_session(session.settings.connect)
    await other.multi([Create("/mine", None, ephemeral=True)])
    states: list[SessionState] = []
    other.on_state(states.append)

    await other.close()

    assert not await session.exists("/mine")
    assert states == [SessionState.LOST]
    with pytest.raises(SessionLostError):
        await other.get("/mine")
    assert isinstance(await other.multi([Check("/mine", 0)]), Unknown)
    await other.close()


async def test_a_lost_session_stays_lost(session: ZooKeeperSession, zookeeper: ZooKeeperServer):
    """The object sends nothing under another session, because its ephemeral znodes no longer exist."""
    states: list[SessionState] = []
    session.on_state(states.append)
    session_id = session.session_id

    await asyncio.to_thread(end_from_elsewhere, session, zookeeper)
    await state_of(session, SessionState.LOST)

    assert states[-1] is SessionState.LOST
    assert SessionState.LOST not in states[:-1]
    with pytest.raises(SessionLostError):
        await session.get("/")
    with pytest.raises(SessionLostError):
        await session.multi_get(["/"])
    assert isinstance(await session.multi([Create("/x", None, ephemeral=True)]), Unknown)
    assert (SessionState.LOST, session_id) == (session.state, session.session_id)
    dump = await asyncio.to_thread(zookeeper.four_letters, "dump")
    assert f"{session_id & 0xFFFFFFFFFFFFFFFF:#x}" not in dump


async def test_reads_continue_after_a_restart_of_the_server(open_session: OpenSession):
    """The session continues: a read waits for the connection, and ephemeral znodes still exist."""
    with zookeeper_server() as server:
        session = await open_session(server.address)
        await session.multi([Create("/mine", b"1", ephemeral=True)])
        session_id = session.session_id

        await asyncio.to_thread(server.stop)
        await state_of(session, SessionState.SUSPENDED)
        reading = asyncio.gather(session.get("/mine"), session.children("/"), session.multi_get(["/mine", "/no"]))
        await asyncio.to_thread(server.start)
        mine, children, many = await reading

        assert mine
        assert (b"1", session_id) == (mine.data, mine.ephemeral_owner)
        assert children == ["mine", "zookeeper"]
        assert many == [mine, None]
        assert (SessionState.CONNECTED, session_id) == (session.state, session.session_id)
        await session.close()


class PatientQueue(deque[object]):
    """kazoo's queue with a slow thread: emptying it also takes requests of the next moments."""

    def popleft(self) -> object:
        """Return also requests that arrive within 50 ms."""
        late = time.monotonic() + 0.05
        while not self and time.monotonic() < late:
            time.sleep(0.001)
        return super().popleft()


async def test_one_connection_loss_takes_one_attempt_of_a_read(zookeeper: ZooKeeperServer, chroot: str):
    """Requests during kazoo's cleanup fail: a read waits for the next connection without using further attempts."""
    with zookeeper_proxy(zookeeper.port) as proxy:
        session = await ZooKeeperSession.connect(ZooKeeperSettings(proxy.connect(chroot), 10_000))
        session._client._queue = PatientQueue(session._client._queue)
        proxy.arm(lambda operation: operation.path.endswith("/a"), End.NOT_DONE)

        assert isinstance(await session.multi([Create("/a", b"")]), Unknown)
        assert not await session.exists("/a")
        await session.close()


async def test_an_unresponsive_connection_does_not_end_the_session(fake: FakeZooKeeper, open_session: OpenSession):
    """ZooKeeper 3.8 leaves one at its start (ZooKeeperServer.removeCnxn has no database yet); the next connection works."""
    session = await open_session(fake.address, session_timeout_ms=3_000)
    fake.unanswered, fake.over_at = 1, time.monotonic() + 3
    fake.drop_connections()
    await state_of(session, SessionState.SUSPENDED)
    await session._not_suspended.wait()

    assert session.state is SessionState.CONNECTED
    assert fake.connections == 3


async def test_an_expired_session_is_lost(open_session: OpenSession):
    """A server that returns after the session timeout reports it; the object opens no new session."""
    with zookeeper_server() as server:
        session = await open_session(server.address, session_timeout_ms=1_000)
        witness = await open_session(server.address, session_timeout_ms=30_000)
        await session.multi([Create("/mine", None, ephemeral=True)])
        deleted = asyncio.Event()
        await witness.exists("/mine", watch=lambda _event: deleted.set())

        # A client that neither pings nor reads: the server expires its session.
        stuck = _Stuck(asyncio.get_running_loop())
        session._client._call(stuck, None)
        await stuck.entered.wait()
        await deleted.wait()
        stuck.release()
        await state_of(session, SessionState.LOST)

        assert not await witness.exists("/mine")


class _Stuck:
    """A request whose serialization blocks kazoo's thread, as a stopped process or a stalled machine would."""

    type = 4

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.entered = asyncio.Event()
        self._loop = loop
        self._released = threading.Event()

    def release(self) -> None:
        self._released.set()

    def serialize(self) -> bytes:
        self._loop.call_soon_threadsafe(self.entered.set)
        self._released.wait(60)
        return b"\0\0\0\1/\0"


async def test_the_error_without_a_server_names_the_address():
    """The message contains the connect string."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        connect = f"127.0.0.1:{taken.getsockname()[1]}/kafka"

        with pytest.raises(ConnectFailedError, match=f"no session with ZooKeeper at {connect} after 300 ms"):
            await ZooKeeperSession.connect(ZooKeeperSettings(connect, connect_timeout_ms=300))


async def test_one_server_of_many_is_enough(open_session: OpenSession, zookeeper: ZooKeeperServer):
    """The others may be down, or drop packets."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = taken.getsockname()[1]

        session = await open_session(f"127.0.0.1:{dead},{zookeeper.address},127.0.0.1:{dead}")

        assert await session.exists("/")


async def test_a_rejected_session_is_an_error(fake: FakeZooKeeper):
    """A server that ends every session at once."""
    fake.session_timeout_ms = 0

    with pytest.raises(ConnectFailedError):
        await ZooKeeperSession.connect(ZooKeeperSettings(fake.address, connect_timeout_ms=500))


async def test_a_cancelled_call_does_not_affect_others(session: ZooKeeperSession):
    """The response to its request is dropped; the others receive theirs."""
    await session.multi([Create("/x", b"1")])
    tasks = [asyncio.create_task(session.get("/x")) for _ in range(200)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()

    nodes = await asyncio.gather(*tasks[1::2])

    assert {node.data for node in nodes if node} == {b"1"}


async def test_the_log_contains_no_data_of_znodes(session: ZooKeeperSession, caplog: pytest.LogCaptureFixture):
    """Znodes and requests contain credentials (SCRAM), and a session has a password."""
    with caplog.at_level(1):
        await session.multi([Create("/secret-name", b"secret-data"), Delete("/secret-name", ANY_VERSION)])
        await session.get("/secret-name")
        other = await ZooKeeperSession.connect(replace(session.settings))
        await other.close()

    assert "secret-data" not in caplog.text
    assert "passwd" not in caplog.text
    assert "ZooKeeper session connected" in caplog.text
    assert logging.ERROR not in {record.levelno for record in caplog.records}
