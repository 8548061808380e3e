"""One connection: requests go out in order, each answer finds its request, and every end has a reason."""

import asyncio
import gc
import struct

import pytest

from kafka_wire.net.client import Connection, ConnectionFailed, RequestTimedOut
from kafka_wire.net.pipeline import MAX_UNANSWERED_REQUESTS
from kafka_wire.net.server import Peer
from tests.kafka_wire_net.peers import request, response, until


async def test_a_relayed_frame_keeps_all_but_its_correlation_id(start_server, open_connection) -> None:
    """The id is replaced on the way out and put back on the way in; other clients may use the same one."""
    seen: list[bytes] = []

    async def record(_peer: Peer, frame: bytes) -> bytes:
        seen.append(frame)
        return frame[4:8] + b"answer"

    connection = await open_connection((await start_server(record)).port)
    answers = [await connection.call_raw(request(-77, b"payload")) for _ in range(2)]

    assert answers == [response(-77, b"answer")] * 2
    assert seen == [request(0, b"payload"), request(1, b"payload")]


async def test_pipelined_requests_go_out_in_the_order_of_the_calls(start_server, open_connection) -> None:
    """Many callers at once, one stream."""
    seen: list[bytes] = []

    async def record(_peer: Peer, frame: bytes) -> bytes:
        seen.append(frame[8:])
        return frame[4:]

    connection = await open_connection((await start_server(record)).port)
    payloads = [bytes([number]) for number in range(100)]
    answers = await asyncio.gather(*(connection.call_raw(request(9, payload)) for payload in payloads))

    assert [response(9, payload) for payload in payloads] == answers
    assert payloads == seen


async def test_calls_over_the_unanswered_limit_wait_their_turn(start_server, open_connection) -> None:
    """A bound on everything; the order is kept over the wait."""
    seen: list[bytes] = []
    gate = asyncio.Event()

    async def hold(_peer: Peer, frame: bytes) -> bytes:
        seen.append(frame[8:])
        await gate.wait()
        return frame[4:]

    connection = await open_connection((await start_server(hold, max_in_flight=10_000)).port)
    payloads = [struct.pack(">i", number) for number in range(MAX_UNANSWERED_REQUESTS + 20)]
    calls = asyncio.gather(*(connection.call_raw(request(0, payload)) for payload in payloads))
    await until(lambda: len(connection._pipeline._waiters) >= MAX_UNANSWERED_REQUESTS)
    await asyncio.sleep(0)
    assert len(connection._pipeline._waiters) == MAX_UNANSWERED_REQUESTS
    gate.set()
    await calls

    assert payloads == seen


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (response(5), "correlation id 5, expected 0"),
        (response(-1), "correlation id -1, expected 0"),
    ],
)
async def test_a_wrong_correlation_id_ends_the_connection(answer, reason, start_script, open_connection) -> None:
    """Answers come in order (Kafka's guarantee), so another id means that nothing fits any more."""

    async def answer_wrongly(peer) -> None:
        await peer.read_frame()
        await peer.send_frame(answer)

    connection = await open_connection(await start_script(answer_wrongly))
    calls = [asyncio.ensure_future(connection.call_raw(request(1))) for _ in range(3)]
    failures = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(failure) for failure in failures] == [ConnectionFailed] * 3
    assert all(reason in failure.reason and failure.sent for failure in failures)
    assert connection.closed


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (struct.pack(">i", 2_000), "limit is 1000"),
        (struct.pack(">i", -5), "announces -5 bytes"),
        (struct.pack(">i", 3) + b"abc", "announces 3 bytes"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "malformed stream"),
    ],
)
async def test_a_malformed_stream_ends_the_connection(stream, reason, start_script, open_connection) -> None:
    """Oversized, negative, too small, another protocol."""

    async def babble(peer) -> None:
        await peer.read_frame()
        await peer.send(stream)

    connection = await open_connection(await start_script(babble), max_frame_bytes=1_000)
    with pytest.raises(ConnectionFailed, match=reason):
        await connection.call_raw(request(1))

    assert connection.closed


