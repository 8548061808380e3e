"""What the controller does not own reaches a live broker unchanged, and its answer comes back so."""

import asyncio
import contextlib
import socket
import struct
from types import SimpleNamespace

import pytest

from controller_core.shell.front.relay import Relay, RelayLimits
from controller_core.shell.front.route import BrokerEndpoint
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.net.server import Peer, ServerLimits
from tests.controller_core.shell.front.fakes import FakeBroker, once, request, until


def upstreams(relay: Relay) -> int:
    """How many client connections have a broker now."""
    return sum(route.endpoint is not None for route in relay._routes.values())


def _unnumbered(frame: bytes) -> bytes:
    """Leave out the correlation id, which the relay replaces on its way."""
    return frame[:4] + frame[8:]


def _answer(broker_id: int, frame: bytes) -> bytes:
    """Build the fake broker's answer to a request."""
    return frame[4:8] + bytes([broker_id]) + _unnumbered(frame)


async def test_frames_go_both_ways_unchanged(start_brokers, start_front, connect) -> None:
    """Byte for byte; the correlation id is the client's own again in the answer."""
    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers))
    frames = [request(ApiKey.FIND_COORDINATOR, 4, -9, b"\x00\xff garbage"), request(ApiKey.JOIN_GROUP, 5, 0)]

    assert [_answer(1, frame) for frame in frames] == [await client.ask(frame) for frame in frames]
    assert [_unnumbered(frame) for frame in frames] == brokers[0].relayed


async def test_an_api_key_that_only_newer_brokers_know_is_relayed(start_brokers, start_front, connect) -> None:
    """The relay needs to know nothing of a request but that the brokers serve it."""
    brokers = await start_brokers(1, ranges={ApiKey.API_VERSIONS: (0, 4), 1_234: (0, 1)})
    client = await connect(await start_front(brokers))
    await client.call(ApiKey.API_VERSIONS, 0, {})
    frame = request(1_234, 1)

    assert _answer(1, frame) == await client.ask(frame)


async def test_a_client_keeps_its_broker_and_clients_are_spread(start_brokers, start_front, connect) -> None:
    """Some protocols hold state per connection; and no broker gets all of the load."""
    brokers = await start_brokers(1, 2)
    front = await start_front(brokers)
    clients = [await connect(front) for _ in range(4)]
    found = [[(await client.ask(request(ApiKey.LIST_GROUPS)))[4] for _ in range(3)] for client in clients]

    assert found == [[1] * 3, [2] * 3, [1] * 3, [2] * 3]
    assert (upstreams(front.relay), [broker.connection_count for broker in brokers]) == (4, [2, 2])


async def test_pipelined_requests_keep_their_order(start_brokers, start_front, connect) -> None:
    """A broker handles a connection's requests one after the other, so the order is the client's to choose."""
    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers))
    frames = [request(ApiKey.JOIN_GROUP, 1, number, bytes([number])) for number in range(100)]
    for frame in frames:
        await client.send(frame)

    assert [_answer(1, frame) for frame in frames] == [await client.read() for _ in frames]
    assert [_unnumbered(frame) for frame in frames] == brokers[0].relayed


async def test_a_long_poll_of_one_client_holds_up_no_other(start_brokers, start_front, connect) -> None:
    """Each client has a connection of its own to the broker."""
    brokers = await start_brokers(1)

    async def hang_on_fetch(_peer: Peer, frame: bytes) -> bytes:
        if frame[:2] == struct.pack(">h", ApiKey.FETCH):
            await asyncio.Event().wait()
        return frame[4:8] + brokers[0].answer(frame)

    brokers[0].react = hang_on_fetch
    front = await start_front(brokers)
    poller, other = await connect(front), await connect(front)
    await poller.send(request(ApiKey.FETCH, 4))
    await brokers[0].arrived.wait()
    frame = request(ApiKey.LIST_GROUPS)

    assert _answer(1, frame) == await other.ask(frame)


async def test_the_brokers_connection_ends_with_the_clients(start_brokers, start_front, connect) -> None:
    """A client that has left holds nothing at a broker."""
    brokers = await start_brokers(1)
    front = await start_front(brokers)
    client = await connect(front)
    await client.ask(request(ApiKey.LIST_GROUPS))
    await client.close()
    await until(lambda: brokers[0].connection_count == 0)

    assert upstreams(front.relay) == 0


