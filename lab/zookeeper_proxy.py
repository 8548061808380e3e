"""A TCP proxy between a client and ZooKeeper that breaks a connection at a chosen transaction.

It passes ZooKeeper's frames and reads the transactions among them. When one comes that a fault waits for, the connection is cut
with the transaction done (it is passed on and its answer is not) or not done (it is not passed on), or everything is held from
that request on, until it is released: packets that are late, or, past the session's time-out, a black hole. A fault happens once.

Requests other than transactions pass unread. It has neither TLS nor more than one server.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import struct
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lab.jute import CHECK, CREATES, DELETE, MULTI, SET_DATA, Reader
from lab.loop_thread import LoopThread
from lab.missing import LabError
from lab.ports import free_port, release_port

HAPPENS_TIMEOUT_S = 30.0
"""For a fault to happen once what brings it about is under way."""


class Operation(NamedTuple):
    """One operation of a requested transaction."""

    kind: int
    """CREATE, SET_DATA, DELETE or CHECK, as `lab.jute` has them."""
    path: str
    data: bytes
    """Empty for a delete and a check."""


Matches = Callable[[Operation], bool]


class End(enum.Enum):
    """What happens to the request that a fault waited for, and to its connection."""

    DONE = "done"
    """It is carried out, its answer is lost, and so is the connection."""
    NOT_DONE = "not done"
    """It is lost, with the connection."""
    HELD = "held"
    """It waits, with all that comes behind it in both directions, until it is released."""


class Fault:
    """One fault that waits for its request; `wait` for it to have happened."""

    def __init__(self, matches: Matches, end: End) -> None:
        self.matches = matches
        self.end = end
        self.happened = threading.Event()

    def wait(self, timeout_s: float = HAPPENS_TIMEOUT_S) -> None:
        """Return once it has happened."""
        if not self.happened.wait(timeout_s):
            raise LabError(f"no transaction for the fault '{self.end.value}' within {timeout_s:g} s")


class ZooKeeperProxy:
    """A proxy of the server at `server_port` of 127.0.0.1, on a port of its own, which it keeps."""

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
        """End it, with all connections."""
        self._thread.call(self._stop)
        self._thread.close()
        release_port(self.port)

    def arm(self, matches: Matches, end: End) -> Fault:
        """Let a fault happen at the next transaction with an operation that matches."""
        fault = Fault(matches, end)
        self._thread.call(self._faults.append, fault)
        return fault

    def hold(self) -> None:
        """Hold everything in both directions from now on, on new connections too."""
        self._thread.call(self._passing.clear)

    def release(self) -> None:
        """Pass on what is held, and all that follows."""
        self._thread.call(self._passing.set)

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Hold everything while the block lasts."""
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
        """Return the fault that waited for this request, and remove it from those that wait."""
        operations = operations_of(frame) if self._faults else []
        for fault in self._faults:
            if any(map(fault.matches, operations)):
                self._faults.remove(fault)
                return fault
        return None


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Link:
    """One client's connection and the one to the server behind it."""

    def __init__(
        self, client: Streams, server: Streams, passing: asyncio.Event, due: Callable[[bytes], Fault | None]
    ) -> None:
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._passing = passing
        self._due = due
        self._last: Fault | None = None
        """The fault that ends this connection, once its transaction is answered."""
        self._last_xid = 0

    async def run(self) -> None:
        """Pass frames until either side ends, or a fault does it."""
        both = [asyncio.create_task(self._up()), asyncio.create_task(self._down())]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            await self._passing.wait()  # a black hole swallows a connection's end as well
        finally:
            self.cut()
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    def cut(self) -> None:
        """End both connections without another byte."""
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
    """Yield a proxy that passes everything; it ends with the block."""
    proxy = ZooKeeperProxy(server_port)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.close()