async def test_a_response_that_nobody_asked_for_ends_the_connection(start_script, open_connection) -> None:
    """There is no unasked message in Kafka's protocol."""

    async def speak_first(peer) -> None:
        await peer.send_frame(response(0))

    connection = await open_connection(await start_script(speak_first))
    ended = asyncio.Event()
    connection.on_end(ended.set)
    await ended.wait()

    with pytest.raises(ConnectionFailed, match="a response without a request"):
        await connection.call_raw(request(1))


async def test_every_waiter_hears_that_the_peer_is_gone(start_script, open_connection) -> None:
    """They cannot know whether it was carried out: `sent` is True. Those that come later were not sent."""

    async def leave(peer) -> None:
        await peer.read_frame()
        await peer.close()

    connection = await open_connection(await start_script(leave))
    calls = [asyncio.ensure_future(connection.call_raw(request(1))) for _ in range(3)]
    failures = await asyncio.gather(*calls, return_exceptions=True)
    with pytest.raises(ConnectionFailed) as later:
        await connection.call_raw(request(1))

    assert [failure.sent for failure in failures] == [True] * 3
    assert not later.value.sent


async def test_a_request_without_answer_in_time_ends_the_connection(start_script, open_connection) -> None:
    """As NetworkClient does: answers come in order, so nothing behind it can come either."""

    async def stay_silent(peer) -> None:
        await peer.read_frame()

    connection = await open_connection(await start_script(stay_silent))
    patient = asyncio.ensure_future(connection.call_raw(request(1)))
    with pytest.raises(RequestTimedOut, match="did not respond to a request in time"):
        await connection.call_raw(request(2), timeout_ms=20)
    with pytest.raises(RequestTimedOut):
        await patient

    assert connection.closed


async def test_an_answer_in_time_disarms_the_time_out(start_server, open_connection) -> None:
    """The timer outlives the request that set it, and finds nothing to do."""
    connection = await open_connection((await start_server()).port)
    await connection.call_raw(request(1), timeout_ms=20)
    later = asyncio.ensure_future(connection.call_raw(request(1), timeout_ms=5_000))
    await asyncio.sleep(0.04)

    assert response(1) == await later
    assert not connection.closed


async def test_a_cancelled_call_leaves_the_connection_in_order(start_server, open_connection) -> None:
    """Its answer is dropped when it comes; the next answer goes to the next request."""
    gate, arrived = asyncio.Event(), asyncio.Event()

    async def hold(_peer: Peer, frame: bytes) -> bytes:
        arrived.set()
        await gate.wait()
        return frame[4:]

    connection = await open_connection((await start_server(hold)).port)
    cancelled = asyncio.ensure_future(connection.call_raw(request(1, b"cancelled")))
    await arrived.wait()
    cancelled.cancel()
    waiting = asyncio.ensure_future(connection.call_raw(request(2, b"kept")))
    gate.set()

    assert response(2, b"kept") == await waiting
    assert cancelled.cancelled()


async def test_a_cancelled_request_that_is_never_answered_still_ends_the_connection(
    start_script, open_connection
) -> None:
    """Its time-out belongs to the connection: a peer that does not answer is found out."""

    async def stay_silent(peer) -> None:
        await peer.read_frame()

    connection = await open_connection(await start_script(stay_silent))
    ended = asyncio.Event()
    connection.on_end(ended.set)
    call = asyncio.ensure_future(connection.call_raw(request(1), timeout_ms=20))
    await asyncio.sleep(0)
    call.cancel()
    await ended.wait()

    assert connection.closed


async def test_what_is_held_of_an_answer_is_told_and_returns_to_nothing(start_server, open_connection) -> None:
    """Who relays keeps an account of what arrived and is not whole yet."""
    told: list[int] = []

    async def much(_peer: Peer, frame: bytes) -> bytes:
        return frame[4:] + bytes(1_000_000)

    connection = await open_connection((await start_server(much)).port, on_held=told.append)
    await connection.call_raw(request(1))

    assert sum(told) == 0
    assert max(told) > 0


