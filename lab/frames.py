"""Length-prefixed frames over a blocking socket: four bytes of size, then the content, as in ZooKeeper and Kafka."""

from __future__ import annotations

import socket
import struct

SIZE = struct.Struct(">i")


def send_frame(to: socket.socket, frame: bytes) -> None:
    """Send one frame with its size before it."""
    to.sendall(SIZE.pack(len(frame)) + frame)


def receive_frame(source: socket.socket) -> bytes | None:
    """Read one frame without its size; None at the connection's end."""
    size = _exactly(source, SIZE.size)
    return None if size is None else _exactly(source, SIZE.unpack(size)[0])


def _exactly(source: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        chunk = source.recv(count - len(data))
        if not chunk:
            return None
        data += chunk
    return bytes(data)
