"""ZooKeeper session for asyncio: reads, watches, transactions, and the state of the session.

An object represents exactly one session. After ZooKeeper has ended it (state LOST) the object sends no further requests: under another
session, the owner would wrongly assume that it still holds its ephemeral znodes (`/controller`, the fence). Open a new object.

Reads are retried after a connection loss. Transactions are not: their outcome may be Unknown. All callbacks are called in the loop's
thread, in the order of ZooKeeper's responses and events; a watch's callback is called after the code that awaited the read has
continued.

Limits of kazoo 2.11: there are no persistent watches (opcode 106), and all watches end with the connection; their callbacks are
called with None.
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
from kafka_zookeeper.protocol import MultiRead, MultiReadResponse, MultiWrite, Node, full_path
from kafka_zookeeper.settings import ZooKeeperSettings
from kafka_zookeeper.watches import EventKind, OneShot, WatchCallback, WatchEvent, WatchKind
from kafka_zookeeper.writes import Committed, Create, MultiResult, Operation, Refused, RefusedReason, Unknown

__all__ = ["ConnectFailedError", "Node", "SessionState", "ZooKeeperError", "ZooKeeperSession", "ensure_chroot"]

log = logging.getLogger(__name__)

MAX_REQUESTS_IN_FLIGHT = 128
"""kazoo wakes its thread with one byte per request through a socket pair that holds about 270 of them, and then blocks the caller."""

MAX_READ_ATTEMPTS = 8
"""Lost connections after which a read fails."""

MAX_CREATION_RACES = 100
"""Attempts to watch a missing znode that another client creates and deletes each time between two reads."""


class SessionState(enum.Enum):
    """State of a session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """No connection: the session may have expired."""
    LOST = "lost"
    """Final: the session expired, was rejected, or was closed."""


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
    """One session, created by `connect`. It must be used from a single event loop."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self.settings = settings
        self.chroot = settings.chroot
        self.state = SessionState.SUSPENDED
        self.session_id = 0
        """ZooKeeper's session id, as in `Node.ephemeral_owner`; 0 before the first connection."""
        self._loop = asyncio.get_running_loop()
        self._mailbox = Mailbox(self._loop)
        self._not_suspended = asyncio.Event()
        """Set unless the state is SUSPENDED."""
        self._slots = asyncio.Semaphore(MAX_REQUESTS_IN_FLIGHT)
        self._listeners: list[Callable[[SessionState], None]] = []
        self._multi_read_supported = True
        self._closing = False
        self._stopping = threading.Lock()
        self._client = make_client(settings)
        self._client.add_listener(self._on_kazoo_state)

    @classmethod
    async def connect(cls, settings: ZooKeeperSettings) -> Self:
        """Open a session. Raises ConnectFailedError if there is none after settings.connect_timeout_ms."""
        session = cls(settings)
        try:
            session._client.start_async()
            async with asyncio.timeout(settings.connect_timeout_ms / 1000):
                await session._not_suspended.wait()
        except TimeoutError as error:
            await session.close()
            raise ConnectFailedError(
                f"no session with ZooKeeper at {settings.connect} after {settings.connect_timeout_ms} ms: "
                "check that it runs and that it can be reached from this host"
            ) from error
        except BaseException:
            await session.close()
            raise
        if session.state is SessionState.LOST:
            await session.close()
            raise ConnectFailedError(
                f"ZooKeeper at {settings.connect} rejected the session; its log contains the reason"
            )
        return session

    async def close(self) -> None:
        """End the session, which deletes its ephemeral znodes, and release all resources. Also required after LOST."""
        self._closing = True
        await asyncio.to_thread(self._stop_client)
        self._set_state(SessionState.LOST, self.session_id)
        await asyncio.sleep(0)  # listeners are called before this returns

    def abandon(self) -> None:
        """End the session, which deletes its ephemeral znodes, from another thread without the event loop.

        For a blocked event loop: when it runs again, the state becomes LOST, and `close` is still required.
        """
        with self._stopping:
            self._client.stop()

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        """Call `callback` on every future change of the state."""
        self._listeners.append(callback)

    async def get(self, path: str, watch: WatchCallback | None = None) -> Node | None:
        """Read a znode; None if it does not exist. The read sets the watch, so no event is missed between the two.

        If the znode does not exist, the watch fires when it is created.
        """
        watcher = self._watcher(watch)
        found = await self._read_or_await_creation(partial(GetData, self._full(path), watcher), path, watcher)
        return None if found is None else _node(*found)

    async def children(self, path: str, watch: WatchCallback | None = None) -> list[str] | None:
        """Read the sorted names of a znode's children; None if the znode does not exist. Watches as in `get`."""
        watcher = self._watcher(watch)
        found = await self._read_or_await_creation(partial(GetChildren, self._full(path), watcher), path, watcher)
        return None if found is None else sorted(found)

    async def exists(self, path: str, watch: WatchCallback | None = None) -> bool:
        """Return whether a znode exists."""
        return await self._read(partial(Exists, self._full(path), self._watcher(watch))) is not None

    async def watch(self, path: str, kind: WatchKind, callback: WatchCallback) -> None:
        """Set a watch without returning the current value."""
        read = {WatchKind.DATA: self.get, WatchKind.CHILDREN: self.children, WatchKind.EXISTS: self.exists}[kind]
        await read(path, watch=callback)

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        """Read many znodes at maximum speed; None for each that does not exist. Not a consistent snapshot; see `reads`."""
        return await reads.multi_get(self, paths)

    async def multi_children(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Read the sorted names of many znodes' children; None for each znode that does not exist."""
        return await reads.multi_children(self, paths)

    async def read_many(self, kind: int, paths: Sequence[str]) -> MultiReadResponse:
        """Send one multi-read; for `reads`, which limits its size."""
        if not self._multi_read_supported:
            raise reads.MultiReadUnsupportedError("the server is older than ZooKeeper 3.6")
        await self._not_suspended.wait()
        try:
            response: MultiReadResponse = await self._send(MultiRead(kind, [self._full(path) for path in paths]))
        except UnimplementedError as error:
            # Such a server also closes the connection; the following requests wait for the next one.
            self._multi_read_supported = False
            log.info("ZooKeeper server is older than 3.6; reading znodes one at a time")
            raise reads.MultiReadUnsupportedError("the server is older than ZooKeeper 3.6") from error
        except KazooException as error:
            raise ZooKeeperError(f"a multi-read failed: {error!r}") from error
        return response

    async def multi(self, operations: Sequence[Operation]) -> MultiResult:
        """Execute a transaction: all operations or none. Every outcome is returned, none is raised."""
        request = MultiWrite(operations, self.chroot, set_acl=self.settings.set_acl)
        if request.size_bytes > self.settings.max_packet_bytes:
            detail = f"{request.size_bytes} bytes, the limit is {self.settings.max_packet_bytes} (jute.maxbuffer)"
            return Refused(-1, RefusedReason.TOO_LARGE, detail)
        try:
            return outcome_of(await self._send(request))
        except ZooKeeperError as error:
            return Unknown(str(error))
        except KazooException as error:
            return refusal_of(error)

    async def ensure_path(self, path: str) -> None:
        """Create a znode and its missing ancestors, without data, as Kafka does. Raises ZooKeeperError."""
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
            raise ZooKeeperError(f"{self.chroot}{path} could not be created: {result}")

    def _full(self, path: str) -> str:
        return full_path(self.chroot, path)

    async def _send(self, request: Any) -> Any:
        """Send one request and wait for its response. Raises the errors of this package for a connection loss, else kazoo's."""
        async with self._slots:
            if self.state is SessionState.LOST:
                raise SessionLostError("the ZooKeeper session has ended")
            reply = Reply(self._mailbox, self._loop)
            self._client._call(request, reply)  # noqa: SLF001 -- kazoo has no API for these requests
            try:
                return await reply.future
            except ConnectionLoss as error:
                raise ConnectionLostError("the ZooKeeper connection was lost before the response arrived") from error
            except (SessionExpiredError, ConnectionClosedError, AuthFailedError) as error:
                raise SessionLostError(
                    f"the ZooKeeper session ended before the response arrived ({error!r})"
                ) from error
            except (struct.error, ValueError) as error:
                raise ZooKeeperError(f"the response to {request} is malformed ({error!r})") from error

    async def _read(self, make_request: Callable[[], Any]) -> Any:
        """Send a read, and retry it after each connection loss; None if the znode does not exist."""
        for _ in range(MAX_READ_ATTEMPTS):
            await self._not_suspended.wait()
            try:
                return await self._send(make_request())
            except ConnectionLostError:
                continue
            except NoNodeError:
                return None
            except KazooException as error:
                raise ZooKeeperError(f"{make_request()} failed: {error!r}") from error
        raise ConnectionLostError(f"{make_request()} failed after {MAX_READ_ATTEMPTS} lost connections")

    async def _read_or_await_creation(self, make_request: Callable[[], Any], path: str, watcher: Any) -> Any:
        """Read; if the znode does not exist, set a requested watch for its creation, which only `exists` can do."""
        for _ in range(MAX_CREATION_RACES):
            found = await self._read(make_request)
            if found is not None or watcher is None:
                return found
            if await self._read(partial(Exists, self._full(path), watcher)) is None:
                return None
        raise ZooKeeperError(f"{path} was created and deleted {MAX_CREATION_RACES} times while it was read")

    def _watcher(self, callback: WatchCallback | None) -> Callable[[WatchedEvent], None] | None:
        """Return the watcher for kazoo, which calls it in its thread; one object for a watch, however often it is set."""
        if callback is None:
            return None
        shot = OneShot(callback)

        def watcher(event: WatchedEvent) -> None:
            kind = _EVENTS.get(event.type)
            watch_event = None if kind is None else WatchEvent(kind, event.path)
            # One iteration of the loop later than the responses before it, so that the code that awaits these runs first.
            self._mailbox.post(partial(self._loop.call_soon, shot.fire, watch_event))

        return watcher

    def _on_kazoo_state(self, state: str) -> None:
        """Process a change of the state, in kazoo's thread."""
        if state == KazooState.LOST:
            # kazoo would open a new session with the same object; stopping it here prevents any further request.
            self._client._stopped.set()  # noqa: SLF001
        session_id = self._client._session_id or 0  # noqa: SLF001
        self._mailbox.post(partial(self._set_state, _STATES[state], session_id))

    def _set_state(self, state: SessionState, session_id: int) -> None:
        if state is self.state or self.state is SessionState.LOST:
            return
        self.state = state
        if state is SessionState.SUSPENDED:
            self._not_suspended.clear()
        else:
            self.session_id = session_id or self.session_id
            self._not_suspended.set()
        log.log(
            logging.INFO if self._closing or state is SessionState.CONNECTED else logging.WARNING,
            "ZooKeeper session %s",
            "closed" if self._closing else state.value,
            extra={"session_id": f"{self.session_id & 0xFFFFFFFFFFFFFFFF:#x}", "zookeeper": self.settings.connect},
        )
        for listener in self._listeners:
            self._loop.call_soon(listener, state)

    def _stop_client(self) -> None:
        """End kazoo's thread and close its sockets; the first half has no effect after LOST."""
        with self._stopping:
            self._client.stop()
            self._client._safe_close()  # noqa: SLF001
            self._client.close()


async def ensure_chroot(settings: ZooKeeperSettings) -> None:
    """Create the chroot of a connect string if it is missing, as a broker does at its start."""
    if not settings.chroot:
        return
    session = await ZooKeeperSession.connect(settings.without_chroot())
    try:
        await session.ensure_path(settings.chroot)
    finally:
        await session.close()


def _node(data: bytes | None, stat: Any) -> Node:
    return Node(data, stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)
