"""Raw peer that sends arbitrary bytes, and frames that resemble requests and responses."""

import asyncio
import socket
import struct

from kafka_wire.net.server import Peer


class RawPeer:
    """A peer that sends arbitrary bytes, and reads frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Send bytes unchanged."""
        self.writer.write(data)
        await self.writer.drain()

    async def send_frame(self, frame: bytes) -> None:
        """Send a frame with its size."""
        await self.send(struct.pack(">i", len(frame)) + frame)

    async def read_frame(self) -> bytes:
        """Read one frame, without its size."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def is_closed_by_server(self) -> bool:
        """Wait for the end of the stream; False if a byte arrives instead."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def reset(self) -> None:
        """Reset the connection, as a killed process does."""
        linger = struct.pack("ii", 1, 0)  # enabled with timeout 0: close sends RST
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        await self.close()

    async def close(self) -> None:
        """Close the socket in any state."""
        self.writer.transport.abort()
        await asyncio.sleep(0)


def request(correlation_id: int, payload: bytes = b"") -> bytes:
    """Build a frame that starts as every request does: key 3, version 1, a correlation id."""
    return struct.pack(">hhi", 3, 1, correlation_id) + payload


def response(correlation_id: int, payload: bytes = b"") -> bytes:
    """Build a response frame."""
    return struct.pack(">i", correlation_id) + payload


async def check_no_task_remains() -> None:
    """Fail if another task than the caller's is running, for fixtures that end after all others."""
    await asyncio.sleep(0)
    remaining = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert remaining == []


async def echo(_peer: Peer, frame: bytes) -> bytes:
    """Return the correlation id and payload of a request."""
    return frame[4:]
