"""Requests that the controller does not answer itself reach a live broker unchanged, and so do the responses."""

import asyncio
import contextlib
import struct
from types import SimpleNamespace

import pytest

from controller_core.shell.front.relay import Relay, RelayLimits
from controller_core.shell.front.route import BrokerEndpoint
from kafka_wire import ApiKey, codec
from kafka_wire.net.server import Peer, ServerLimits
from tests.controller_core.shell.front.fakes import FakeBroker, once, request
from tests.waiting import until


def upstreams(relay: Relay) -> int:
    """Count the client connections that have a broker."""
    return sum(route.endpoint is not None for route in relay._routes.values())


def close_reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the logged reasons of closed connections."""
    return [vars(record)["reason"] for record in caplog.records if "reason" in vars(record)]


def _without_correlation_id(frame: bytes) -> bytes:
    """Remove the correlation id, which the relay replaces."""
    return frame[:4] + frame[8:]


def _answer(broker_id: int, frame: bytes) -> bytes:
    """Return the fake broker's answer to a request."""
    return frame[4:8] + bytes([broker_id]) + _without_correlation_id(frame)


async def test_frames_are_relayed_unchanged_in_both_directions(start_brokers, start_front, connect) -> None:
    """Byte for byte; the answer has the client's correlation id."""
    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers))
    frames = [request(ApiKey.FIND_COORDINATOR, 4, -9, b"\x00\xff garbage"), request(ApiKey.JOIN_GROUP, 5, 0)]

    assert [_answer(1, frame) for frame in frames] == [await client.exchange(frame) for frame in frames]
    assert [_without_correlation_id(frame) for frame in frames] == brokers[0].relayed


async def test_api_of_newer_brokers_is_relayed(start_brokers, start_front, connect) -> None:
    """The relay only needs to know that all brokers serve it."""
    brokers = await start_brokers(1, ranges={ApiKey.API_VERSIONS: (0, 4), 1_234: (0, 1)})
    client = await connect(await start_front(brokers))
    await client.call(ApiKey.API_VERSIONS, 0, {})
    frame = request(1_234, 1)

    assert _answer(1, frame) == await client.exchange(frame)


async def test_client_keeps_its_broker_and_clients_are_distributed(start_brokers, start_front, connect) -> None:
    """Some protocols have state per connection, and the load must be balanced."""
    brokers = await start_brokers(1, 2)
    front = await start_front(brokers)
    clients = [await connect(front) for _ in range(4)]
    found = [[(await client.exchange(request(ApiKey.LIST_GROUPS)))[4] for _ in range(3)] for client in clients]

    assert found == [[1] * 3, [2] * 3, [1] * 3, [2] * 3]
    assert (upstreams(front.relay), [broker.connection_count for broker in brokers]) == (4, [2, 2])


async def test_pipelined_requests_keep_their_order(start_brokers, start_front, connect) -> None:
    """A broker processes the requests of a connection in order."""
    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers))
    frames = [request(ApiKey.JOIN_GROUP, 1, number, bytes([number])) for number in range(100)]
    for frame in frames:
        await client.send_frame(frame)

    assert [_answer(1, frame) for frame in frames] == [await client.read_frame() for _ in frames]
    assert [_without_correlation_id(frame) for frame in frames] == brokers[0].relayed


async def test_long_poll_of_one_client_delays_no_other(start_brokers, start_front, connect) -> None:
    """Each client has a separate connection to the broker."""
    brokers = await start_brokers(1)

    async def hang_on_fetch(_peer: Peer, frame: bytes) -> bytes:
        if frame[:2] == struct.pack(">h", ApiKey.FETCH):
            await asyncio.Event().wait()
        return frame[4:8] + brokers[0].answer(frame)

    brokers[0].react = hang_on_fetch
    front = await start_front(brokers)
    poller, other = await connect(front), await connect(front)
    await poller.send_frame(request(ApiKey.FETCH, 4))
    await brokers[0].arrived.wait()
    frame = request(ApiKey.LIST_GROUPS)

    assert _answer(1, frame) == await other.exchange(frame)


async def test_broker_connection_is_closed_with_the_client_connection(start_brokers, start_front, connect) -> None:
    """A disconnected client occupies nothing at a broker."""
    brokers = await start_brokers(1)
    front = await start_front(brokers)
    client = await connect(front)
    await client.exchange(request(ApiKey.LIST_GROUPS))
    await client.close()
    await until(lambda: brokers[0].connection_count == 0)

    assert upstreams(front.relay) == 0


async def test_reset_of_the_client_connection_cancels_its_request(start_brokers, start_front, connect) -> None:
    """The front does not wait for an answer without a receiver."""
    brokers = await start_brokers(1)
    brokers[0].react = lambda _peer, _frame: asyncio.Event().wait()
    front = await start_front(brokers)
    client = await connect(front)
    await client.send_frame(request(ApiKey.JOIN_GROUP))
    await brokers[0].arrived.wait()
    await client.reset()

    await until(lambda: upstreams(front.relay) == 0)


