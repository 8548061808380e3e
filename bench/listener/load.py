"""Clients of the measured listener: the server's process, a broker that receives all forwarded requests, and single requests."""

import contextlib
import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.listener.server import OPEN, PASSWORD, USER
from kafka_wire import ApiKey, codec

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120.0
"""For one request; the largest takes seconds on a busy machine."""
READ_BYTES = 1 << 20
RESPONSE_BODY = bytes(64)
"""The broker's answer after the correlation id."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Result of one measurement."""

    wall_ms: float
    cpu_ms: float
    memory_bytes: int
    errors: tuple[str, ...] = ()
    """Errors in the server's log: defects."""


class Sink:
    """A broker that reads each request and answers it with zeros."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no further connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    @staticmethod
    def _serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError), connection:
            while True:
                size, start = struct.unpack(">i", read(connection, 4))[0], read(connection, 8)
                left = size - len(start)
                while left:
                    left -= len(connection.recv(min(left, READ_BYTES))) or left
                connection.sendall(struct.pack(">i", 4 + len(RESPONSE_BODY)) + start[4:8] + RESPONSE_BODY)


class FrontProcess:
    """The server in its process; a context manager."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self._sink = Sink()
        command = [sys.executable, "-m", "bench.listener.server", mode, str(self._sink.port)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.figures()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._sink.close()

    @property
    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def figures(self) -> Figures:
        """End a measurement and start the next one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found = json.loads(self._process.stdout.readline())
        return Figures(found["wall_ms"], found["cpu_ms"], found["kib"] * 1024, tuple(found["errors"]))

    @contextlib.contextmanager
    def connection(self) -> Iterator[socket.socket]:
        """Connect, and authenticate where the listener requires it."""
        with socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S) as connection:
            if self.mode != OPEN:
                token = f"\0{USER}\0{PASSWORD}".encode()
                exchange(connection, codec.encode_request(ApiKey.SASL_HANDSHAKE, 1, 1, "b", {"mechanism": "PLAIN"}))
                exchange(connection, codec.encode_request(ApiKey.SASL_AUTHENTICATE, 1, 2, "b", {"auth_bytes": token}))
            yield connection

    def send(self, frame: bytes) -> bool:
        """Send one request on its own connection; return whether it was answered. Otherwise the connection was closed."""
        with self.connection() as connection:
            return exchange(connection, frame) is not None


def send_only(connection: socket.socket, frame: bytes) -> bool:
    """Send a request and nothing after it, and read to the end; return whether the server sent anything."""
    answered = False
    with contextlib.suppress(OSError):
        connection.sendall(struct.pack(">i", len(frame)))
        connection.sendall(frame)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(READ_BYTES):
            answered = True
    return answered


def exchange(connection: socket.socket, frame: bytes) -> bytes | None:
    """Send a request and read its response; None when the connection is closed instead."""
    try:
        connection.sendall(struct.pack(">i", len(frame)))
        connection.sendall(frame)
        return read(connection, struct.unpack(">i", read(connection, 4))[0])
    except (ConnectionError, EOFError):
        return None


def read(connection: socket.socket, size: int) -> bytes:
    """Read this number of bytes. Raises EOFError."""
    parts = []
    while size:
        part = connection.recv(min(size, READ_BYTES))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
