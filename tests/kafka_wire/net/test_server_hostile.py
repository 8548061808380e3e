"""Hostile peers only lose their own connection."""

import asyncio
import hashlib
import random
import struct

import pytest

from kafka_wire.net.receive_buffers import SCRATCH_BYTES
from kafka_wire.net.server import MalformedRequest, Peer, RequestChannel, Server
from tests.kafka_wire.net.peers import RawPeer, request, response
from tests.waiting import until


async def _is_responsive(server, connect) -> bool:
    peer = await connect(server)
    await peer.send_frame(request(99))
    return response(99) == await peer.read_frame()


def _reasons(caplog) -> list[str]:
    return [record.reason for record in caplog.records if "reason" in vars(record)]


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(struct.pack(">i", -1), id="negative size"),
        pytest.param(struct.pack(">i", -(2**31)), id="most negative size"),
        pytest.param(struct.pack(">i", 0), id="zero size"),
        pytest.param(struct.pack(">i", 2**31 - 1), id="huge size"),
        pytest.param(struct.pack(">i", 1_001) + bytes(1_001), id="one byte over the limit"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="HTTP"),
        pytest.param(bytes.fromhex("16030100f1010000ed0303"), id="TLS"),
        pytest.param(b"\xff" * 5_000, id="ones"),
        pytest.param(struct.pack(">i", 10) + request(1, b"ok") + b"\xff" * 9, id="after a good frame"),
    ],
)
async def test_a_malformed_stream_closes_its_connection_and_logs_once(garbage, start_server, connect, caplog) -> None:
    """Malformed or oversized: only that connection is closed, with one log line."""
    server = await start_server(max_frame_bytes=1_000)
    good = await connect(server)
    bad = await connect(server)
    await bad.send(garbage)
    while not await bad.is_closed_by_server():
        continue

    await good.send_frame(request(5))
    assert await good.read_frame() == response(5)
    assert len(_reasons(caplog)) == 1
    assert server.held_bytes == 0


@pytest.mark.parametrize("seed", range(8))
async def test_random_bytes_do_not_affect_the_server(seed, start_server, connect) -> None:
    """Thirty peers send noise until one side closes the connection."""
    source = random.Random(seed)
    server = await start_server(max_frame_bytes=2_000, max_in_flight=3)
    for _ in range(30):
        peer = await connect(server)
        try:
            await peer.send(source.randbytes(source.randrange(1, 4_000)))
        except ConnectionError:
            continue
        finally:
            await peer.close()

    assert await _is_responsive(server, connect)


async def test_a_malformed_request_closes_the_connection(start_server, connect, caplog) -> None:
    """A complete frame may contain no valid request."""

    async def judge(_peer: Peer, frame: bytes) -> bytes:
        if frame.endswith(b"bad"):
            raise MalformedRequest("no header")
        return frame[4:]

    server = await start_server(judge)
    peer = await connect(server)
    await peer.send_frame(request(1, b"bad"))

    assert await peer.is_closed_by_server()
    assert _reasons(caplog) == ["malformed request: no header"]
    assert await _is_responsive(server, connect)


async def test_a_failing_handler_closes_one_connection(start_server, connect, caplog) -> None:
    """An unexpected exception is logged with its traceback, and the process continues."""

    async def broken(_peer: Peer, frame: bytes) -> bytes:
        if frame.endswith(b"bad"):
            raise ZeroDivisionError
        return frame[4:]

    server = await start_server(broken)
    peer = await connect(server)
    await peer.send_frame(request(1, b"bad"))

    assert await peer.is_closed_by_server()
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]
    assert await _is_responsive(server, connect)


async def test_a_handler_that_cancels_itself_does_not_block_its_connection(start_server, connect) -> None:
    """A cancelled future inside a handler is that request's failure."""

    async def cancelled(_peer: Peer, _frame: bytes) -> bytes:
        raise asyncio.CancelledError

    peer = await connect(await start_server(cancelled))
    await peer.send_frame(request(1))

    assert await peer.is_closed_by_server()


async def test_a_truncated_frame_closes_its_connection(start_server, connect, caplog) -> None:
    """The peer announced 100 bytes, sent 10 and closed its side."""
    caplog.set_level("INFO")
    server = await start_server()
    peer = await connect(server)
    await peer.send(struct.pack(">i", 100) + bytes(10))
    peer.writer.write_eof()

    assert await peer.is_closed_by_server()
    assert _reasons(caplog) == ["the stream ended within a frame"]
    assert server.held_bytes == 0


