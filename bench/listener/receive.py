"""Processor time of a server that receives frames: Steward's server, and a server on asyncio's streams (ADR 51).

Both run in a process of their own, read every byte of each frame and answer it. Four connections have five requests in flight each, as
Kafka's producers have. The processor time does not depend on how busy the client is.
"""

import contextlib
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator

from bench.harness import Better, Effort, Row, alternate, side_of

NAME = "receive"
ABOUT = "processor time of a server for each GB received, in frames of 1 MiB, 16 KiB and 200 bytes, compared with asyncio's streams"

CONNECTIONS = 4
IN_FLIGHT = 5
"""Kafka's max.in.flight.requests.per.connection."""
RESPONSE_BYTES = 12
FRAMES = {"1mib": (1024 * 1024, 1_500), "16kib": (16 * 1024, 40_000), "200b": (200, 80_000)}
"""Size of a frame in bytes, and how many are sent: about two seconds of the slower side."""
QUICK_SHARE = 20
PEER = "asyncio streams"


def measure(effort: Effort) -> Iterator[Row]:
    """Yield each row when it is measured."""
    for name, (size_bytes, count) in FRAMES.items():
        number = count // QUICK_SHARE if effort.quick else count
        ours, peer = alternate(
            lambda size_bytes=size_bytes, number=number: cpu_seconds_a_gb("steward", size_bytes, number),  # type: ignore[misc]
            lambda size_bytes=size_bytes, number=number: cpu_seconds_a_gb("streams", size_bytes, number),  # type: ignore[misc]
            effort.runs(),
        )
        what = f"{number:,} frames of {size_bytes:,} bytes from {CONNECTIONS} connections, received and checked"
        unit = "processor seconds a GB"
        yield Row(f"{NAME}.{name}", what, PEER, unit, Better.LOWER, side_of(ours), side_of(peer), len(ours))


def cpu_seconds_a_gb(variant: str, size_bytes: int, count: int) -> float:
    """Return the processor seconds of a server for each GB, without those of its start."""
    idle = _seconds_of(variant, size_bytes, CONNECTIONS)
    return (_seconds_of(variant, size_bytes, count) - idle) / (size_bytes * count / 1e9)


def _seconds_of(variant: str, size_bytes: int, count: int) -> float:
    with started(variant) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = int(server.stdout.readline())
        frame = struct.pack(">ihhi", 8 + size_bytes, 0, 9, 1) + bytes(size_bytes)
        clients = [threading.Thread(target=send, args=(port, frame, count // CONNECTIONS)) for _ in range(CONNECTIONS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        server.stdin.close()
        return float(server.stdout.readline())


@contextlib.contextmanager
def started(variant: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a server process, which ends with the block."""
    command = [sys.executable, "-m", "bench.listener.receiving_server", variant]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def send(port: int, frame: bytes, count: int) -> None:
    """Send frames over one connection, with a limited number of them in flight."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        unanswered = 0
        for _ in range(count):
            connection.sendall(frame)
            unanswered += 1
            while unanswered >= IN_FLIGHT:
                unanswered -= _answers(connection)
        while unanswered:
            unanswered -= _answers(connection)


def _answers(connection: socket.socket) -> int:
    """Wait for responses, and return their number."""
    answers = 0
    rest = b""
    while not answers or rest:
        rest += connection.recv(64 * RESPONSE_BYTES)
        answers += len(rest) // RESPONSE_BYTES
        rest = rest[len(rest) // RESPONSE_BYTES * RESPONSE_BYTES :]
    return answers
