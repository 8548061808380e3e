"""Watches on a real ZooKeeper: set with the read, fired once, in order."""

import asyncio
from collections.abc import Callable

import pytest

from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.watches import EventKind, OneShot, WatchEvent, WatchKind
from kafka_zookeeper.writes import ANY_VERSION, Committed, Create, Delete, Operation, SetData
from lab.peers.zookeeper import zookeeper_server
from tests.kafka_zookeeper.conftest import OpenSession

pytestmark = pytest.mark.zookeeper


class EventRecorder:
    """Watch callback that records events, and can be waited on."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[WatchEvent | None] = asyncio.Queue()

    def __call__(self, event: WatchEvent | None) -> None:
        self.events.put_nowait(event)

    async def next_event(self) -> WatchEvent | None:
        return await self.events.get()


CASES: list[tuple[str, WatchKind, list[Operation], Operation, EventKind]] = [
    ("data change", WatchKind.DATA, [Create("/x", None)], SetData("/x", b"", ANY_VERSION), EventKind.DATA_CHANGED),
    ("data deletion", WatchKind.DATA, [Create("/x", None)], Delete("/x", ANY_VERSION), EventKind.DELETED),
    ("data creation", WatchKind.DATA, [], Create("/x", None), EventKind.CREATED),
    ("child created", WatchKind.CHILDREN, [Create("/x", None)], Create("/x/a", None), EventKind.CHILDREN_CHANGED),
    (
        "child deleted",
        WatchKind.CHILDREN,
        [Create("/x", None), Create("/x/a", None)],
        Delete("/x/a", ANY_VERSION),
        EventKind.CHILDREN_CHANGED,
    ),
    ("parent deleted", WatchKind.CHILDREN, [Create("/x", None)], Delete("/x", ANY_VERSION), EventKind.DELETED),
    ("parent created", WatchKind.CHILDREN, [], Create("/x", None), EventKind.CREATED),
    ("created", WatchKind.EXISTS, [], Create("/x", None), EventKind.CREATED),
    ("deleted", WatchKind.EXISTS, [Create("/x", None)], Delete("/x", ANY_VERSION), EventKind.DELETED),
]


@pytest.mark.parametrize(
    ("kind", "before", "change", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_the_event_of_a_watch(
    session: ZooKeeperSession, kind: WatchKind, before: list[Operation], change: Operation, expected: EventKind
):
    """It fires once, with the path without the chroot; the watch of a missing znode fires when it is created."""
    await session.multi(before)
    recorder = EventRecorder()
    await session.watch("/x", kind, recorder)

    await session.multi([change])
    event = await recorder.next_event()
    await session.multi([Create("/x/again" if await session.exists("/x") else "/x", None)])
    await session.exists("/")

    assert event == WatchEvent(expected, "/x")
    assert recorder.events.empty()


async def test_no_change_is_missed_between_the_read_and_the_watch(session: ZooKeeperSession, open_session: OpenSession):
    """A reader that re-reads on every event sees the last state of a fast writer."""
    writer = await open_session(session.settings.connect)
    await writer.multi([Create("/x", b"0")])
    last, seen = 500, []

    async def write_all() -> None:
        for number in range(1, last + 1):
            assert isinstance(await writer.multi([SetData("/x", b"%d" % number, number - 1)]), Committed)

    writing = asyncio.create_task(write_all())
    while not seen or seen[-1] != last:
        recorder = EventRecorder()
        node = await session.get("/x", watch=recorder)
        assert node
        assert node.data
        seen.append(int(node.data))
        if seen[-1] != last:
            assert await recorder.next_event() == WatchEvent(EventKind.DATA_CHANGED, "/x")
    await writing

    assert sorted(set(seen)) == seen


async def test_the_event_of_a_change_precedes_reads_of_later_changes(
    session: ZooKeeperSession, open_session: OpenSession
):
    """ZooKeeper's guarantee: the event of a watched change arrives before the change, or a later one, is visible."""
    writer = await open_session(session.settings.connect)
    await writer.multi([Create("/x", b"0"), Create("/y", b"0")])
    for number in range(200):
        recorder = EventRecorder()
        await session.get("/x", watch=recorder)
        await writer.multi([SetData("/x", b"", ANY_VERSION)])
        await writer.multi([SetData("/y", b"%d" % number, ANY_VERSION)])

        await session.get("/y")

        assert not recorder.events.empty()


async def test_a_callback_is_called_after_the_code_that_awaited_the_read(
    session: ZooKeeperSession, open_session: OpenSession
):
    """Code that sets `changed = False` after a read must not overwrite the event of a later change."""
    writer = await open_session(session.settings.connect)
    await writer.multi([Create("/x", b"0")])
    order: list[str] = []
    fired = asyncio.Event()

    def changed(_event: WatchEvent | None) -> None:
        order.append("event")
        fired.set()

    for _ in range(200):
        order.clear()
        fired.clear()
        racing = asyncio.create_task(writer.multi([SetData("/x", b"", ANY_VERSION)]))
        await session.get("/x", watch=changed)
        order.append("read")
        await session.multi([SetData("/x", b"", ANY_VERSION)])
        await fired.wait()
        await racing

        assert order == ["read", "event"]


async def test_a_connection_loss_ends_all_watches_and_calls_their_callbacks(open_session: OpenSession):
    """With None: the watching component must read again, because the znode may have changed in the meantime."""
    with zookeeper_server() as server:
        session = await open_session(server.address)
        ears: list[EventRecorder] = [EventRecorder(), EventRecorder(), EventRecorder()]
        await session.get("/", watch=ears[0])
        await session.children("/", watch=ears[1])
        await session.exists("/missing", watch=ears[2])

        await asyncio.to_thread(server.stop)

        assert [await recorder.next_event() for recorder in ears] == [None, None, None]
        await session.close()


@pytest.mark.parametrize("make", [lambda: WatchEvent(EventKind.CREATED, "/x"), lambda: None])
def test_a_watch_fires_once(make: Callable[[], WatchEvent | None]):
    """Even if ZooKeeper has it twice, because a repeated read sets it again."""
    events: list[WatchEvent | None] = []
    shot = OneShot(events.append)

    shot.fire(make())
    shot.fire(None)

    assert events == [make()]