async def test_what_was_held_is_given_back_when_the_connection_ends(start_script, open_connection) -> None:
    """Half an answer, and then the end."""
    told: list[int] = []

    async def half(peer) -> None:
        await peer.read_frame()
        await peer.send(struct.pack(">i", 1_000) + bytes(500))
        await peer.close()

    connection = await open_connection(await start_script(half), on_held=told.append)
    with pytest.raises(ConnectionFailed):
        await connection.call_raw(request(1))

    assert sum(told) == 0


async def test_a_one_way_request_waits_for_nothing(start_server, open_connection) -> None:
    """Produce with acks=0; the next request is answered as ever."""

    async def silent_on_one_way(_peer: Peer, frame: bytes) -> bytes | None:
        return None if frame.endswith(b"one way") else frame[4:]

    connection = await open_connection((await start_server(silent_on_one_way)).port)
    await connection.send_raw(request(1, b"one way"))

    assert response(2, b"both ways") == await connection.call_raw(request(2, b"both ways"))


async def test_a_peer_that_stops_reading_ends_the_connection_in_time(start_script, open_connection) -> None:
    """One-way requests have no answer to wait for, so room to write is what has a time-out."""

    async def do_not_read(peer) -> None:
        peer.writer.transport.pause_reading()
        await gone.wait()

    gone = asyncio.Event()
    connection = await open_connection(await start_script(do_not_read))
    with pytest.raises(RequestTimedOut, match="stopped reading"):
        await _send_for_ever(connection)
    gone.set()

    assert connection.closed


async def _send_for_ever(connection: Connection) -> None:
    while True:
        await connection.send_raw(request(1, bytes(1_000_000)), timeout_ms=30)


@pytest.mark.parametrize("frame", [b"", b"1234567", bytes(1_001)])
async def test_a_frame_that_is_no_request_is_refused_here(frame, start_server, open_connection) -> None:
    """A caller's mistake must not cost the connection."""
    connection = await open_connection((await start_server()).port, max_frame_bytes=1_000)
    with pytest.raises(ValueError, match="cannot be sent"):
        await connection.call_raw(frame)

    assert response(1) == await connection.call_raw(request(1))


async def test_closing_fails_the_waiters_and_may_be_done_twice(start_script, open_connection) -> None:
    """A reason, not a cancellation: the waiter did nothing wrong."""

    async def stay_silent(peer) -> None:
        await peer.read_frame()

    connection = await open_connection(await start_script(stay_silent))
    call = asyncio.ensure_future(connection.call_raw(request(1)))
    await asyncio.sleep(0)
    await connection.close()
    await connection.close()

    with pytest.raises(ConnectionFailed, match="was closed locally"):
        await call


async def test_what_was_written_goes_out_before_the_close(start_script, open_connection) -> None:
    """A one-way request right before the close is not lost."""
    frame = request(1, bytes(3_000_000))
    received = asyncio.get_running_loop().create_future()

    async def read(peer) -> None:
        received.set_result(await peer.read_frame())

    connection = await open_connection(await start_script(read))
    await connection.send_raw(frame)
    await connection.close()

    assert len(frame) == len(await received)


async def test_a_port_where_nobody_listens_is_a_failure_with_its_address(start_server) -> None:
    """Nothing was sent, so anybody else may be asked instead."""
    server = await start_server()
    await server.close()
    with pytest.raises(ConnectionFailed, match=rf"127.0.0.1:{server.port} cannot be reached") as failure:
        await Connection.open("127.0.0.1", server.port, client_id=None)

    assert not failure.value.sent


async def test_failures_that_nobody_waits_for_are_not_reported_as_lost(start_script, open_connection, caplog) -> None:
    """A cancelled call and an ended connection together leave no 'exception was never retrieved' behind."""

    async def leave(peer) -> None:
        await peer.read_frame()
        await peer.close()

    connection = await open_connection(await start_script(leave))
    ended = asyncio.Event()
    connection.on_end(ended.set)
    call = asyncio.ensure_future(connection.call_raw(request(1)))
    await asyncio.sleep(0)
    call.cancel()
    await ended.wait()
    del call
    gc.collect()

    assert caplog.records == []
