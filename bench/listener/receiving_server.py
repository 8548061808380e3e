"""Servers that receive frames, check them and answer: `python -m bench.listener.receiving_server VARIANT`.

Writes the port, serves until its input ends, then writes the seconds of processor time. The variants that Steward does not have are those
that ADR 51 compares: the streams of asyncio, a thread for each connection, and handlers in another thread behind a queue.
"""

import asyncio
import queue
import resource
import socket
import sys
import threading
import zlib
from collections.abc import Awaitable, Callable

from kafka_wire.net.server import Peer, serve

CORRELATION = slice(4, 8)
SIZE_BYTES = 4
HANDLER_THREADS = 4


def checked(frame: bytes | bytearray | memoryview) -> bytes:
    """Read every byte of a frame, as the checksum of a batch does, and return its response."""
    return bytes(frame[CORRELATION]) + zlib.crc32(frame).to_bytes(4, "big")


async def steward() -> int:
    """Start Steward's server: large frames in reused buffers, handlers on the loop."""

    async def handle(_peer: Peer, frame: bytes | memoryview) -> bytes:
        return checked(frame)

    return (await serve(handle, "127.0.0.1", 0, large_handler=handle)).port


async def queued() -> int:
    """Start Steward's server with handlers in threads, as Kafka's request channel hands requests to its I/O threads."""
    loop = asyncio.get_running_loop()
    requests: queue.SimpleQueue[tuple[bytes | memoryview, asyncio.Future[bytes]]] = queue.SimpleQueue()

    def work() -> None:
        while True:
            frame, response = requests.get()
            loop.call_soon_threadsafe(response.set_result, checked(frame))

    for _ in range(HANDLER_THREADS):
        threading.Thread(target=work, daemon=True).start()

    async def handle(_peer: Peer, frame: bytes | memoryview) -> bytes:
        response: asyncio.Future[bytes] = loop.create_future()
        requests.put((frame, response))
        return await response

    return (await serve(handle, "127.0.0.1", 0, large_handler=handle)).port


async def streams() -> int:
    """Start a server on asyncio's streams."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(SIZE_BYTES), "big")
                response = checked(await reader.readexactly(size))
                writer.write(len(response).to_bytes(SIZE_BYTES, "big") + response)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    return port


async def threads() -> int:
    """Start a server with a thread and a reused buffer for each connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def talk(connection: socket.socket) -> None:
        buffer = bytearray(2 * 1024 * 1024)
        with memoryview(buffer) as view:
            while _received(connection, view[:SIZE_BYTES]):
                size = int.from_bytes(view[:SIZE_BYTES], "big")
                if not _received(connection, view[:size]):
                    return
                response = checked(view[:size])
                connection.sendall(len(response).to_bytes(SIZE_BYTES, "big") + response)

    def accept() -> None:
        while True:
            threading.Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    port: int = listening.getsockname()[1]
    return port


def _received(connection: socket.socket, into: memoryview) -> bool:
    """Fill a view; False at the end of the stream."""
    while into:
        count = connection.recv_into(into)
        if not count:
            return False
        into = into[count:]
    return True


VARIANTS: dict[str, Callable[[], Awaitable[int]]] = {
    variant.__name__: variant for variant in (steward, queued, streams, threads)
}


async def main(variant: str) -> None:
    """Serve until the input ends."""
    sys.stdout.write(f"{await VARIANTS[variant]()}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(f"{usage.ru_utime + usage.ru_stime}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
