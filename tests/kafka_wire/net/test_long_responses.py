"""Long responses in pieces that connections share: memory is bounded, and clients that read are not disconnected."""

import asyncio
import contextlib

import pytest

from kafka_wire.encoded_body import EncodedBody, PiecewiseResponse
from kafka_wire.net import inbound
from kafka_wire.net.outflow import Outflow
from kafka_wire.net.server import Peer
from tests.effort import EXHAUSTIVE
from tests.kafka_wire.net.peers import request, response
from tests.waiting import until

PIECES = tuple(bytes([number]) * 300_000 for number in range(20))
WHOLE = b"".join(PIECES)
SHARED = EncodedBody(PIECES)
HUGE = EncodedBody(PIECES * 50)
"""More than the size of the kernel's buffers."""

CLIENTS = 100 if EXHAUSTIVE else 20
"""Those that read at the same time: their responses are many times the buffers that the server may use."""


async def shared_for_odd(_peer: Peer, frame: bytes) -> bytes | PiecewiseResponse:
    """Return shared pieces for requests with an odd last byte, a short response for others."""
    return PiecewiseResponse(frame[4:8], SHARED) if frame[-1] % 2 else frame[4:]


@pytest.mark.slow
async def test_many_clients_read_the_same_pieces(start_server, connect) -> None:
    """120 MB of responses from 6 MB of memory: the shared pieces are not counted, so no connection is closed."""
    server = await start_server(shared_for_odd, max_buffered_bytes=CLIENTS * 256 * 1024)
    peers = [await connect(server) for _ in range(CLIENTS)]
    for peer in peers:
        await peer.send_frame(request(1, b"\1"))
    highest = 0

    async def read(peer) -> bool:
        nonlocal highest
        frame = await peer.read_frame()
        highest = max(highest, server.held_bytes)
        return frame == response(1) + WHOLE

    assert all(await asyncio.gather(*map(read, peers)))
    assert highest < CLIENTS * 256 * 1024
    await until(lambda: server.held_bytes == 0)


async def test_long_and_short_responses_are_sent_in_the_order_of_their_requests(start_server, connect) -> None:
    """Kafka's guarantee per connection."""
    peer = await connect(await start_server(shared_for_odd))
    for number in range(6):
        await peer.send_frame(request(number, bytes([number])))
    for number in range(6):
        expected = response(number) + WHOLE if number % 2 else response(number, bytes([number]))
        assert await peer.read_frame() == expected


async def test_a_client_that_ends_its_stream_receives_the_rest_of_its_response(start_server, connect) -> None:
    """Like `nc -N`; afterwards the connection is closed."""
    peer = await connect(await start_server(shared_for_odd))
    await peer.send_frame(request(1, b"\1"))
    peer.writer.write_eof()
    assert await peer.read_frame() == response(1) + WHOLE
    assert await peer.is_closed_by_server()


async def test_server_close_waits_for_long_responses(start_server, connect) -> None:
    """Within the grace period, as for short ones."""
    server = await start_server(shared_for_odd, grace_ms=60_000)
    peer = await connect(server)
    await peer.send_frame(request(1, b"\1"))
    await until(lambda: server.held_bytes > 0)
    closing = asyncio.create_task(server.close())
    assert await peer.read_frame() == response(1) + WHOLE
    await closing


async def test_a_peer_that_reads_slowly_keeps_shared_memory_for_a_limited_time(
    start_server, connect, caplog, monkeypatch
) -> None:
    """Its connection is closed although it never stops reading; the short idle timeout makes the server check often."""

    async def huge(_peer: Peer, frame: bytes) -> PiecewiseResponse:
        return PiecewiseResponse(frame[4:8], HUGE)

    monkeypatch.setattr(inbound, "_LONG_RESPONSE_TIMEOUTS", 0.005)
    server = await start_server(huge, frame_timeout_ms=60_000, idle_timeout_ms=100)
    peer = await connect(server)
    await peer.send_frame(request(1, b"\1"))
    while server.connection_count:
        with contextlib.suppress(TimeoutError, ConnectionError):
            await asyncio.wait_for(peer.reader.read(1_000), 0.01)
        await asyncio.sleep(0.001)
    (reason,) = [record.reason for record in caplog.records if "reason" in vars(record)]
    assert reason == "the peer did not read a response within 300 ms"


async def test_a_lost_connection_releases_its_long_response(start_server, connect) -> None:
    """Its memory is released, and other connections work."""
    server = await start_server(shared_for_odd)
    peer = await connect(server)
    await peer.send_frame(request(1, b"\1"))
    await until(lambda: server.held_bytes > 0)
    await peer.reset()
    await until(lambda: server.connection_count == 0)
    assert server.held_bytes == 0
    other = await connect(server)
    await other.send_frame(request(1, b"\1"))
    assert await other.read_frame() == response(1) + WHOLE


@pytest.mark.parametrize("urgent", [False, True])
async def test_writers_take_turns(urgent: bool) -> None:
    """One chunk each in turn; with urgent work they still proceed."""
    outflow = Outflow(lambda: urgent)
    written: list[str] = []
    left = {"a": 3, "b": 2}

    def writer(name: str) -> bool:
        written.append(name)
        left[name] -= 1
        return left[name] > 0

    outflow.add(lambda: writer("a"))
    outflow.add(lambda: writer("b"))
    await until(lambda: len(written) == 5)
    assert written == ["a", "b", "a", "b", "a"]
