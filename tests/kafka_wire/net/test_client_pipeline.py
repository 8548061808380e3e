"""Client connection: requests are sent in order, responses match their requests, and every failure has a reason."""

import asyncio
import gc
import struct

import pytest

from kafka_wire import ApiKey, codec
from kafka_wire.net.client import Connection, ConnectionFailed, RequestTimedOut
from kafka_wire.net.connection import ViewDecoder
from kafka_wire.net.pipeline import MAX_UNANSWERED_REQUESTS
from kafka_wire.net.server import Peer
from tests.kafka_wire.net.peers import request, response
from tests.waiting import until


async def test_a_relayed_frame_only_changes_in_its_correlation_id(start_server, open_connection) -> None:
    """The id is replaced in the request and restored in the response; other clients may use the same one."""
    seen: list[bytes] = []

    async def record(_peer: Peer, frame: bytes) -> bytes:
        seen.append(frame)
        return frame[4:8] + b"reply"

    connection = await open_connection((await start_server(record)).port)
    replies = [await connection.call_raw(request(-77, b"payload")) for _ in range(2)]

    assert replies == [response(-77, b"reply")] * 2
    assert seen == [request(0, b"payload"), request(1, b"payload")]


async def test_pipelined_requests_are_sent_in_the_order_of_the_calls(start_server, open_connection) -> None:
    """Many concurrent callers, one stream."""
    seen: list[bytes] = []

    async def record(_peer: Peer, frame: bytes) -> bytes:
        seen.append(frame[8:])
        return frame[4:]

    connection = await open_connection((await start_server(record)).port)
    payloads = [bytes([number]) for number in range(100)]
    replies = await asyncio.gather(*(connection.call_raw(request(9, payload)) for payload in payloads))

    assert replies == [response(9, payload) for payload in payloads]
    assert payloads == seen


async def test_calls_above_the_limit_of_unanswered_requests_wait(start_server, open_connection) -> None:
    """The order is kept while they wait."""
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


async def test_long_fields_of_large_responses_are_views_that_are_never_overwritten(
    start_server, open_connection
) -> None:
    """Nothing of them is copied, and no buffer is received into while something views it; a small response is decoded from bytes."""
    sizes = iter([300_000, 300_000, 300_000, 10])

    async def answer(_peer: Peer, frame: bytes) -> bytes:
        header = codec.peek_header(frame)
        size = next(sizes)
        records = bytes([header.correlation_id]) * size
        body = {"responses": [{"topic": "orders", "partitions": [{"records": records}]}]}
        return codec.encode_response(ApiKey.FETCH, 4, header.correlation_id, body)

    connection = await open_connection((await start_server(answer)).port)
    found = []
    for _ in range(4):
        request_of_replica = {"replica_id": 1, "topics": []}
        call = await connection.start_call(
            ApiKey.FETCH, request_of_replica, ViewDecoder(ApiKey.FETCH, 1_000), versions=(4, 4)
        )
        found.append((await call)["responses"][0]["partitions"][0]["records"])

    assert [type(payload) for payload in found] == [memoryview, memoryview, memoryview, bytes]
    assert found == [b"\0" * 300_000, b"\1" * 300_000, b"\2" * 300_000, b"\3" * 10]


async def test_a_large_response_with_too_many_elements_ends_the_connection(start_server, open_connection) -> None:
    """Decoded elements take a multiple of their bytes."""

    async def answer(_peer: Peer, frame: bytes) -> bytes:
        header = codec.peek_header(frame)
        body = {"responses": [{"topic": "orders", "partitions": [{}] * 5_000}]}
        return codec.encode_response(ApiKey.FETCH, 4, header.correlation_id, body)

    connection = await open_connection((await start_server(answer)).port)
    call = await connection.start_call(
        ApiKey.FETCH, {"replica_id": 1, "topics": []}, ViewDecoder(ApiKey.FETCH, 1_000), versions=(4, 4)
    )
    with pytest.raises(ConnectionFailed, match="more than the limit of 1000 units"):
        await call
    assert connection.closed


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (response(5), "correlation id 5, expected 0"),
        (response(-1), "correlation id -1, expected 0"),
    ],
)
async def test_a_wrong_correlation_id_ends_the_connection(reply, reason, start_script, open_connection) -> None:
    """Responses arrive in order (Kafka's guarantee), so another id means that no later response can be matched."""

    async def send_wrong_correlation_id(peer) -> None:
        await peer.read_frame()
        await peer.send_frame(reply)

    connection = await open_connection(await start_script(send_wrong_correlation_id))
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

    async def send_garbage(peer) -> None:
        await peer.read_frame()
        await peer.send(stream)

    connection = await open_connection(await start_script(send_garbage), max_frame_bytes=1_000)
    with pytest.raises(ConnectionFailed, match=reason):
        await connection.call_raw(request(1))

    assert connection.closed


async def test_a_response_without_a_request_ends_the_connection(start_script, open_connection) -> None:
    """Kafka's protocol has no unsolicited messages."""

    async def speak_first(peer) -> None:
        await peer.send_frame(response(0))

    connection = await open_connection(await start_script(speak_first))
    ended = asyncio.Event()
    connection.on_end(ended.set)
    await ended.wait()

    with pytest.raises(ConnectionFailed, match="a response without a request"):
        await connection.call_raw(request(1))


async def test_a_closed_connection_fails_all_waiting_calls(start_script, open_connection) -> None:
    """Their requests may have been processed, so `sent` is True. Later requests were not sent."""

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


