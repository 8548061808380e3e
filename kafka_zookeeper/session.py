"""One ZooKeeper session for asyncio: reads, watches, transactions, and what becomes of the session.

A session is one life. When ZooKeeper ends it (state LOST) the object is finished: nothing is ever sent under another
session in its name, so that what it held (`/controller`, the fence) is never thought to be held still. Open a new one.

Reads are repeated by themselves after a broken connection. A transaction never is: its outcome may be Unknown. All callbacks
come in the loop's thread, in the order in which ZooKeeper's answers and events came; a watch's callback comes after the
code that awaited the read has gone on.

Left out: which znodes there are (`paths`, `formats`). Limits of kazoo 2.11: no persistent watches (opcode 106), and all
watches end with the connection, which their callbacks are told.
"""

import asyncio
import enum
import logging
import struct
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoNodeError,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.protocol.serialization import Exists, GetChildren, GetData
from kazoo.protocol.states import EventType, KazooState, WatchedEvent

from kafka_zookeeper import reads
from kafka_zookeeper.errors import ConnectFailedError, ConnectionLostError, SessionLostError, ZooKeeperError
from kafka_zookeeper.kazoo_client import Reply, make_client
from kafka_zookeeper.mailbox import Mailbox
from kafka_zookeeper.outcomes import outcome_of, refusal_of
from kafka_zookeeper.protocol import Answer, MultiRead, MultiWrite, Node, full_path
from kafka_zookeeper.settings import ZooKeeperSettings
from kafka_zookeeper.watches import EventKind, OneShot, WatchCallback, WatchEvent, WatchKind
from kafka_zookeeper.writes import Committed, Create, MultiResult, Operation, Refused, RefusedReason, Unknown

__all__ = ["Node", "SessionState", "ZooKeeperSession", "ensure_chroot"]

log = logging.getLogger(__name__)

MAX_REQUESTS_IN_FLIGHT = 128
"""kazoo wakes its thread by one byte a request through a socket pair that holds some 270 of them, and then blocks us."""

MAX_READ_ATTEMPTS = 8
"""Connections that may break under one read before it is given up."""

MAX_TURNS_OF_A_MISSING_ZNODE = 100
"""A znode that comes and goes each time between two of our reads is somebody's endless loop."""