async def _fail(broker: FakeBroker) -> None:
    await asyncio.sleep(0)
    for peer in broker.peers:
        peer.close("broker failed")


async def test_read_request_is_repeated_at_another_broker(start_brokers, start_front, connect) -> None:
    """After the failure of its broker; the client gets an answer."""
    brokers = await start_brokers(1, 2)
    brokers[0].react = once(lambda: _fail(brokers[0]), brokers[0])
    client = await connect(await start_front(brokers))
    frame = request(ApiKey.LIST_GROUPS)

    assert _answer(2, frame) == await client.exchange(frame)
    assert [len(broker.relayed) for broker in brokers] == [1, 1]


async def test_modifying_request_is_not_repeated(start_brokers, start_front, connect) -> None:
    """It may have been processed; the client's connection is closed and the client decides."""
    brokers = await start_brokers(1, 2)
    brokers[0].react = once(lambda: _fail(brokers[0]), brokers[0])
    client = await connect(await start_front(brokers))
    await client.send_frame(request(ApiKey.JOIN_GROUP))

    assert await client.is_closed_by_server()
    assert brokers[1].relayed == []


async def test_read_request_has_a_limit_of_attempts(start_brokers, start_front, connect, caplog) -> None:
    """A request that crashes brokers must not reach all of them."""
    brokers = await start_brokers(1, 2, 3, 4, 5)
    for broker in brokers:
        broker.react = once(lambda broker=broker: _fail(broker), broker)
    client = await connect(await start_front(brokers))
    caplog.set_level("INFO")
    await client.send_frame(request(ApiKey.LIST_GROUPS))

    assert await client.is_closed_by_server()
    assert sum(len(broker.relayed) for broker in brokers) == 3
    assert any("connection to the broker was lost" in reason for reason in close_reasons(caplog))


async def test_any_request_is_sent_to_another_broker_if_none_received_it(start_brokers, start_front, connect) -> None:
    """Nothing was sent, so nothing is repeated. The next client does not try the unreachable broker first."""
    brokers = await start_brokers(1, 2)
    await brokers[0].close()
    front = await start_front(brokers)
    frame = request(ApiKey.JOIN_GROUP)
    answers = [await (await connect(front)).exchange(frame) for _ in range(3)]

    assert answers == [_answer(2, frame)] * 3
    assert set(front.relay._avoid) == {brokers[0].endpoint}


async def test_broker_lost_between_requests_is_replaced(start_brokers, start_front, connect) -> None:
    """A restart of a broker does not affect relayed clients without state at the broker."""
    brokers = await start_brokers(1, 2)
    client = await connect(await start_front(brokers))
    frame = request(ApiKey.JOIN_GROUP)
    assert _answer(1, frame) == await client.exchange(frame)
    await brokers[0].close()

    assert _answer(2, frame) == await client.exchange(frame)


async def test_client_leaves_a_broker_that_is_no_longer_live(start_brokers, start_front, connect) -> None:
    """A hung broker still has its connections."""
    brokers = await start_brokers(1, 2)
    live = list(brokers)
    front = await start_front(live)
    client = await connect(front)
    frame = request(ApiKey.LIST_GROUPS)
    assert _answer(1, frame) == await client.exchange(frame)
    live.remove(brokers[0])

    assert _answer(2, frame) == await client.exchange(frame)


async def test_requests_to_a_hung_broker_end_when_it_is_no_longer_live(start_brokers, start_front, connect) -> None:
    """Read requests are repeated at another broker, others close their connection."""
    brokers = await start_brokers(1, 2)
    live = list(brokers)
    brokers[0].react = lambda _peer, _frame: asyncio.Event().wait()
    front = await start_front(live)
    reader = await connect(front)
    await reader.send_frame(request(ApiKey.LIST_GROUPS))
    await brokers[0].arrived.wait()
    live.remove(brokers[0])
    front.relay.disconnect_broker(1)

    assert (await reader.read_frame())[4] == 2


async def test_without_a_live_broker_the_connection_is_closed(start_front, connect, caplog) -> None:
    """The client reconnects; there is no answer to relay."""
    caplog.set_level("INFO")
    client = await connect(await start_front([]))
    await client.send_frame(request(ApiKey.LIST_GROUPS))

    assert await client.is_closed_by_server()
    assert any("0 brokers are live on this listener" in reason for reason in close_reasons(caplog))


def _produce(acks: int) -> bytes:
    return codec.encode_request(ApiKey.PRODUCE, 9, 3, "tests", {"acks": acks, "timeout_ms": 1, "topic_data": []})


