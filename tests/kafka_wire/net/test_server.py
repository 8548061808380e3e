"""Server behaviour for peers that follow the protocol."""

import asyncio
import struct

import pytest

from kafka_wire.net.peer import StartsAtOnce, starts_in_task
from kafka_wire.net.server import CloseConnection, Peer, ServerLimits, serve
from tests.kafka_wire.net.peers import RawPeer, request, response
from tests.waiting import until


@pytest.fixture(params=[False, True], ids=["in a task", "at once"])
def starts_at_once(request: pytest.FixtureRequest) -> StartsAtOnce:
    """Both ways to start a handler, which no peer notices."""
    return (lambda _frame: True) if request.param else starts_in_task


async def test_responses_are_sent_in_the_order_of_their_requests(start_server, connect) -> None:
    """Kafka's guarantee per connection, even if the handlers end in another order."""
    ended: list[int] = []
    gates = [asyncio.Event() for _ in range(3)]

    async def last_first(_peer: Peer, frame: bytes) -> bytes:
        number = frame[-1]
        await gates[number].wait()
        ended.append(number)
        if number:
            gates[number - 1].set()
        return frame[4:]

    peer = await connect(await start_server(last_first))
    for number in range(3):
        await peer.send_frame(request(number, bytes([number])))
    gates[2].set()

    assert [await peer.read_frame() for _ in range(3)] == [response(n, bytes([n])) for n in range(3)]
    assert ended == [2, 1, 0]


async def test_a_request_without_a_response(start_server, connect) -> None:
    """Produce with acks=0 has no response; later requests have theirs."""

    async def only_odd(_peer: Peer, frame: bytes) -> bytes | None:
        return frame[4:] if frame[-1] % 2 else None

    peer = await connect(await start_server(only_odd))
    for number in range(4):
        await peer.send_frame(request(number, bytes([number])))

    assert [await peer.read_frame() for _ in range(2)] == [response(n, bytes([n])) for n in (1, 3)]


async def test_a_produce_that_waits_does_not_hold_back_the_next_one(start_server, connect) -> None:
    """Requests start in order and are answered in order; Kafka starts the next one only when the one before it is answered."""
    log: list[int] = []
    replicated = [asyncio.Event() for _ in range(3)]

    async def produce(_peer: Peer, frame: bytes) -> bytes:
        number = frame[-1]
        log.append(number)  # appended before the first wait, as by the replica manager
        await replicated[number].wait()
        return frame[4:]

    peer = await connect(await start_server(produce))
    for number in range(3):
        await peer.send_frame(struct.pack(">hhi", 0, 9, number) + bytes([number]))
    await until(lambda: log == [0, 1, 2])
    for number in (2, 1, 0):
        replicated[number].set()

    assert [await peer.read_frame() for _ in range(3)] == [response(n, bytes([n])) for n in range(3)]
    assert log == [0, 1, 2]


MIB = 1024 * 1024


