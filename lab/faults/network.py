"""Network between processes on this machine that can isolate one of them: TCP proxies, one for each process that others connect to.

A process that is isolated neither reaches others through the network nor is reached: bytes wait, as behind a switch that drops packets, and
arrive when the network heals, unless a side has closed the connection by then. Who connects is found by the owner of the socket (proc(5)), since
all come from the same address. What does not go through the network, such as clients at other ports, goes on.
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


class Network:
    """The proxies; all are connected at first."""

    def __init__(self) -> None:
        self._loop = LoopThread("network")
        self._members: dict[str, _Member] = {}
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
        self._healed.set()
        self._healed = asyncio.Event()

    async def _listen(self, name: str) -> None:
        await asyncio.start_server(
            lambda reader, writer: self._serve(name, reader, writer), HOST, self._members[name].port
        )

    async def _serve(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {name, self._source(writer)}
        outward: asyncio.StreamWriter | None = None
        try:
            await self._wait_for(ends)
            inward, outward = await asyncio.open_connection(HOST, self._members[name].target_port)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._copy(ends, reader, outward))
                tasks.create_task(self._copy(ends, inward, writer))
        except* OSError:
            pass  # A side has closed the connection, or the process does not run.
        finally:
            for one in (writer, outward):
                if one is not None:
                    one.close()

    async def _copy(self, ends: set[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            data = await reader.read(READ_BYTES)
            await self._wait_for(ends)
            if not data:
                raise ConnectionResetError("a side has closed the connection")
            writer.write(data)
            await writer.drain()

    async def _wait_for(self, ends: set[str]) -> None:
        while self._isolated & ends:
            await self._healed.wait()

    def _source(self, writer: asyncio.StreamWriter) -> str:
        """Return the member whose process has the other end of a connection; an empty name for others."""
        local, remote = (writer.get_extra_info(name)[1] for name in ("peername", "sockname"))
        inode = _inode(local, remote)
        for name, member in self._members.items():
            with contextlib.suppress(LabError, KeyError):  # it was never started
                if inode is not None and f"socket:[{inode}]" in _files(member.pid()):
                    return name
        return ""


def _inode(local_port: int, remote_port: int) -> str | None:
    """Return the inode of the socket with these ports."""
    for table in TABLES:
        for line in table.read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            ports = tuple(int(fields[place].rpartition(":")[2], 16) for place in (LOCAL_FIELD, REMOTE_FIELD))
            if ports == (local_port, remote_port):
                return fields[INODE_FIELD]
    return None


def _files(pid: int) -> Iterator[str]:
    """Yield what the open files of a process are."""
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield str(path.readlink())
