"""Fake ZooKeeper for faults: it opens sessions, and returns the configured responses."""

import asyncio
import contextlib
import struct
import time
from collections.abc import Callable

CLOSE_SESSION, PING = -11, 11
UNIMPLEMENTED = -6

Response = tuple[int, bytes] | None
"""Error code and body; None closes the connection instead."""


class FakeZooKeeper:
    """One server; `responses` maps an opcode to a function of the body. Other opcodes have no response."""

    def __init__(self) -> None:
        self.responses: dict[int, Callable[[bytes], Response]] = {}
        self.seen: list[int] = []
        """Opcodes, without pings."""
        self.close_after_error = False
        """Close the connection after an unknown opcode, as a server does."""
        self.session_timeout_ms = 10_000
        """Session timeout in the response; 0 means that the session has expired."""
        self.connections = 0
        self.unanswered = 0
        """Number of next connections that are accepted without any response."""
        self.over_at: float | None = None
        """Time (time.monotonic) at which the session expires."""
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def address(self) -> str:
        """Return host:port."""
        assert self._server
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def drop_connections(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.transport.abort()

    async def stop(self) -> None:
        """End the server and its connections."""
        assert self._server
        self._server.close()
        self.drop_connections()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await _packet(reader)
            self.connections += 1
            if self.unanswered:
                self.unanswered -= 1
                await reader.read()
                return
            over = self.over_at is not None and time.monotonic() >= self.over_at
            granted_ms = 0 if over else self.session_timeout_ms
            _send(writer, struct.pack("!iiqi16s?", 0, granted_ms, 77, 16, b"p" * 16, False))
            while await self._answer_one(await _packet(reader), writer):
                await writer.drain()
        self._writers.discard(writer)
        writer.close()

    async def _answer_one(self, packet: bytes, writer: asyncio.StreamWriter) -> bool:
        xid, opcode = struct.unpack_from("!ii", packet)
        if opcode == PING:
            _send(writer, struct.pack("!iqi", -2, 1, 0))
            return True
        if opcode == CLOSE_SESSION:
            _send(writer, struct.pack("!iqi", xid, 1, 0))
            return False
        self.seen.append(opcode)
        if opcode not in self.responses:
            return True
        response = self.responses[opcode](packet[8:])
        if response is None:
            return False
        _send(writer, struct.pack("!iqi", xid, 1, response[0]) + response[1])
        return not (response[0] and self.close_after_error)


async def _packet(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(struct.unpack("!i", await reader.readexactly(4))[0])


def _send(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(struct.pack("!i", len(body)) + body)
