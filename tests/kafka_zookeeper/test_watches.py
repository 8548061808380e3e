"""Watches on a real ZooKeeper: armed with the read, told once, in order."""

import asyncio
from collections.abc import Callable

import pytest

from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.watches import EventKind, OneShot, WatchEvent, WatchKind
from kafka_zookeeper.writes import ANY_VERSION, Committed, Create, Delete, Operation, SetData
from lab.zookeeper import zookeeper_server
from tests.kafka_zookeeper.conftest import OpenSession

pytestmark = pytest.mark.zookeeper


class Ear:
    """Hears events, and can be waited on."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[WatchEvent | None] = asyncio.Queue()

    def __call__(self, event: WatchEvent | None) -> None:
        self.events.put_nowait(event)

    async def heard(self) -> WatchEvent | None:
        return await self.events.get()


CASES: list[tuple[str, WatchKind, list[Operation], Operation, EventKind]] = [
    ("data change", WatchKind.DATA, [Create("/x", None)], SetData("/x", b"", ANY_VERSION), EventKind.DATA_CHANGED),
    ("data deletion", WatchKind.DATA, [Create("/x", None)], Delete("/x", ANY_VERSION), EventKind.DELETED),
    ("data creation", WatchKind.DATA, [], Create("/x", None), EventKind.CREATED),
    ("child comes", WatchKind.CHILDREN, [Create("/x", None)], Create("/x/a", None), EventKind.CHILDREN_CHANGED),
    (
        "child goes",
        WatchKind.CHILDREN,
        [Create("/x", None), Create("/x/a", None)],
        Delete("/x/a", ANY_VERSION),
        EventKind.CHILDREN_CHANGED,
    ),
    ("parent goes", WatchKind.CHILDREN, [Create("/x", None)], Delete("/x", ANY_VERSION), EventKind.DELETED),
    ("parent comes", WatchKind.CHILDREN, [], Create("/x", None), EventKind.CREATED),
    ("comes", WatchKind.EXISTS, [], Create("/x", None), EventKind.CREATED),
    ("goes", WatchKind.EXISTS, [Create("/x", None)], Delete("/x", ANY_VERSION), EventKind.DELETED),
]


@pytest.mark.parametrize(
    ("kind", "before", "change", "told"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_what_a_watch_tells(
    session: ZooKeeperSession, kind: WatchKind, before: list[Operation], change: Operation, told: EventKind
):
    """Once, with the path as the watcher knows it (without the chroot); a missing znode is watched for its coming."""
    await session.multi(before)
    ear = Ear()
    await session.watch("/x", kind, ear)

    await session.multi([change])
    event = await ear.heard()
    await session.multi([Create("/x/again" if await session.exists("/x") else "/x", None)])
    await session.exists("/")

    assert event == WatchEvent(told, "/x")
    assert ear.events.empty()


async def test_nothing_happens_between_the_read_and_the_watch(session: ZooKeeperSession, open_session: OpenSession):
    """A reader that re-reads on every event sees the last state, however fast another writes."""
    writer = await open_session(session.settings.connect)
    await writer.multi([Create("/x", b"0")])
    last, seen = 500, []

    async def write_all() -> None:
        for number in range(1, last + 1):
            assert isinstance(await writer.multi([SetData("/x", b"%d" % number, number - 1)]), Committed)

    writing = asyncio.create_task(write_all())
    while not seen or seen[-1] != last:
        ear = Ear()
        node = await session.get("/x", watch=ear)
        assert node
        assert node.data
        seen.append(int(node.data))
        if seen[-1] != last:
            assert await ear.heard() == WatchEvent(EventKind.DATA_CHANGED, "/x")
    await writing

    assert sorted(set(seen)) == seen


async def test_a_change_is_told_before_anything_that_came_after_it_is_read(
    session: ZooKeeperSession, open_session: OpenSession
):
    """ZooKeeper's own promise: who watches hears of a change before it can see it, or anything later."""
    writer = await open_session(session.settings.connect)
    await writer.multi([Create("/x", b"0"), Create("/y", b"0")])
    for number in range(200):
        ear = Ear()
        await session.get("/x", watch=ear)
        await writer.multi([SetData("/x", b"", ANY_VERSION)])
        await writer.multi([SetData("/y", b"%d" % number, ANY_VERSION)])

        await session.get("/y")

        assert not ear.events.empty()


async def test_a_callback_comes_after_the_code_that_awaited_the_read(
    session: ZooKeeperSession, open_session: OpenSession
):
    """Whoever notes `changed = False` after a read must not overwrite the event of a change after that read."""
    writer = await open_session(session.settings.connect)
    await writer.multi([Create("/x", b"0")])
    order: list[str] = []
    told = asyncio.Event()

    def changed(_event: WatchEvent | None) -> None:
        order.append("told")
        told.set()

    for _ in range(200):
        order.clear()
        told.clear()
        racing = asyncio.create_task(writer.multi([SetData("/x", b"", ANY_VERSION)]))
        await session.get("/x", watch=changed)
        order.append("read")
        await session.multi([SetData("/x", b"", ANY_VERSION)])
        await told.wait()
        await racing

        assert order == ["read", "told"]


async def test_a_broken_connection_ends_all_watches_and_says_so(open_session: OpenSession):
    """None: whoever watches must read again, for anything may have happened meanwhile."""
    with zookeeper_server() as server:
        session = await open_session(server.address)
        ears: list[Ear] = [Ear(), Ear(), Ear()]
        await session.get("/", watch=ears[0])
        await session.children("/", watch=ears[1])
        await session.exists("/missing", watch=ears[2])

        await asyncio.to_thread(server.stop)

        assert [await ear.heard() for ear in ears] == [None, None, None]
        await session.close()


@pytest.mark.parametrize("make", [lambda: WatchEvent(EventKind.CREATED, "/x"), lambda: None])
def test_a_watch_is_told_once(make: Callable[[], WatchEvent | None]):
    """Even when ZooKeeper holds it twice: a read that was repeated arms it again."""
    told: list[WatchEvent | None] = []
    shot = OneShot(told.append)

    shot.fire(make())
    shot.fire(None)

    assert told == [make()]