async def test_a_request_timeout_ends_the_connection(start_script, open_connection) -> None:
    """As in NetworkClient: responses arrive in order, so no later request can have a response either."""

    async def stay_silent(peer) -> None:
        await peer.read_frame()

    connection = await open_connection(await start_script(stay_silent))
    patient = asyncio.ensure_future(connection.call_raw(request(1)))
    with pytest.raises(RequestTimedOut, match="did not respond to a request in time"):
        await connection.call_raw(request(2), timeout_ms=20)
    with pytest.raises(RequestTimedOut):
        await patient

    assert connection.closed


async def test_a_response_in_time_cancels_the_timeout(start_server, open_connection) -> None:
    """The timer fires after the request that set it has ended, and has no effect."""
    connection = await open_connection((await start_server()).port)
    await connection.call_raw(request(1), timeout_ms=20)
    later = asyncio.ensure_future(connection.call_raw(request(1), timeout_ms=5_000))
    await asyncio.sleep(0.04)

    assert await later == response(1)
    assert not connection.closed


async def test_a_cancelled_call_does_not_affect_the_connection(start_server, open_connection) -> None:
    """Its response is dropped when it arrives; the next response belongs to the next request."""
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

    assert await waiting == response(2, b"kept")
    assert cancelled.cancelled()


async def test_a_cancelled_request_without_a_response_still_ends_the_connection(start_script, open_connection) -> None:
    """Its timeout still applies, so that an unresponsive peer is detected."""

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


async def test_held_bytes_of_a_response_are_reported_and_return_to_zero(start_server, open_connection) -> None:
    """A relay keeps an account of incomplete responses."""
    changes: list[int] = []

    async def much(_peer: Peer, frame: bytes) -> bytes:
        return frame[4:] + bytes(1_000_000)

    connection = await open_connection((await start_server(much)).port, on_held=changes.append)
    await connection.call_raw(request(1))

    assert sum(changes) == 0
    assert max(changes) > 0


async def test_held_bytes_are_released_when_the_connection_ends(start_script, open_connection) -> None:
    """Half a response arrives before the end."""
    changes: list[int] = []

    async def half(peer) -> None:
        await peer.read_frame()
        await peer.send(struct.pack(">i", 1_000) + bytes(500))
        await peer.close()

    connection = await open_connection(await start_script(half), on_held=changes.append)
    with pytest.raises(ConnectionFailed):
        await connection.call_raw(request(1))

    assert sum(changes) == 0


async def test_a_one_way_request_does_not_wait_for_a_response(start_server, open_connection) -> None:
    """Produce with acks=0; the next request has its response."""

    async def silent_on_one_way(_peer: Peer, frame: bytes) -> bytes | None:
        return None if frame.endswith(b"one way") else frame[4:]

    connection = await open_connection((await start_server(silent_on_one_way)).port)
    await connection.send_raw(request(1, b"one way"))

    assert await connection.call_raw(request(2, b"both ways")) == response(2, b"both ways")


async def test_a_peer_that_stops_reading_ends_the_connection_after_the_timeout(start_script, open_connection) -> None:
    """One-way requests have no response, so the timeout applies to writing."""

    async def do_not_read(peer) -> None:
        peer.writer.transport.pause_reading()
        await closed.wait()

    closed = asyncio.Event()
    connection = await open_connection(await start_script(do_not_read))
    with pytest.raises(RequestTimedOut, match="stopped reading"):
        await _send_forever(connection)
    closed.set()

    assert connection.closed


async def _send_forever(connection: Connection) -> None:
    while True:
        await connection.send_raw(request(1, bytes(1_000_000)), timeout_ms=30)


@pytest.mark.parametrize("frame", [b"", b"1234567", bytes(1_001)])
async def test_a_frame_that_is_not_a_request_is_rejected_locally(frame, start_server, open_connection) -> None:
    """A caller's mistake must not end the connection."""
    connection = await open_connection((await start_server()).port, max_frame_bytes=1_000)
    with pytest.raises(ValueError, match="cannot be sent"):
        await connection.call_raw(frame)

    assert await connection.call_raw(request(1)) == response(1)


async def test_close_fails_waiting_calls_and_may_be_called_twice(start_script, open_connection) -> None:
    """They fail with a reason, they are not cancelled."""

    async def stay_silent(peer) -> None:
        await peer.read_frame()

    connection = await open_connection(await start_script(stay_silent))
    call = asyncio.ensure_future(connection.call_raw(request(1)))
    await asyncio.sleep(0)
    await connection.close()
    await connection.close()

    with pytest.raises(ConnectionFailed, match="was closed locally"):
        await call


async def test_written_requests_are_sent_before_the_close(start_script, open_connection) -> None:
    """A one-way request right before the close is not lost."""
    frame = request(1, bytes(3_000_000))
    received = asyncio.get_running_loop().create_future()

    async def read(peer) -> None:
        received.set_result(await peer.read_frame())

    connection = await open_connection(await start_script(read))
    await connection.send_raw(frame)
    await connection.close()

    assert len(frame) == len(await received)


async def test_a_refused_connection_fails_with_its_address(start_server) -> None:
    """Nothing was sent, so the caller may use another node."""
    server = await start_server()
    await server.close()
    with pytest.raises(ConnectionFailed, match=rf"127.0.0.1:{server.port} cannot be reached") as failure:
        await Connection.open("127.0.0.1", server.port, client_id=None)

    assert not failure.value.sent


async def test_failures_of_cancelled_calls_are_not_logged_as_unretrieved(start_script, open_connection, caplog) -> None:
    """A cancelled call on an ended connection logs no 'exception was never retrieved'."""

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