async def test_a_slowly_sent_frame_closes_its_connection(start_server, connect, caplog) -> None:
    """Slowloris: bytes keep arriving, but the frame is not complete within the timeout."""
    server = await start_server(frame_timeout_ms=40)
    peer = await connect(server)
    stream = struct.pack(">i", 10_000) + bytes(10_000)
    trickle = asyncio.ensure_future(_trickle(peer, stream))

    assert await peer.is_closed_by_server()
    trickle.cancel()
    await asyncio.wait([trickle])
    assert _reasons(caplog) == ["a frame was incomplete after 40 ms"]
    assert await _is_responsive(server, connect)


async def _trickle(peer, stream: bytes) -> None:
    for byte in stream:
        await peer.send(bytes([byte]))
        await asyncio.sleep(0.001)


async def test_an_idle_connection_is_closed_but_not_one_with_a_running_request(start_server, connect, caplog) -> None:
    """Kafka's connections.max.idle.ms; a connection with a running request is not idle."""
    caplog.set_level("INFO")
    gate = asyncio.Event()

    async def wait(_peer: Peer, frame: bytes) -> bytes:
        await gate.wait()
        return frame[4:]

    server = await start_server(wait, idle_timeout_ms=40)
    waiting, idle = await connect(server), await connect(server)
    await waiting.send_frame(request(1))

    assert await idle.is_closed_by_server()
    assert _reasons(caplog) == ["the connection was idle for 40 ms"]
    gate.set()
    assert await waiting.read_frame() == response(1)


async def test_the_request_of_a_half_closed_peer_ends_after_the_idle_timeout(start_server, connect) -> None:
    """A FIN may be a half-close or the end; after the idle timeout it counts as the end."""
    cancelled = asyncio.Event()

    async def hang(_peer: Peer, _frame: bytes) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return b""

    server = await start_server(hang, idle_timeout_ms=40)
    peer = await connect(server)
    await peer.send_frame(request(1))
    peer.writer.write_eof()
    await cancelled.wait()

    assert server.held_bytes == 0


async def unread_responses(start_server, connect, size: int, **limits: int) -> tuple[Server, RawPeer]:
    """A server with 40 responses of `size` bytes for a peer that does not read."""

    async def much(_peer: Peer, frame: bytes) -> bytes:
        return frame[4:] + bytes(size)

    server = await start_server(much, **limits)
    peer = await connect(server)
    peer.writer.transport.pause_reading()
    for number in range(40):
        await peer.send_frame(request(number))
    return server, peer


async def test_a_peer_that_does_not_read_its_responses_is_closed(start_server, connect, caplog) -> None:
    """Its responses would occupy memory forever."""
    server, _peer = await unread_responses(start_server, connect, 1_000_000, frame_timeout_ms=100)
    await until(lambda: not server.connection_count)

    assert _reasons(caplog) == ["the peer did not read its responses for 100 ms"]
    assert server.held_bytes == 0


async def test_responses_wait_for_a_slow_reader(start_server, connect) -> None:
    """Backpressure delays responses and loses none."""
    server, peer = await unread_responses(start_server, connect, 300_000, max_in_flight=2)
    await until(lambda: server.held_bytes > 0)
    assert server.held_bytes < 10_000_000
    transport = peer.writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.resume_reading()

    assert list(range(40)) == [int.from_bytes((await peer.read_frame())[:4], "big") for _ in range(40)]
    assert server.held_bytes == 0


async def test_above_the_total_limit_the_connection_that_holds_most_is_closed(start_server, connect, caplog) -> None:
    """Many incomplete large frames cannot exhaust the memory."""
    server = await start_server(max_buffered_bytes=1_000_000, max_frame_bytes=2_000_000)
    greedy = [await connect(server) for _ in range(3)]
    for peer, size in zip(greedy, (300_000, 500_000, 250_000), strict=True):
        await peer.send(struct.pack(">i", 2_000_000) + bytes(size))

    assert await greedy[1].is_closed_by_server()
    assert len(_reasons(caplog)) == 1
    assert server.held_bytes <= 1_000_000
    assert await _is_responsive(server, connect)


async def test_connections_above_the_limit_are_rejected_and_logged_once(start_server, connect, caplog) -> None:
    """After a connection has closed, a new one is accepted."""
    server = await start_server(max_connections=2)
    kept = [await connect(server) for _ in range(2)]
    for peer in kept:
        await peer.send_frame(request(1))
        await peer.read_frame()
    for _ in range(5):
        assert await (await connect(server)).is_closed_by_server()
    refused = [record for record in caplog.records if hasattr(record, "max_connections")]
    assert [record.max_connections for record in refused] == [2]
    await kept[0].close()
    await until(lambda: server.connection_count == 1)

    assert await _is_responsive(server, connect)


