"""The proxy of ZooKeeper, the end of sessions by their number, and the server's history."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from kafka_zookeeper.session import SessionState, ZooKeeperSession
from kafka_zookeeper.settings import ZooKeeperSettings
from kafka_zookeeper.writes import Committed, Create, SetData, Unknown
from lab.checks.zookeeper_history import Write, read_history
from lab.errors import LabError
from lab.faults.zookeeper_proxy import End, Operation, ZooKeeperProxy, zookeeper_proxy
from lab.faults.zookeeper_sessions import end_session
from lab.jute import SET_DATA
from lab.peers.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def proxy(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperProxy]:
    """A proxy of the shared server."""
    with zookeeper_proxy(zookeeper.port) as passing:
        yield passing


@pytest.fixture
async def session(proxy: ZooKeeperProxy, chroot: str) -> AsyncIterator[ZooKeeperSession]:
    """A session through the proxy."""
    opened = await ZooKeeperSession.connect(ZooKeeperSettings(proxy.connect(chroot), 10_000))
    yield opened
    await opened.close()


@pytest.mark.parametrize("end", [End.DONE, End.NOT_DONE])
async def test_a_cut_leaves_a_transaction_done_or_not_done_without_an_answer(
    proxy: ZooKeeperProxy, session: ZooKeeperSession, end: End
) -> None:
    """What ConnectionLoss means; the session continues, and the fault occurs once."""
    fault = proxy.arm(lambda operation: operation.path.endswith("/a"), end)
    before = await session.multi([Create("/b", b"")])
    lost = await session.multi([Create("/a", b"1")])

    assert isinstance(before, Committed)
    assert isinstance(lost, Unknown)
    assert fault.happened.is_set()
    assert (end is End.DONE) == await session.exists("/a")
    assert session.state is SessionState.CONNECTED
    assert isinstance(await session.multi([Create("/c", b"")]), Committed)


async def test_held_packets_arrive_when_they_are_released(
    proxy: ZooKeeperProxy, session: ZooKeeperSession, zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """A late packet: the state has changed before it arrives."""
    await session.multi([Create("/late", b"first")])
    fault = proxy.arm(lambda operation: operation == Operation(SET_DATA, f"{chroot}/late", b"second"), End.HELD)
    late = asyncio.create_task(session.multi([SetData("/late", b"second", -1)]))
    await asyncio.to_thread(fault.wait)

    assert zookeeper.read(f"{chroot}/late") == b"first"
    proxy.release()
    assert isinstance(await late, Committed)
    assert zookeeper.read(f"{chroot}/late") == b"second"


async def test_a_black_hole_past_the_timeout_ends_the_session(
    proxy: ZooKeeperProxy, zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """No packet arrives during it; afterwards the server reports the expired session."""
    session = await ZooKeeperSession.connect(ZooKeeperSettings(proxy.connect(chroot), 1_000))
    over = asyncio.Event()
    session.on_state(lambda state: over.set() if state is SessionState.LOST else None)
    await session.multi([Create("/held", b"", ephemeral=True)])
    with proxy.holding():
        await asyncio.to_thread(zookeeper.wait_until_gone, f"{chroot}/held")
    async with asyncio.timeout(20):
        await over.wait()
    await session.close()


async def test_a_session_can_be_ended_by_its_id(session: ZooKeeperSession, zookeeper: ZooKeeperServer) -> None:
    """Its ephemeral znodes are deleted, and its owner is notified."""
    over = asyncio.Event()
    session.on_state(lambda state: over.set() if state is SessionState.LOST else None)
    await session.multi([Create("/held", b"", ephemeral=True)])
    await asyncio.to_thread(end_session, zookeeper.port, session.session_id)
    async with asyncio.timeout(20):
        await over.wait()

    assert not zookeeper.client.exists(f"{session.chroot}/held")
    end_session(zookeeper.port, session.session_id)  # a second time has no effect


def test_a_fault_that_never_occurs_is_an_error(proxy: ZooKeeperProxy) -> None:
    """A test without its fault proves nothing."""
    fault = proxy.arm(lambda _: True, End.DONE)

    with pytest.raises(LabError, match=r"no transaction for the fault 'done' within 0.05 s"):
        fault.wait(0.05)


async def test_the_history_has_every_write_with_its_session(
    session: ZooKeeperSession, zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """Creations, changes and deletions, also those at the end of a session; a refused transaction is not part of it."""
    await session.multi([Create("/kept", b"1"), SetData("/kept", b"2", 0)])
    await session.multi([Create("/kept", b"3")])
    await session.multi([Create("/held", b"", ephemeral=True)])
    end_session(zookeeper.port, session.session_id)

    found = read_history(zookeeper.process.folder / "zookeeper-data")
    below = [write for write in found if write.path.startswith(f"{chroot}/")]
    mine = session.session_id
    assert [(write.session_id, write.path.removeprefix(chroot), write.data, write.is_new) for write in below] == [
        (mine, "/kept", b"1", True),
        (mine, "/kept", b"2", False),
        (mine, "/held", b"", True),
        (mine, "/held", None, False),
    ]
    assert below[0].zxid == below[1].zxid < below[2].zxid
    assert isinstance(below[0], Write)
