"""TCP proxy between a client and ZooKeeper that injects a fault at a chosen transaction.

It forwards ZooKeeper's frames and decodes transactions. At the transaction that a fault waits for, the connection is closed after the
transaction was executed (the request is forwarded, the response is not) or before it (the request is not forwarded), or all frames from
that request on are held until they are released: a delay, or, if longer than the session timeout, a network partition. A fault occurs
once.

Requests other than transactions are not decoded. There is no TLS, and one server.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import struct
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lab.errors import LabError
from lab.jute import CHECK, CREATES, DELETE, MULTI, SET_DATA, Reader
from lab.processes.loop_thread import LoopThread
from lab.processes.ports import free_port, release_port

HAPPENS_TIMEOUT_S = 30.0
"""Timeout for a fault to occur after its cause was started."""


class Operation(NamedTuple):
    """One operation of a requested transaction."""

    kind: int
    """CREATE, SET_DATA, DELETE or CHECK, as `lab.jute` has them."""
    path: str
    data: bytes
    """Empty for a delete and a check."""


Matches = Callable[[Operation], bool]


class End(enum.Enum):
    """Effect of a fault on its request and the connection."""

    DONE = "done"
    """The request is executed; its response and the connection are lost."""
    NOT_DONE = "not done"
    """The request and the connection are lost."""
    HELD = "held"
    """The request and all later frames in both directions wait until they are released."""


class Fault:
    """One fault, which waits for its request; `wait` returns after it occurred."""

    def __init__(self, matches: Matches, end: End) -> None:
        self.matches = matches
        self.end = end
        self.happened = threading.Event()

    def wait(self, timeout_s: float = HAPPENS_TIMEOUT_S) -> None:
        """Wait until it has occurred."""
        if not self.happened.wait(timeout_s):
            raise LabError(f"no transaction for the fault '{self.end.value}' within {timeout_s:g} s")


class ZooKeeperProxy:
    """A proxy of the server at `server_port` of 127.0.0.1, on its own port, which it keeps."""

    def __init__(self, server_port: int) -> None:
        self.port = free_port()
        self._server_port = server_port
        self._passing = asyncio.Event()
        self._passing.set()
        self._faults: list[Fault] = []
        self._links: set[_Link] = set()
        self._thread = LoopThread("lab-zookeeper-proxy")

    def connect(self, chroot: str = "") -> str:
        """Return the connect string with a chroot, as `ZooKeeperServer.connect` does."""
        return f"127.0.0.1:{self.port}{chroot}"

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        self._server = self._thread.wait(asyncio.start_server(self._serve, "127.0.0.1", self.port))

    def close(self) -> None:
        """Close it and all connections."""
        self._thread.call(self._stop)
        self._thread.close()
        release_port(self.port)

    def arm(self, matches: Matches, end: End) -> Fault:
        """Inject a fault at the next transaction with a matching operation."""
        fault = Fault(matches, end)
        self._thread.call(self._faults.append, fault)
        return fault

    def hold(self) -> None:
        """Hold all frames in both directions from now on, also on new connections."""
        self._thread.call(self._passing.clear)

    def release(self) -> None:
        """Forward held and all later frames."""
        self._thread.call(self._passing.set)

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Hold all frames during the block."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def _stop(self) -> None:
        self._server.close()
        for link in list(self._links):
            link.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream = await asyncio.open_connection("127.0.0.1", self._server_port)
        except OSError:
            writer.transport.abort()
            return
        link = _Link((reader, writer), upstream, self._passing, self._due)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    def _due(self, frame: bytes) -> Fault | None:
        """Return the fault that waited for this request, and remove it from the waiting ones."""
        operations = operations_of(frame) if self._faults else []
        for fault in self._faults:
            if any(map(fault.matches, operations)):
                self._faults.remove(fault)
                return fault
        return None


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Link:
    """The connections to one client and to the server."""

    def __init__(
        self, client: Streams, server: Streams, passing: asyncio.Event, due: Callable[[bytes], Fault | None]
    ) -> None:
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._passing = passing
        self._due = due
        self._last: Fault | None = None
        """The fault that closes this connection after the response to its transaction."""
        self._last_xid = 0

    async def run(self) -> None:
        """Forward frames until one side or a fault closes the connection."""
        both = [asyncio.create_task(self._up()), asyncio.create_task(self._down())]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            await self._passing.wait()  # a partition also hides the end of a connection
        finally:
            self.cut()
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    def cut(self) -> None:
        """Close both connections without sending more."""
        self._to_client.transport.abort()
        self._to_server.transport.abort()

    async def _up(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            is_first = True  # the request for a session has no header
            while True:
                frame = await _receive(self._from_client)
                fault = None if is_first else self._due(frame)
                is_first = False
                if fault is not None and fault.end is End.HELD:
                    self._passing.clear()
                    fault.happened.set()
                await self._passing.wait()
                if fault is not None and fault.end is End.NOT_DONE:
                    self.cut()
                    fault.happened.set()
                    return
                if fault is not None and fault.end is End.DONE:
                    self._last_xid, self._last = Reader(frame).int32(), fault
                _send(self._to_server, frame)
                await self._to_server.drain()
                if self._last is not None:
                    await asyncio.Event().wait()  # nothing behind it is passed on; its answer ends the link

    async def _down(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            is_first = True
            while True:
                frame = await _receive(self._from_server)
                await self._passing.wait()
                if self._last is not None and not is_first and Reader(frame).int32() == self._last_xid:
                    self.cut()
                    self._last.happened.set()
                    return
                is_first = False
                _send(self._to_client, frame)
                await self._to_client.drain()


def operations_of(frame: bytes) -> list[Operation]:
    """Return the operations of a request: none unless it is a transaction."""
    reader = Reader(frame, 4)
    found: list[Operation] = []
    if reader.int32() != MULTI:
        return found
    while True:
        kind, is_last, _ = reader.int32(), reader.boolean(), reader.int32()
        if is_last:
            return found
        path = reader.text()
        data = b""
        if kind in CREATES:
            data = reader.buffer() or b""
            reader.skip_acl()
            reader.int32()
        elif kind == SET_DATA:
            data = reader.buffer() or b""
            reader.int32()
        elif kind in {DELETE, CHECK}:
            reader.int32()
        else:
            raise LabError(f"a transaction has an operation of the unknown kind {kind}")
        found.append(Operation(kind, path, data))


async def _receive(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


def _send(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(struct.pack(">i", len(frame)) + frame)


@contextlib.contextmanager
def zookeeper_proxy(server_port: int) -> Iterator[ZooKeeperProxy]:
    """Yield a proxy without faults; it is closed at the end of the block."""
    proxy = ZooKeeperProxy(server_port)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.close()