async def test_produce_with_acks_0_has_no_answer(start_brokers, start_front, connect) -> None:
    """The next answer belongs to the next request."""
    brokers = await start_brokers(1)

    async def silent_on_produce(_peer: Peer, frame: bytes) -> bytes | None:
        return None if frame[:2] == b"\0\0" else frame[4:8] + brokers[0].answer(frame)

    brokers[0].react = silent_on_produce
    client = await connect(await start_front(brokers))
    frame = request(ApiKey.LIST_GROUPS)
    await client.send_frame(_produce(0))
    await client.send_frame(_produce(0))

    assert _answer(1, frame) == await client.exchange(frame)
    assert len(brokers[0].relayed) == 3


async def test_last_requests_of_a_client_reach_the_broker(start_brokers, start_front, connect) -> None:
    """Produce with acks=0 before the end of the connection: the records are not dropped."""
    brokers = await start_brokers(1)
    brokers[0].react = lambda _peer, _frame: asyncio.sleep(0)
    client = await connect(await start_front(brokers))
    for _ in range(50):
        await client.send_frame(_produce(0))
    await client.close()
    await until(lambda: len(brokers[0].relayed) == 50)


@pytest.mark.parametrize("frame", [_produce(0), request(ApiKey.SASL_HANDSHAKE, 1)], ids=["acks=0", "SASL"])
async def test_bound_client_connection_is_closed_with_its_broker(frame, start_brokers, start_front, connect) -> None:
    """With acks=0 the closed connection is the only sign of an error, and a SASL session cannot be moved."""
    brokers = await start_brokers(1, 2)
    client = await connect(await start_front(brokers))
    await client.send_frame(frame)
    await brokers[0].arrived.wait()
    await brokers[0].close()
    while not await client.is_closed_by_server():
        continue

    assert brokers[1].relayed == []


async def test_invalid_answer_of_a_broker_is_not_relayed(start_brokers, start_front, connect) -> None:
    """A wrong correlation id closes the connection to the broker."""
    brokers = await start_brokers(1)

    async def answer_invalid(_peer: Peer, _frame: bytes) -> bytes:
        return b"\x7f\x7f\x7f\x7fwrong"

    brokers[0].react = answer_invalid
    client = await connect(await start_front(brokers))
    await client.send_frame(request(ApiKey.JOIN_GROUP))

    assert await client.is_closed_by_server()


async def test_buffered_answer_of_a_broker_counts_for_its_client(start_brokers, start_front, connect, caplog) -> None:
    """Many clients that request much and read nothing cannot exhaust the controller's memory."""
    ended = asyncio.Event()

    async def half_an_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(struct.pack(">i", 50_000_000) + bytes(2_000_000))
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        ended.set()

    broker = await asyncio.start_server(half_an_answer, "127.0.0.1", 0)
    [other] = await start_brokers(1)
    port = broker.sockets[0].getsockname()[1]
    live = [SimpleNamespace(endpoint=BrokerEndpoint(2, "127.0.0.1", port))]
    front = await start_front(live, limits=ServerLimits(max_buffered_bytes=1_000_000))
    client = await connect(front)
    await client.send_frame(request(ApiKey.FETCH))
    assert await client.is_closed_by_server()
    await ended.wait()
    broker.close()
    live[:] = [other]

    assert any("all connections hold" in reason for reason in close_reasons(caplog))
    assert (await (await connect(front)).exchange(request(ApiKey.LIST_GROUPS)))[4] == 1
    assert front._server.held_bytes == 0


async def test_relayed_clients_are_limited(start_brokers, start_front, connect, caplog) -> None:
    """Own requests are answered beyond the limit; a disconnected client frees a place."""
    caplog.set_level("INFO")
    brokers = await start_brokers(1)
    front = await start_front(brokers, relay_limits=RelayLimits(max_upstreams=1))
    first, second = await connect(front), await connect(front)
    await first.exchange(request(ApiKey.LIST_GROUPS))
    await second.send_frame(request(ApiKey.LIST_GROUPS))
    assert await second.is_closed_by_server()
    assert any("limit of 1 relayed client connections is reached" in reason for reason in close_reasons(caplog))
    await first.close()
    await until(lambda: upstreams(front.relay) == 0)

    assert (await (await connect(front)).exchange(request(ApiKey.LIST_GROUPS)))[4] == 1


async def test_closing_the_front_closes_its_connections_to_brokers(start_brokers, start_front, connect) -> None:
    """No connection remains."""
    brokers = await start_brokers(1)
    front = await start_front(brokers)
    await (await connect(front)).exchange(request(ApiKey.LIST_GROUPS))
    await front.close()
    await until(lambda: brokers[0].connection_count == 0)

    assert upstreams(front.relay) == 0
