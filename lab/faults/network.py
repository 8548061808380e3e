"""Network between processes on this machine that can isolate one of them: TCP proxies, one for each process that others connect to.

A process that is isolated neither reaches others through the network nor is reached: bytes wait, as behind a switch that drops packets, and
arrive when the network heals, unless a side has closed the connection by then. Who connects is found by the owner of the socket (proc(5)), since
all come from the same address; that takes some 20 ms, so that it is done only while a member is isolated: on a busy machine, brokers that
connect again and again would otherwise give up each connection before it is served. What does not go through the network, such as
clients at other ports, goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.processes.loop_thread import LoopThread
from lab.processes.ports import free_port, release_port

HOST = "127.0.0.1"
READ_BYTES = 65_536
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Connections of this machine; a JVM's are in the second one."""
INODE_FIELD, LOCAL_FIELD, REMOTE_FIELD = 9, 1, 2


@dataclass(frozen=True, slots=True)
class _Member:
    """A process that others reach at `port` through the network."""

    port: int
    target_port: int
    pid: Callable[[], int]


@dataclass(slots=True, eq=False)
class _Connection:
    """A connection to the member `to`. `source` is the member that has opened it, empty for others, None while it is unknown."""

    to: str
    ports: tuple[int, int]
    """Of the source's socket: local and remote."""
    source: str | None = None


class Network:
    """The proxies; all are connected at first."""

    def __init__(self) -> None:
        self._loop = LoopThread("network")
        self._members: dict[str, _Member] = {}
        self._connections: set[_Connection] = set()
        self._isolated: frozenset[str] = frozenset()
        self._healed = asyncio.Event()
        self._loop.start()

    def reserve(self) -> int:
        """Return a port for a member that is added later."""
        return free_port()

    def add(self, name: str, port: int, target_port: int, pid: Callable[[], int]) -> None:
        """Let others reach a process at `port`, which `reserve` returned. `pid` returns that of its current process."""
        self._members[name] = _Member(port, target_port, pid)
        self._loop.wait(self._listen(name))

    def isolate(self, *names: str) -> None:
        """Hold back all bytes from and to these members."""
        self._loop.wait(self._set(frozenset(names)))

    def heal(self) -> None:
        """Connect all again."""
        self._loop.wait(self._set(frozenset()))

    def close(self) -> None:
        """End all connections, and give the ports back."""
        self._loop.close()
        for member in self._members.values():
            release_port(member.port)

    async def _set(self, isolated: frozenset[str]) -> None:
        self._isolated = isolated
        self._find_sources()
        self._healed.set()
        self._healed = asyncio.Event()

    async def _listen(self, name: str) -> None:
        await asyncio.start_server(
            lambda reader, writer: self._serve(name, reader, writer), HOST, self._members[name].port
        )

    async def _serve(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        local, remote = (writer.get_extra_info(end)[1] for end in ("peername", "sockname"))
        connection = _Connection(name, (local, remote))
        self._connections.add(connection)
        self._find_sources()
        outward: asyncio.StreamWriter | None = None
        try:
            await self._wait_for(connection)
            inward, outward = await asyncio.open_connection(HOST, self._members[name].target_port)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._copy(connection, reader, outward))
                tasks.create_task(self._copy(connection, inward, writer))
        except* OSError:
            pass  # A side has closed the connection, or the process does not run.
        finally:
            self._connections.discard(connection)
            for direction in (writer, outward):
                if direction is not None:
                    direction.close()

    async def _copy(self, connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            data = await reader.read(READ_BYTES)
            await self._wait_for(connection)
            if not data:
                raise ConnectionResetError("a side has closed the connection")
            writer.write(data)
            await writer.drain()

    async def _wait_for(self, connection: _Connection) -> None:
        while self._isolated & {connection.to, connection.source}:
            await self._healed.wait()

    def _find_sources(self) -> None:
        """Find the sources that are not known yet, if a member is isolated."""
        if not self._isolated:
            return
        unknown = [connection for connection in self._connections if connection.source is None]
        if not unknown:
            return
        inodes, owners = _inodes(), self._owners()
        for link in unknown:
            link.source = owners.get(inodes.get(link.ports, ""), "")

    def _owners(self) -> dict[str, str]:
        """Return the members by what their processes have open, such as `socket:[1234]`."""
        owners: dict[str, str] = {}
        for name, member in self._members.items():
            with contextlib.suppress(LabError, KeyError):  # it was never started
                owners.update(dict.fromkeys(_files(member.pid()), name))
        return owners


def _inodes() -> dict[tuple[int, int], str]:
    """Return the sockets of this machine by their local and remote port, as `_files` has them."""
    found: dict[tuple[int, int], str] = {}
    for table in TABLES:
        for line in table.read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            local, remote = (int(fields[place].rpartition(":")[2], 16) for place in (LOCAL_FIELD, REMOTE_FIELD))
            found[local, remote] = f"socket:[{fields[INODE_FIELD]}]"
    return found


def _files(pid: int) -> Iterator[str]:
    """Yield what the open files of a process are."""
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield str(path.readlink())