def payload_of(number: int) -> bytes:
    """Return a payload that differs in each request, longer than a small frame."""
    return number.to_bytes(2, "big") * (MIB // 2)


async def test_large_frames_are_handled_as_views_of_few_buffers(start_server, connect) -> None:
    """A buffer is received into again after its request; small frames are bytes."""
    seen: list[tuple[type, int]] = []

    async def large(_peer: Peer, frame: memoryview) -> bytes:
        seen.append((type(frame), id(frame.obj)))
        return bytes(frame[4:])

    peer = await connect(await start_server(large_handler=large))
    for number in range(8):
        sending = asyncio.create_task(peer.send_frame(request(number, payload_of(number))))
        assert await peer.read_frame() == response(number, payload_of(number))
        await sending
    await peer.send_frame(request(9))

    assert await peer.read_frame() == response(9)
    assert [kind for kind, _ in seen] == [memoryview] * 8
    assert len({buffer for _, buffer in seen}) < 8


async def test_a_view_that_a_handler_keeps_is_never_overwritten(start_server, connect) -> None:
    """Its buffer is not reused, although the request was answered."""
    kept: list[memoryview] = []

    async def keep(_peer: Peer, frame: memoryview) -> bytes:
        kept.append(frame[8:])
        return bytes(frame[4:8])

    peer = await connect(await start_server(large_handler=keep))
    for number in range(6):
        await peer.send_frame(request(number, payload_of(number)))
        assert await peer.read_frame() == response(number)

    assert kept == [payload_of(number) for number in range(6)]


async def test_large_frames_over_tls(start_server, server_tls, client_tls) -> None:
    """OpenSSL decrypts into the same buffers."""
    received: list[bytes] = []

    async def large(_peer: Peer, frame: memoryview) -> bytes:
        received.append(bytes(frame[8:]))
        return bytes(frame[4:8])

    server = await start_server(ssl=server_tls, large_handler=large)
    peer = RawPeer(*await asyncio.open_connection("localhost", server.port, ssl=client_tls, family=2))
    for number in range(4):
        await peer.send_frame(request(number, payload_of(number)))
        await peer.send_frame(request(number + 100, b"small"))
    for number in range(4):
        assert await peer.read_frame() == response(number)
        assert await peer.read_frame() == response(number + 100, b"small")

    assert received == [payload_of(number) for number in range(4)]
    await peer.close()


class Concurrency:
    """A handler that returns a request's payload and counts the requests that it handles at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    async def __call__(self, _peer: Peer, frame: bytes) -> bytes:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return frame[4:]


async def test_concurrent_requests_of_a_connection_are_limited(start_server, connect) -> None:
    """Further requests wait in the peer's socket, and all of them are handled in the end."""
    handler = Concurrency()
    peer = await connect(await start_server(handler, max_in_flight=4))
    flood = asyncio.ensure_future(_send_all(peer, 500))
    responses = [await peer.read_frame() for _ in range(500)]
    await flood

    assert responses == [response(number) for number in range(500)]
    assert handler.most == 4


async def _send_all(peer, count: int) -> None:
    for number in range(count):
        await peer.send_frame(request(number))


async def test_requests_above_the_byte_limit_of_a_connection_wait(start_server, connect) -> None:
    """Running requests hold at most the size of the largest frame, plus the request that exceeds it."""
    handler = Concurrency()
    peer = await connect(await start_server(handler, max_frame_bytes=1_000))
    for number in range(20):
        await peer.send_frame(request(number, bytes(492)))

    assert [await peer.read_frame() for _ in range(20)] == [response(number, bytes(492)) for number in range(20)]
    assert handler.most == 2


async def test_large_frames_are_received_and_sent_completely(start_server, connect) -> None:
    """A frame of many TCP segments, in both directions."""
    peer = await connect(await start_server())
    payload = bytes(range(256)) * 20_000
    sending = asyncio.ensure_future(peer.send_frame(request(7, payload)))

    assert await peer.read_frame() == response(7, payload)
    await sending


async def test_a_half_closed_peer_receives_its_responses(start_server, connect) -> None:
    """A client may send its last request and its FIN together."""
    gate = asyncio.Event()

    async def wait(_peer: Peer, frame: bytes) -> bytes:
        await gate.wait()
        return frame[4:]

    peer = await connect(await start_server(wait, max_in_flight=1))
    for number in range(3):
        await peer.send_frame(request(number))
    peer.writer.write_eof()
    await asyncio.sleep(0)
    gate.set()

    assert [await peer.read_frame() for _ in range(3)] == [response(number) for number in range(3)]
    assert await peer.is_closed_by_server()


async def test_a_slow_handler_does_not_delay_other_connections(start_server, connect) -> None:
    """Head-of-line blocking is limited to the connection."""

    async def stuck_on_one(_peer: Peer, frame: bytes) -> bytes:
        if frame.endswith(b"stuck"):
            await asyncio.Event().wait()
        return frame[4:]

    server = await start_server(stuck_on_one)
    slow, quick = await connect(server), await connect(server)
    await slow.send_frame(request(1, b"stuck"))
    await quick.send_frame(request(2))

    assert await quick.read_frame() == response(2)


async def test_a_lost_connection_cancels_its_handlers_and_runs_close_callbacks(start_server, connect) -> None:
    """Per-connection resources, such as an upstream connection, are released with it."""
    started, cancelled, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait(peer: Peer, _frame: bytes) -> bytes:
        peer.on_close(closed.set)
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return b""

    server = await start_server(wait)
    peer = await connect(server)
    await peer.send_frame(request(1))
    await started.wait()
    await peer.reset()
    await closed.wait()
    await cancelled.wait()

    assert (server.connection_count, server.held_bytes) == (0, 0)


async def test_a_close_callback_is_called_at_once_after_the_end() -> None:
    """A callback is never lost in a race with the connection's end."""
    calls: list[str] = []
    peer = Peer("host", 1, print, print)
    peer.mark_closed()
    peer.on_close(lambda: calls.append("closed"))

    assert calls == ["closed"]


async def test_a_handler_may_close_the_connection_for_a_reason(start_server, connect, caplog) -> None:
    """CloseConnection is a command, not an error."""

    async def refuse(_peer: Peer, _frame: bytes) -> bytes:
        raise CloseConnection("no broker is left")

    caplog.set_level("INFO")
    peer = await connect(await start_server(refuse))
    await peer.send_frame(request(1))

    assert await peer.is_closed_by_server()
    assert [(record.levelname, record.reason) for record in caplog.records if "reason" in vars(record)] == [
        ("INFO", "no broker is left")
    ]


async def test_held_bytes_return_to_zero(start_server, connect) -> None:
    """The count of held bytes must not grow over time."""
    server = await start_server(max_in_flight=3)
    peer = await connect(server)
    for number in range(20):
        await peer.send_frame(request(number, bytes(number * 100)))
    for _ in range(20):
        await peer.read_frame()

    assert (server.connection_count, server.held_bytes) == (1, 0)


async def test_close_waits_for_running_requests(start_server, connect) -> None:
    """A graceful close completes running requests, and accepts no new ones."""
    started, gate = asyncio.Event(), asyncio.Event()

    async def wait(_peer: Peer, frame: bytes) -> bytes:
        started.set()
        await gate.wait()
        return frame[4:]

    server = await start_server(wait)
    peer, idle = await connect(server), await connect(server)
    await peer.send_frame(request(1))
    await started.wait()
    closing = asyncio.ensure_future(server.close())
    assert await idle.is_closed_by_server()
    with pytest.raises(OSError, match=r"refused|Connect"):
        await connect(server)
    gate.set()

    assert await peer.read_frame() == response(1)
    assert await peer.is_closed_by_server()
    await closing


async def test_close_waits_at_most_the_grace_period(start_server, connect) -> None:
    """A handler that hangs is cancelled."""
    started = asyncio.Event()

    async def hang(_peer: Peer, _frame: bytes) -> bytes:
        started.set()
        await asyncio.Event().wait()
        return b""

    server = await start_server(hang)
    peer = await connect(server)
    await peer.send_frame(request(1))
    await started.wait()
    await server.close(grace_ms=10)

    assert await peer.is_closed_by_server()
    assert server.connection_count == 0


def test_limits_of_zero_are_rejected() -> None:
    """With zero nothing would work, although it may be meant as 'no limit'."""
    with pytest.raises(ValueError, match="max_in_flight must be greater than 0"):
        ServerLimits(max_in_flight=0)


async def test_a_request_that_may_start_at_once_waits_for_those_before_it_to_start(connect) -> None:
    """Requests of a connection take effect in their order."""
    started: list[int] = []

    async def answer(_peer: Peer, frame: bytes) -> bytes:
        started.append(frame[-1])
        return frame[4:]

    server = await serve(answer, "127.0.0.1", 0, starts_at_once=lambda frame: frame[-1] % 2 == 0)
    peer = await connect(server)
    frames = [request(number, bytes([number])) for number in (0, 1, 2, 4)]
    await peer.send(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))

    assert [await peer.read_frame() for _ in range(4)] == [response(n, bytes([n])) for n in (0, 1, 2, 4)]
    assert started == [0, 1, 2, 4]
    await peer.close()
    await server.close(grace_ms=1)


async def test_many_requests_that_arrive_together_are_answered(start_server, connect) -> None:
    """More than may be handled concurrently (max_in_flight), in one write of the peer."""
    peer = await connect(await start_server(max_in_flight=3))
    frames = [request(number) for number in range(1_000)]
    await peer.send(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))

    assert [await peer.read_frame() for _ in range(1_000)] == [response(number) for number in range(1_000)]