async def test_a_client_that_breaks_off_takes_its_request_with_it(start_brokers, start_front, connect) -> None:
    """Nobody waits any more, so neither does the front."""
    brokers = await start_brokers(1)
    brokers[0].react = lambda _peer, _frame: asyncio.Event().wait()
    front = await start_front(brokers)
    client = await connect(front)
    await client.send(request(ApiKey.JOIN_GROUP))
    await brokers[0].arrived.wait()
    linger = struct.pack("ii", 1, 0)  # on, for no time: close sends RST
    client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    await client.close()

    await until(lambda: upstreams(front.relay) == 0)


async def _die(broker: FakeBroker) -> None:
    await asyncio.sleep(0)
    for peer in broker.peers:
        peer.close("dies")


async def test_a_read_is_asked_of_another_broker_when_its_broker_dies(start_brokers, start_front, connect) -> None:
    """The client never notices."""
    brokers = await start_brokers(1, 2)
    brokers[0].react = once(lambda: _die(brokers[0]), brokers[0])
    client = await connect(await start_front(brokers))
    frame = request(ApiKey.LIST_GROUPS)

    assert _answer(2, frame) == await client.ask(frame)
    assert [len(broker.relayed) for broker in brokers] == [1, 1]


async def test_a_request_that_changes_something_is_not_repeated(start_brokers, start_front, connect) -> None:
    """It may have been carried out; the client, which knows what it wants, is told by its connection's end."""
    brokers = await start_brokers(1, 2)
    brokers[0].react = once(lambda: _die(brokers[0]), brokers[0])
    client = await connect(await start_front(brokers))
    await client.send(request(ApiKey.JOIN_GROUP))

    assert await client.is_closed_by_server()
    assert brokers[1].relayed == []


async def test_a_read_is_not_repeated_for_ever(start_brokers, start_front, connect, caplog) -> None:
    """A request that kills every broker it meets must not meet them all."""
    brokers = await start_brokers(1, 2, 3, 4, 5)
    for broker in brokers:
        broker.react = once(lambda broker=broker: _die(broker), broker)
    client = await connect(await start_front(brokers))
    caplog.set_level("INFO")
    await client.send(request(ApiKey.LIST_GROUPS))

    assert await client.is_closed_by_server()
    assert sum(len(broker.relayed) for broker in brokers) == 3
    assert any("connection to the broker was lost" in record.message for record in caplog.records)


async def test_any_request_goes_elsewhere_when_its_broker_was_not_reached(start_brokers, start_front, connect) -> None:
    """Nothing was sent, so nothing is repeated. The next client does not try the dead one first."""
    brokers = await start_brokers(1, 2)
    await brokers[0].close()
    front = await start_front(brokers)
    frame = request(ApiKey.JOIN_GROUP)
    answers = [await (await connect(front)).ask(frame) for _ in range(3)]

    assert answers == [_answer(2, frame)] * 3
    assert set(front.relay._avoid) == {brokers[0].endpoint}


async def test_between_requests_a_lost_broker_is_replaced(start_brokers, start_front, connect) -> None:
    """A restart of a broker is nothing to its relayed clients, if they hold no state there."""
    brokers = await start_brokers(1, 2)
    client = await connect(await start_front(brokers))
    frame = request(ApiKey.JOIN_GROUP)
    assert _answer(1, frame) == await client.ask(frame)
    await brokers[0].close()

    assert _answer(2, frame) == await client.ask(frame)


async def test_a_broker_that_is_no_longer_live_is_left(start_brokers, start_front, connect) -> None:
    """A frozen broker still has its connections; the cluster knows better."""
    brokers = await start_brokers(1, 2)
    live = list(brokers)
    front = await start_front(live)
    client = await connect(front)
    frame = request(ApiKey.LIST_GROUPS)
    assert _answer(1, frame) == await client.ask(frame)
    live.remove(brokers[0])

    assert _answer(2, frame) == await client.ask(frame)


async def test_who_waits_for_a_frozen_broker_is_freed_when_it_is_gone(start_brokers, start_front, connect) -> None:
    """Reads go elsewhere, writes end with their connection."""
    brokers = await start_brokers(1, 2)
    live = list(brokers)
    brokers[0].react = lambda _peer, _frame: asyncio.Event().wait()
    front = await start_front(live)
    reader = await connect(front)
    await reader.send(request(ApiKey.LIST_GROUPS))
    await brokers[0].arrived.wait()
    live.remove(brokers[0])
    front.relay.disconnect_broker(1)

    assert (await reader.read())[4] == 2