class SessionState(enum.Enum):
    """What becomes of a session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """No connection: the session may have ended without our knowing."""
    LOST = "lost"
    """Over, for good: expired, refused, or closed by us."""


_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}

_EVENTS = {
    EventType.CREATED: EventKind.CREATED,
    EventType.DELETED: EventKind.DELETED,
    EventType.CHANGED: EventKind.DATA_CHANGED,
    EventType.CHILD: EventKind.CHILDREN_CHANGED,
}


class ZooKeeperSession:
    """One session; see `connect`. To be used from one event loop alone."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self.settings = settings
        self.chroot = settings.chroot
        self.state = SessionState.SUSPENDED
        self.session_id = 0
        """ZooKeeper's number for it, as in `Node.ephemeral_owner`; 0 before the first connection."""
        self._loop = asyncio.get_running_loop()
        self._mailbox = Mailbox(self._loop)
        self._settled = asyncio.Event()
        """Set unless SUSPENDED."""
        self._slots = asyncio.Semaphore(MAX_REQUESTS_IN_FLIGHT)
        self._listeners: list[Callable[[SessionState], None]] = []
        self._multi_read_supported = True
        self._closing = False
        self._stopping = threading.Lock()
        self._client = make_client(settings)
        self._client.add_listener(self._heard_state)

    @classmethod
    async def connect(cls, settings: ZooKeeperSettings) -> Self:
        """Open a session. Raises ConnectFailedError when there is none after settings.connect_timeout_ms."""
        session = cls(settings)
        try:
            session._client.start_async()
            async with asyncio.timeout(settings.connect_timeout_ms / 1000):
                await session._settled.wait()
        except TimeoutError as error:
            await session.close()
            raise ConnectFailedError(
                f"no session with ZooKeeper at {settings.connect} after {settings.connect_timeout_ms} ms: "
                "check that it runs and can be reached from here"
            ) from error
        except BaseException:
            await session.close()
            raise
        if session.state is SessionState.LOST:
            await session.close()
            raise ConnectFailedError(f"ZooKeeper at {settings.connect} refused a session")
        return session

    async def close(self) -> None:
        """End the session, and with it its ephemeral znodes, and free what it uses. Needed after LOST, too."""
        self._closing = True
        await asyncio.to_thread(self._stop_client)
        self._enter(SessionState.LOST, self.session_id)
        await asyncio.sleep(0)  # whoever listens has heard of it when this returns

    def abandon(self) -> None:
        """End the session from another thread, without help of the event loop, and with it its ephemeral znodes.

        For a loop that is blocked: when it runs again it is told LOST, and `close` is still needed.
        """
        with self._stopping:
            self._client.stop()

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        """Have every change of state told from now on."""
        self._listeners.append(callback)

    async def get(self, path: str, watch: WatchCallback | None = None) -> Node | None:
        """Read a znode; None where there is none. A watch is armed with the read: nothing can happen between the two.

        Where there is none, the watch tells of its coming.
        """
        watcher = self._watcher(watch)
        found = await self._read_or_await_creation(partial(GetData, self._full(path), watcher), path, watcher)
        return None if found is None else _node(*found)

    async def children(self, path: str, watch: WatchCallback | None = None) -> list[str] | None:
        """Read the names of a znode's children, sorted; None where there is no such znode. Watches as in `get`."""
        watcher = self._watcher(watch)
        found = await self._read_or_await_creation(partial(GetChildren, self._full(path), watcher), path, watcher)
        return None if found is None else sorted(found)

    async def exists(self, path: str, watch: WatchCallback | None = None) -> bool:
        """Ask whether a znode is there."""
        return await self._read(partial(Exists, self._full(path), self._watcher(watch))) is not None

    async def watch(self, path: str, kind: WatchKind, callback: WatchCallback) -> None:
        """Arm a watch without a use for what is there now."""
        read = {WatchKind.DATA: self.get, WatchKind.CHILDREN: self.children, WatchKind.EXISTS: self.exists}[kind]
        await read(path, watch=callback)

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        """Read many znodes as fast as can be; None where there is none. Not one instant's picture; see `reads`."""
        return await reads.multi_get(self, paths)

    async def multi_children(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Read the names of many znodes' children, sorted; None where there is no such znode."""
        return await reads.multi_children(self, paths)

    async def read_many(self, kind: int, paths: Sequence[str]) -> Answer:
        """Send one multi-read as it is; for `reads`, which knows how large it may be."""
        if not self._multi_read_supported:
            raise reads.MultiReadUnsupportedError("the server is older than ZooKeeper 3.6")
        await self._settled.wait()
        try:
            answer: Answer = await self._send(MultiRead(kind, [self._full(path) for path in paths]))
        except UnimplementedError as error:
            # Such a server also closes the connection; what follows waits for the next one by itself.
            self._multi_read_supported = False
            log.info("ZooKeeper is older than 3.6: znodes are read one by one")
            raise reads.MultiReadUnsupportedError("the server is older than ZooKeeper 3.6") from error
        except KazooException as error:
            raise ZooKeeperError(f"a multi-read failed: {error!r}") from error
        return answer

    async def multi(self, operations: Sequence[Operation]) -> MultiResult:
        """Do all operations at once or none of them. However it ends, the end is the value."""
        request = MultiWrite(operations, self.chroot, set_acl=self.settings.set_acl)
        if request.size_bytes > self.settings.max_packet_bytes:
            detail = f"{request.size_bytes} bytes, a server takes {self.settings.max_packet_bytes} (jute.maxbuffer)"
            return Refused(-1, RefusedReason.TOO_LARGE, detail)
        try:
            return outcome_of(await self._send(request))
        except ZooKeeperError as error:
            return Unknown(str(error))
        except KazooException as error:
            return refusal_of(error)

    async def ensure_path(self, path: str) -> None:
        """Create a znode and all above it that is missing, without data, as Kafka does. Raises ZooKeeperError."""
        parts = path.strip("/").split("/")
        for end in range(1, len(parts) + 1):
            await self._ensure_one("/" + "/".join(parts[:end]))

    async def _ensure_one(self, path: str) -> None:
        result: MultiResult = Unknown()
        for _ in range(MAX_READ_ATTEMPTS):
            if await self.exists(path):
                return
            result = await self.multi([Create(path, None)])
            if isinstance(result, Refused) and result.reason is not RefusedReason.NODE_EXISTS:
                break
        if not isinstance(result, Committed):
            raise ZooKeeperError(f"{self.chroot}{path} cannot be created: {result}")

    def _full(self, path: str) -> str:
        return full_path(self.chroot, path)

    async def _send(self, request: Any) -> Any:
        """Send one request and wait for its answer. Raises our errors for the connection's end, kazoo's for all else."""
        async with self._slots:
            if self.state is SessionState.LOST:
                raise SessionLostError("the session is over")
            reply = Reply(self._mailbox, self._loop)
            self._client._call(request, reply)  # noqa: SLF001 - the one way to send what kazoo has no API for
            try:
                return await reply.future
            except ConnectionLoss as error:
                raise ConnectionLostError("the connection broke before the answer came") from error
            except (SessionExpiredError, ConnectionClosedError, AuthFailedError) as error:
                raise SessionLostError(f"the session ended before the answer came ({error!r})") from error
            except (struct.error, ValueError) as error:
                raise ZooKeeperError(f"the answer to {request} cannot be understood ({error!r})") from error

    async def _read(self, make_request: Callable[[], Any]) -> Any:
        """Send a read, again after each broken connection; None where there is no znode."""
        for _ in range(MAX_READ_ATTEMPTS):
            await self._settled.wait()
            try:
                return await self._send(make_request())
            except ConnectionLostError:
                continue
            except NoNodeError:
                return None
            except KazooException as error:
                raise ZooKeeperError(f"{make_request()} failed: {error!r}") from error
        raise ConnectionLostError(f"{make_request()} was given up after {MAX_READ_ATTEMPTS} broken connections")

    async def _read_or_await_creation(self, make_request: Callable[[], Any], path: str, watcher: Any) -> Any:
        """Read; where there is no znode and a watch is wanted, arm it for its coming, which only an exists can do."""
        for _ in range(MAX_TURNS_OF_A_MISSING_ZNODE):
            found = await self._read(make_request)
            if found is not None or watcher is None:
                return found
            if await self._read(partial(Exists, self._full(path), watcher)) is None:
                return None
        raise ZooKeeperError(f"{path} came and went {MAX_TURNS_OF_A_MISSING_ZNODE} times while it was read")

    def _watcher(self, callback: WatchCallback | None) -> Callable[[WatchedEvent], None] | None:
        """Return what kazoo calls in its own thread; one object for a watch, however often it is armed."""
        if callback is None:
            return None
        shot = OneShot(callback)

        def heard(event: WatchedEvent) -> None:
            kind = _EVENTS.get(event.type)
            told = None if kind is None else WatchEvent(kind, event.path)
            # One turn later than the answers before it, whose awaiting code is to run first.
            self._mailbox.post(partial(self._loop.call_soon, shot.fire, told))

        return heard

    def _heard_state(self, state: str) -> None:
        """Take a change of state, in kazoo's thread."""
        if state == KazooState.LOST:
            # kazoo would open a new session under the same object; stopped here and now, it never sends anything again.
            self._client._stopped.set()  # noqa: SLF001
        session_id = self._client._session_id or 0  # noqa: SLF001
        self._mailbox.post(partial(self._enter, _STATES[state], session_id))

    def _enter(self, state: SessionState, session_id: int) -> None:
        if state is self.state or self.state is SessionState.LOST:
            return
        self.state = state
        if state is SessionState.SUSPENDED:
            self._settled.clear()
        else:
            self.session_id = session_id or self.session_id
            self._settled.set()
        log.log(
            logging.INFO if self._closing or state is SessionState.CONNECTED else logging.WARNING,
            "ZooKeeper session %s",
            "closed" if self._closing else state.value,
            extra={"session_id": f"{self.session_id & 0xFFFFFFFFFFFFFFFF:#x}", "zookeeper": self.settings.connect},
        )
        for listener in self._listeners:
            self._loop.call_soon(listener, state)

    def _stop_client(self) -> None:
        """End kazoo's thread and free its sockets; the first half is a no-op after LOST."""
        with self._stopping:
            self._client.stop()
            self._client._safe_close()  # noqa: SLF001
            self._client.close()


async def ensure_chroot(settings: ZooKeeperSettings) -> None:
    """Create the chroot of a connect string where it is missing, as a broker does at its start."""
    if not settings.chroot:
        return
    session = await ZooKeeperSession.connect(settings.without_chroot())
    try:
        await session.ensure_path(settings.chroot)
    finally:
        await session.close()


def _node(data: bytes | None, stat: Any) -> Node:
    return Node(data, stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)