async def test_requests_above_the_in_flight_limit_are_not_read(start_server, connect) -> None:
    """Reading from a peer that floods the server pauses, and other peers are served."""

    async def stuck(_peer: Peer, frame: bytes) -> bytes:
        if frame.endswith(b"stuck"):
            await asyncio.Event().wait()
        return frame[4:]

    server = await start_server(stuck, max_in_flight=8)
    peer = await connect(server)
    flood = asyncio.ensure_future(_flood(peer))
    await until(lambda: server.held_bytes >= 8_000)
    assert await _is_responsive(server, connect)
    held = server.held_bytes
    assert await _is_responsive(server, connect)

    assert held == server.held_bytes
    assert held < 1_000_000
    flood.cancel()
    await asyncio.wait([flood])


async def _flood(peer) -> None:
    frame = request(1, bytes(1_000) + b"stuck")
    many = (struct.pack(">i", len(frame)) + frame) * 100
    while True:
        await peer.send(many)


async def test_a_peer_without_tls_is_disconnected(start_server, connect, server_tls) -> None:
    """Plain bytes to a TLS port, and a silent peer."""
    server = await start_server(ssl=server_tls, tls_handshake_timeout_ms=50)
    plain, silent = await connect(server), await connect(server)
    await plain.send_frame(request(1))

    assert await plain.is_closed_by_server()
    assert await silent.is_closed_by_server()


async def test_peers_that_only_announce_large_frames_hold_what_they_sent(start_server, connect) -> None:
    """Fifty claim 100 MiB and send a byte at a time: no buffer is larger than what has arrived, and other clients are served."""
    server = await start_server()
    peers = [await connect(server) for _ in range(50)]
    for peer in peers:
        await peer.send(struct.pack(">i", 100 * 1024 * 1024))
    for sent in range(5):
        for peer in peers:
            await peer.send(b"x")
        await until(lambda sent=sent: server.held_bytes == 50 * (4 + sent + 1))
        assert await _is_responsive(server, connect)

    assert server.buffers.kept_bytes == 0
    assert server.held_bytes == 50 * 9


async def test_memory_follows_the_bytes_received_of_a_large_frame(start_server, connect) -> None:
    """At each size: traced memory is at most twice what has arrived, and is free again when the peer leaves."""
    server = await start_server()
    peer = await connect(server)
    await peer.send(struct.pack(">i", 100 * 1024 * 1024))
    received = 0
    for size in (1_000, 100_000, 1_000_000, 5_000_000):
        await peer.send(bytes(size))
        received += size
        await until(lambda received=received: server.held_bytes == 4 + received)
        large = next(iter(server._connections))._assembler._large
        assert (0 if large is None else len(large)) <= max(2 * received, 2 * SCRATCH_BYTES)
    await peer.reset()
    await until(lambda: server.connection_count == 0)

    assert server.held_bytes == 0


@pytest.mark.parametrize("seed", range(4))
async def test_random_streams_of_large_and_small_frames_are_answered(seed, start_server, connect) -> None:
    """Frames of any size, cut anywhere, of several peers at once, with a channel that is full most of the time."""
    source = random.Random(seed)

    async def digest(_peer: Peer, frame: bytes | memoryview) -> bytes:
        return bytes(frame[4:8]) + hashlib.sha256(frame).digest()

    channel = RequestChannel(max_requests=2, max_bytes=100_000)
    server = await start_server(digest, large_handler=digest, channel=channel, max_in_flight=3)

    async def talk() -> None:
        peer = await connect(server)
        sizes = [source.choice([0, 10, 5_000, 65_528, 65_529, 200_000, 1_500_000]) for _ in range(12)]
        frames = [request(number, source.randbytes(size)) for number, size in enumerate(sizes)]
        stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
        sending = asyncio.create_task(_send_in_pieces(peer, stream, source))
        for number, frame in enumerate(frames):
            assert await peer.read_frame() == response(number, hashlib.sha256(frame).digest())
        await sending

    await asyncio.gather(*(talk() for _ in range(4)))

    assert (server.held_bytes, channel.used_bytes, channel.queued_requests) == (0, 0, 0)


async def _send_in_pieces(peer: RawPeer, stream: bytes, source: random.Random) -> None:
    while stream:
        cut = source.choice([1, 3, 100, 40_000, 70_000, 300_000, 1_000_000])
        await peer.send(stream[:cut])
        stream = stream[cut:]


async def test_peers_that_leave_within_large_frames_leave_nothing(start_server, connect) -> None:
    """Truncated at any place, by an end of the stream or a reset."""
    server = await start_server()
    for cut in (3, 4, 5, 20_000, 100_000, 900_000):
        for leave in (RawPeer.reset, RawPeer.close):
            peer = await connect(server)
            await peer.send((struct.pack(">i", 1_000_000) + bytes(1_000_000))[:cut])
            await leave(peer)
    await until(lambda: server.connection_count == 0)

    assert server.held_bytes == 0
    assert await _is_responsive(server, connect)