async def test_without_a_live_broker_the_client_is_closed(start_front, connect, caplog) -> None:
    """It will come back; there is nobody whose error could be sent."""
    caplog.set_level("INFO")
    client = await connect(await start_front([]))
    await client.send(request(ApiKey.LIST_GROUPS))

    assert await client.is_closed_by_server()
    assert "0 brokers are live on this listener" in caplog.text


def _produce(acks: int) -> bytes:
    return codec.encode_request(ApiKey.PRODUCE, 9, 3, "tests", {"acks": acks, "timeout_ms": 1, "topic_data": []})


async def test_acks_0_is_not_waited_for(start_brokers, start_front, connect) -> None:
    """The broker answers nothing, and neither does the front; the next answer is the next request's."""
    brokers = await start_brokers(1)

    async def silent_on_produce(_peer: Peer, frame: bytes) -> bytes | None:
        return None if frame[:2] == b"\0\0" else frame[4:8] + brokers[0].answer(frame)

    brokers[0].react = silent_on_produce
    client = await connect(await start_front(brokers))
    frame = request(ApiKey.LIST_GROUPS)
    await client.send(_produce(0))
    await client.send(_produce(0))

    assert _answer(1, frame) == await client.ask(frame)
    assert len(brokers[0].relayed) == 3


async def test_what_a_client_sent_last_still_reaches_the_broker(start_brokers, start_front, connect) -> None:
    """Produce with acks=0 and then the end: the records are not dropped."""
    brokers = await start_brokers(1)
    brokers[0].react = lambda _peer, _frame: asyncio.sleep(0)
    client = await connect(await start_front(brokers))
    for _ in range(50):
        await client.send(_produce(0))
    await client.close()
    await until(lambda: len(brokers[0].relayed) == 50)


@pytest.mark.parametrize("frame", [_produce(0), request(ApiKey.SASL_HANDSHAKE, 1)], ids=["acks=0", "SASL"])
async def test_a_client_that_is_bound_to_its_broker_ends_with_it(frame, start_brokers, start_front, connect) -> None:
    """With acks=0 the broker's hanging up is the only sign of an error; and a SASL session cannot be moved."""
    brokers = await start_brokers(1, 2)
    client = await connect(await start_front(brokers))
    await client.send(frame)
    await brokers[0].arrived.wait()
    await brokers[0].close()
    while not await client.is_closed_by_server():
        continue

    assert brokers[1].relayed == []


async def test_a_broken_answer_of_a_broker_is_not_passed_on(start_brokers, start_front, connect) -> None:
    """A wrong correlation id ends the connection to the broker."""
    brokers = await start_brokers(1)

    async def confuse(_peer: Peer, _frame: bytes) -> bytes:
        return b"\x7f\x7f\x7f\x7fwrong"

    brokers[0].react = confuse
    client = await connect(await start_front(brokers))
    await client.send(request(ApiKey.JOIN_GROUP))

    assert await client.is_closed_by_server()


async def test_what_is_held_of_a_brokers_answer_counts_for_its_client(
    start_brokers, start_front, connect, caplog
) -> None:
    """Many clients that ask for much and read nothing cannot fill the controller's memory."""
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
    await client.send(request(ApiKey.FETCH))
    assert await client.is_closed_by_server()
    await ended.wait()
    broker.close()
    live[:] = [other]

    assert "bytes are held for all connections" in caplog.text
    assert (await (await connect(front)).ask(request(ApiKey.LIST_GROUPS)))[4] == 1
    assert front._server.held_bytes == 0


async def test_relayed_clients_are_limited(start_brokers, start_front, connect, caplog) -> None:
    """Own requests are answered beyond that; a client that leaves makes room."""
    caplog.set_level("INFO")
    brokers = await start_brokers(1)
    front = await start_front(brokers, relay_limits=RelayLimits(max_upstreams=1))
    first, second = await connect(front), await connect(front)
    await first.ask(request(ApiKey.LIST_GROUPS))
    await second.send(request(ApiKey.LIST_GROUPS))
    assert await second.is_closed_by_server()
    assert "limit of 1 relayed client connections is reached" in caplog.text
    await first.close()
    await until(lambda: upstreams(front.relay) == 0)

    assert (await (await connect(front)).ask(request(ApiKey.LIST_GROUPS)))[4] == 1


async def test_closing_the_front_ends_its_connections_to_brokers(start_brokers, start_front, connect) -> None:
    """Nothing is left behind."""
    brokers = await start_brokers(1)
    front = await start_front(brokers)
    await (await connect(front)).ask(request(ApiKey.LIST_GROUPS))
    await front.close()
    await until(lambda: brokers[0].connection_count == 0)

    assert upstreams(front.relay) == 0
