"""Load of a broker by raw Produce requests over many connections: each sends its next request when the last one is answered.

The frames are encoded once, so that this process needs little of the machine: a client library for each connection would need all of it.
"""

import asyncio
import itertools
import os
import time
from collections.abc import Iterator

from kafka_wire import ApiKey, ErrorCode, codec
from kafka_wire.records import Record, encode_batch

VERSION = 9
VALUE_BYTES = 1024
TIMEOUT_S = 120.0
_SIZE_BYTES = 4
_ACKS, _TIMEOUT_MS = 1, 30_000


class RefusedProduceError(Exception):
    """The broker answered with an error."""


def produce_frames(topic: str, partitions: int, batch_bytes: int) -> list[bytes]:
    """Return one request for each partition, with a batch of values of 1 KiB and the size in front."""
    now_ms = time.time_ns() // 1_000_000
    values = [Record(place, now_ms, None, os.urandom(VALUE_BYTES)) for place in range(batch_bytes // VALUE_BYTES)]
    batch = encode_batch(values)
    frames = []
    for partition in range(partitions):
        data = [{"name": topic, "partition_data": [{"index": partition, "records": batch}]}]
        body = {"transactional_id": None, "acks": _ACKS, "timeout_ms": _TIMEOUT_MS, "topic_data": data}
        request = codec.encode_request(ApiKey.PRODUCE, VERSION, partition, "bench", body)
        frames.append(len(request).to_bytes(_SIZE_BYTES, "big") + request)
    return frames


def produce_raw(
    bootstrap: str, topic: str, *, partitions: int, connections: int, batch_bytes: int, requests: int
) -> None:
    """Send requests to all partitions in turn over `connections`, and wait until all are answered. Raises RefusedProduceError."""
    host, _, port = bootstrap.rpartition(":")
    frames = itertools.islice(itertools.cycle(produce_frames(topic, partitions, batch_bytes)), requests)
    asyncio.run(_send_all(host, int(port), frames, connections))


async def _send_all(host: str, port: int, frames: Iterator[bytes], connections: int) -> None:
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(connections):
        _, client = await loop.create_connection(lambda: _Connection(frames), host, port)
        clients.append(client)
    async with asyncio.timeout(TIMEOUT_S):
        for client in clients:
            client.send()
        await asyncio.gather(*(client.done for client in clients))


class _Connection(asyncio.Protocol):
    """One connection. `done` ends when there are no more frames and the last one is answered."""

    def __init__(self, frames: Iterator[bytes]) -> None:
        self._frames = frames
        self._received = bytearray()
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """End the run: the broker closed the connection."""
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the broker closed the connection"))

    def send(self) -> None:
        """Send the next frame, if there is one."""
        frame = next(self._frames, None)
        if frame is not None:
            self._transport.write(frame)
            return
        if not self.done.done():
            self.done.set_result(None)
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Send the next frame after a whole response."""
        self._received += data
        size = int.from_bytes(self._received[:_SIZE_BYTES], "big")
        if len(self._received) < _SIZE_BYTES + size:
            return
        _, body = codec.decode_response(ApiKey.PRODUCE, VERSION, bytes(self._received[_SIZE_BYTES:]))
        error = ErrorCode.of(body["responses"][0]["partition_responses"][0]["error_code"])
        self._received.clear()
        if error is ErrorCode.NONE:
            self.send()
        elif not self.done.done():
            self.done.set_exception(RefusedProduceError(error.name))
