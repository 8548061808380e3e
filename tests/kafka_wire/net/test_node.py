"""A node connects on demand, reconnects after a failure, and limits its attempts by a backoff."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from kafka_wire import ApiKey
from kafka_wire.net.client import Backoff, ConnectionFailed, Node, NodeSettings
from kafka_wire.net.server import CloseConnection, Peer
from tests.kafka_wire.net.fake_broker import broker_with
from tests.kafka_wire.net.peers import request, response
from tests.waiting import until

_QUICK = Backoff(initial_ms=1, cap_ms=4)
_NEVER = Backoff(initial_ms=3_600_000, cap_ms=3_600_000)


@pytest.fixture
async def make_node() -> AsyncIterator[Callable[..., Node]]:
    """Create nodes on loopback; closed after the test."""
    nodes: list[Node] = []

    def make(port: int, backoff: Backoff = _QUICK, **settings: int) -> Node:
        node = Node("127.0.0.1", port, NodeSettings(client_id="tests", backoff=backoff, **settings), random=lambda: 0.5)
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        await node.close()


async def _free_port(start_server) -> int:
    server = await start_server()
    await server.close()
    return server.port


async def test_a_node_connects_at_the_first_call(start_server, make_node) -> None:
    """An unused node has no connection."""
    server = await start_server()
    node = make_node(server.port)
    assert (node.connected, server.connection_count) == (False, 0)

    assert await node.call_raw(request(1)) == response(1)
    assert (node.connected, server.connection_count) == (True, 1)


async def test_calls_share_one_connection_and_keep_their_order(start_server, make_node) -> None:
    """Also calls that started while the connection was being opened."""
    seen: list[int] = []

    async def record(_peer: Peer, frame: bytes) -> bytes:
        seen.append(frame[-1])
        return frame[4:]

    server = await start_server(record)
    node = make_node(server.port)
    await asyncio.gather(*(node.call_raw(request(0, bytes([number]))) for number in range(50)))

    assert list(range(50)) == seen
    assert server.connection_count == 1


async def test_an_ended_connection_is_reopened_at_the_next_call(start_server, make_node) -> None:
    """A broker that restarts on its port is the same node."""
    server = await start_server()
    node = make_node(server.port)
    await node.call_raw(request(1))
    await server.close()
    await until(lambda: not node.connected)
    await start_server(port=server.port)

    assert await node.call_raw(request(2)) == response(2)


async def test_a_failed_call_is_only_retried_if_requested(start_server, make_node) -> None:
    """Only the caller knows whether a request is idempotent."""
    seen: list[int] = []

    async def fail_twice(_peer: Peer, frame: bytes) -> bytes:
        seen.append(frame[-1])
        if seen.count(frame[-1]) < 3:
            raise CloseConnection("not yet")
        return frame[4:]

    node = make_node((await start_server(fail_twice)).port)
    with pytest.raises(ConnectionFailed):
        await node.call_raw(request(0, b"\1"))
    await node.call_raw(request(0, b"\2"), attempts=3)

    assert seen == [1, 2, 2, 2]


async def test_the_number_of_attempts_is_limited(start_server, make_node) -> None:
    """The last failure is raised."""
    seen: list[bytes] = []

    async def always_fail(_peer: Peer, frame: bytes) -> bytes:
        seen.append(frame)
        raise CloseConnection("never")

    node = make_node((await start_server(always_fail)).port)
    with pytest.raises(ConnectionFailed) as failure:
        await node.call_raw(request(0), attempts=3)

    assert len(seen) == 3
    assert failure.value.sent


async def test_a_call_that_cannot_wait_for_the_backoff_fails_at_once(start_server, make_node) -> None:
    """With an hour between attempts the second call times out earlier."""
    node = make_node(await _free_port(start_server), _NEVER)
    with pytest.raises(ConnectionFailed, match="cannot be reached"):
        await node.call_raw(request(1))
    with pytest.raises(
        ConnectionFailed, match=r"failed 1 times, and the next attempt is .* after this request's timeout"
    ):
        await node.call_raw(request(1))


async def test_failures_accumulate_until_a_response_arrives(start_server, make_node) -> None:
    """An accepted connection does not reset the backoff: a peer with another protocol accepts and closes connections."""
    healthy = False

    async def fail_until_healthy(_peer: Peer, frame: bytes) -> bytes:
        if not healthy:
            raise CloseConnection("no")
        return frame[4:]

    node = make_node((await start_server(fail_until_healthy)).port)
    for _ in range(4):
        with pytest.raises(ConnectionFailed):
            await node.call_raw(request(1))
    assert node._failures == 3  # the fourth is counted at the next call
    healthy = True
    await node.call_raw(request(1))

    assert node._failures == 0


async def test_calls_that_wait_for_an_attempt_share_its_failure(start_server, make_node) -> None:
    """A hundred calls to an unreachable node make one attempt, not a hundred consecutive ones."""
    node = make_node(await _free_port(start_server), _NEVER)
    calls = [node.call_raw(request(1)) for _ in range(100)]
    failures = await asyncio.gather(*calls, return_exceptions=True)

    assert {(type(failure), failure.sent) for failure in failures} == {(ConnectionFailed, False)}
    assert node._failures == 1


async def test_a_call_waits_for_a_slow_connect_up_to_its_timeout(start_server) -> None:
    """A call with a long timeout must not delay the others."""
    opening = asyncio.Event()

    class Slow(Node):
        async def _connected(self, deadline: float):
            opening.set()
            await asyncio.sleep(0.2)
            return await super()._connected(deadline)

    node = Slow("127.0.0.1", (await start_server()).port)
    patient = asyncio.ensure_future(node.call_raw(request(1)))
    await opening.wait()
    with pytest.raises(ConnectionFailed, match="could not be reached in time"):
        await node.call_raw(request(2), timeout_ms=10)

    assert await patient == response(1)
    await node.close()


async def test_call_negotiates_again_on_a_new_connection(start_server, make_node) -> None:
    """The node may have restarted with another version of Kafka."""
    first = await start_server(broker_with(describe_cluster=(0, 0)))
    node = make_node(first.port)
    assert (await node.call(ApiKey.DESCRIBE_CLUSTER, {}))["cluster_id"] == "version 0"
    await first.close()
    await start_server(broker_with(describe_cluster=(0, 1)), port=first.port)

    assert (await node.call(ApiKey.DESCRIBE_CLUSTER, {}, attempts=2))["cluster_id"] == "version 1"


async def test_a_closed_node_stays_closed(start_server, make_node) -> None:
    """Running and later calls fail with that reason."""
    arrived = asyncio.Event()

    async def hang(_peer: Peer, _frame: bytes) -> bytes:
        arrived.set()
        await asyncio.Event().wait()
        return b""

    node = make_node((await start_server(hang)).port)
    under_way = asyncio.ensure_future(node.call_raw(request(1), attempts=5))
    await arrived.wait()
    await node.close()
    with pytest.raises(ConnectionFailed, match="closed locally"):
        await under_way
    with pytest.raises(ConnectionFailed, match="closed locally"):
        await node.call_raw(request(1))


async def test_a_node_sends_one_way_requests(start_server, make_node) -> None:
    """Produce with acks=0."""
    seen: list[bytes] = []
    arrived = asyncio.Event()

    async def ignore(_peer: Peer, frame: bytes) -> None:
        seen.append(frame[8:])
        arrived.set()

    node = make_node((await start_server(ignore)).port)
    await node.send_raw(request(1, b"payload"))
    await arrived.wait()

    assert seen == [b"payload"]
