"""Bounded request channel: at a limit no connection begins to read a request, and everything that has begun is completed."""

import asyncio
import struct

import pytest

from kafka_wire.net.request_channel import RequestChannel
from kafka_wire.net.server import Peer
from tests.kafka_wire.net.peers import RawPeer, request, response
from tests.waiting import until

PRODUCE_PAYLOAD = bytes(10_000)


def produce(correlation_id: int) -> bytes:
    """Build a frame that starts as a Produce request."""
    return struct.pack(">hhi", 0, 9, correlation_id) + PRODUCE_PAYLOAD


class Gate:
    """A handler that waits until it is opened."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.opened = asyncio.Event()

    async def __call__(self, _peer: Peer, frame: bytes) -> bytes:
        self.started.append(int.from_bytes(frame[4:8], "big"))
        await self.opened.wait()
        return frame[4:8]


async def test_at_the_limit_of_bytes_no_connection_begins_a_request(start_server, connect) -> None:
    """Kafka's queued.max.request.bytes: the bytes of a Produce request count until it is answered."""
    gate, channel = Gate(), RequestChannel(max_bytes=15_000)
    server = await start_server(gate, channel=channel)
    peers = [await connect(server) for _ in range(4)]
    for number in (0, 1):
        await peers[number].send_frame(produce(number))
        await until(lambda number=number: gate.started == list(range(number + 1)))
    for number in (2, 3):
        await peers[number].send_frame(produce(number))
    await until(lambda: channel.waits == 2)
    assert (channel.used_bytes, channel.available_bytes) == (2 * 10_012, 15_000 - 20_024)

    gate.opened.set()
    assert [await peer.read_frame() for peer in peers] == [response(number) for number in range(4)]
    assert sorted(gate.started) == [0, 1, 2, 3]
    await until(lambda: channel.used_bytes == 0)


async def test_requests_that_have_begun_are_completed_above_the_limit(start_server, connect) -> None:
    """Otherwise connections in the middle of a request would wait for each other."""
    channel = RequestChannel(max_bytes=8_000)
    server = await start_server(channel=channel)
    peers = [await connect(server) for _ in range(3)]
    frame = request(5, bytes(9_992))
    stream = struct.pack(">i", len(frame)) + frame
    for peer in peers:
        await peer.send(stream[:3_000])
    await until(lambda: channel.used_bytes == 9_000)
    for peer in peers:
        await peer.send(stream[3_000:])

    assert [await peer.read_frame() for peer in peers] == [frame[4:]] * 3
    assert (channel.used_bytes, channel.queued_requests) == (0, 0)


async def test_requests_without_records_do_not_count_while_they_wait(start_server, connect) -> None:
    """Kafka releases the memory of a Fetch request when it is decoded: consumers that wait for records stop no other client."""
    gate, channel = Gate(), RequestChannel(max_bytes=100)
    server = await start_server(gate, channel=channel)
    peers = [await connect(server) for _ in range(20)]
    for number, peer in enumerate(peers):
        await peer.send_frame(request(number, bytes(30)))
    await until(lambda: len(gate.started) == 20)

    assert channel.used_bytes == 0
    gate.opened.set()
    assert [await peer.read_frame() for peer in peers] == [response(number) for number in range(20)]


async def test_the_queue_of_requests_is_bounded(start_server, connect) -> None:
    """Kafka's queued.max.requests: no more of them are taken from their streams before their handlers start."""
    channel = RequestChannel(max_requests=3)
    queued: list[int] = []

    async def count(_peer: Peer, frame: bytes) -> bytes:
        queued.append(channel.queued_requests)
        return frame[4:8]

    server = await start_server(count, channel=channel, max_in_flight=100)
    peers = [await connect(server) for _ in range(4)]
    many = b"".join(struct.pack(">i", 8) + request(number) for number in range(50))
    for peer in peers:
        await peer.send(many)

    for peer in peers:
        assert [await peer.read_frame() for _ in range(50)] == [response(number) for number in range(50)]
    assert max(queued) <= 2  # the handler's own request has left the queue
    assert channel.queued_requests == 0
    assert channel.waits > 0


@pytest.mark.parametrize("frame", [produce(1), request(1)], ids=["Produce", "other"])
async def test_a_lost_connection_releases_its_requests(frame: bytes, start_server, connect) -> None:
    """Waiting, running and incomplete ones."""
    gate, channel = Gate(), RequestChannel(max_bytes=5)
    server = await start_server(gate, channel=channel)
    first, second = await connect(server), await connect(server)
    await first.send(struct.pack(">i", len(frame)) + frame + b"\0\0\1")
    await until(lambda: gate.started == [1])
    await first.send(b"\0" * 20)
    await second.send_frame(frame)
    await first.reset()
    await second.reset()
    await until(lambda: server.connection_count == 0)

    assert (channel.used_bytes, channel.queued_requests) == (0, 0)


@pytest.mark.slow
async def test_a_connection_that_waits_is_neither_idle_nor_late(start_server, connect) -> None:
    """Its peer has sent a request in time; the timeouts of 1 s do not apply while the server does not read."""
    gate, channel = Gate(), RequestChannel(max_bytes=5_000)
    server = await start_server(gate, channel=channel, idle_timeout_ms=1_000, frame_timeout_ms=1_000)
    busy, waiting, idle = await connect(server), await connect(server), await connect(server)
    await busy.send_frame(produce(1))
    await until(lambda: gate.started == [1])
    await waiting.send_frame(produce(2))
    await until(lambda: channel.waits == 1)
    assert await idle.is_closed_by_server()

    gate.opened.set()
    assert await waiting.read_frame() == response(2)
    assert await busy.read_frame() == response(1)
    assert server.expired_connections == 1


def test_limits_of_zero_are_rejected() -> None:
    """With zero no request would ever be read."""
    with pytest.raises(ValueError, match="greater than 0"):
        RequestChannel(max_requests=0)
    with pytest.raises(ValueError, match="greater than 0"):
        RequestChannel(max_bytes=0)


async def test_over_tls_too(start_server, server_tls, client_tls) -> None:
    """The limit is checked before bytes are decrypted into the shared buffer."""
    gate, channel = Gate(), RequestChannel(max_bytes=5_000)
    server = await start_server(gate, ssl=server_tls, channel=channel)
    peers = [
        RawPeer(*await asyncio.open_connection("localhost", server.port, ssl=client_tls, family=2)) for _ in range(2)
    ]
    await peers[0].send_frame(produce(0))
    await until(lambda: gate.started == [0])
    await peers[1].send_frame(produce(1))
    await until(lambda: channel.waits == 1)
    gate.opened.set()

    assert [await peer.read_frame() for peer in peers] == [response(number) for number in range(2)]
    for peer in peers:
        await peer.close()
