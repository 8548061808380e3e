"""Client of a cluster: where requests are sent, and what is tried again. Brokers are sockets that answer by a function."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack

import pytest

from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.client import Backoff, ConnectionFailed, MalformedResponse, NodeSettings
from kafka_wire.net.cluster import Address, ClusterClient, NoController, NoMetadata, parse_bootstrap
from kafka_wire.net.connection import body_decoder
from kafka_wire.net.server import Peer, Server, ServerLimits, serve

LIMIT_S = 10.0
SERVED = {ApiKey.API_VERSIONS: (0, 4), ApiKey.METADATA: (0, 12), ApiKey.DELETE_TOPICS: (1, 6)}
SETTINGS = NodeSettings(client_id="tests", request_timeout_ms=2_000, backoff=Backoff(initial_ms=1, cap_ms=4))


class Cluster:
    """Brokers of one cluster, by id. Each answers DeleteTopics with the error code in `codes`, and records the request."""

    def __init__(self) -> None:
        self.servers: dict[int, Server] = {}
        self.ports: dict[int, int] = {}
        """Those of Metadata; a stopped broker remains in it."""
        self.controller_id = 1
        self.codes: dict[int, int] = {}
        self.requests: list[tuple[int, ApiKey, int]] = []

    async def start(self, broker_id: int) -> None:
        """Start a broker on a free port."""

        async def handle(_peer: Peer, frame: bytes) -> bytes:
            header, _ = codec.decode_request(frame)
            key = ApiKey(header.api_key)
            self.requests.append((broker_id, key, header.api_version))
            return codec.encode_response(key, header.api_version, header.correlation_id, self._body(broker_id, key))

        self.servers[broker_id] = await serve(handle, "127.0.0.1", 0, limits=ServerLimits())
        self.ports[broker_id] = self.servers[broker_id].port

    async def stop(self, broker_id: int) -> None:
        """Stop a broker."""
        await self.servers.pop(broker_id).close(grace_ms=1)

    def asked(self, key: ApiKey) -> list[int]:
        """Return the brokers that received requests of one kind, in order."""
        return [broker_id for broker_id, requested, _ in self.requests if requested is key]

    def _body(self, broker_id: int, key: ApiKey) -> Body:
        if key is ApiKey.API_VERSIONS:
            return {
                "api_keys": [
                    {"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in SERVED.items()
                ]
            }
        if key is ApiKey.DELETE_TOPICS:
            return {"responses": [{"name": "orders", "error_code": self.codes.get(broker_id, 0)}]}
        brokers = [{"node_id": broker_id, "host": "127.0.0.1", "port": port} for broker_id, port in self.ports.items()]
        return {"cluster_id": "tests", "controller_id": self.controller_id, "brokers": brokers, "topics": []}


Connect = Callable[..., Awaitable[tuple[Cluster, ClusterClient]]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Start clusters with a client, whose bootstrap server is the first broker; closed after the test."""
    async with AsyncExitStack() as stack:

        async def start(*broker_ids: int) -> tuple[Cluster, ClusterClient]:
            cluster = Cluster()
            for broker_id in broker_ids:
                await cluster.start(broker_id)
            client = ClusterClient([Address("127.0.0.1", cluster.ports[broker_ids[0]])], SETTINGS)
            stack.push_async_callback(client.close)
            for server in cluster.servers.values():
                stack.push_async_callback(server.close, 1)
            return cluster, client

        yield start


def deadline() -> float:
    """Return a point of time that no test reaches."""
    return asyncio.get_running_loop().time() + LIMIT_S


async def delete(client: ClusterClient) -> list[int]:
    """Delete a topic through the controller, and return the error codes."""
    decode = body_decoder(ApiKey.DELETE_TOPICS)
    body = {"topics": [{"name": "orders"}], "topic_names": ["orders"], "timeout_ms": 1_000}
    answer = await client.call_controller(ApiKey.DELETE_TOPICS, body, decode, _codes, deadline=deadline())
    return list(_codes(answer))


def _codes(answer: Body) -> Iterable[int]:
    return [response["error_code"] for response in answer["responses"]]


async def test_a_request_is_sent_to_the_controller_that_metadata_names(connect: Connect) -> None:
    """It is looked up once."""
    cluster, client = await connect(1, 2)
    cluster.controller_id = 2

    assert (await delete(client), await delete(client)) == ([0], [0])
    assert cluster.asked(ApiKey.DELETE_TOPICS) == [2, 2]
    assert len(cluster.asked(ApiKey.METADATA)) == 1


async def test_a_request_is_sent_again_if_the_broker_is_no_longer_the_controller(connect: Connect) -> None:
    """NOT_CONTROLLER (ZooKeeper mode): Metadata is read again."""
    cluster, client = await connect(1, 2)
    await delete(client)
    cluster.codes[1] = ErrorCode.NOT_CONTROLLER
    cluster.controller_id = 2

    assert await delete(client) == [0]
    assert cluster.asked(ApiKey.DELETE_TOPICS) == [1, 1, 2]


async def test_a_request_is_sent_to_another_controller_if_the_known_one_is_offline(connect: Connect) -> None:
    """With KRaft, any broker forwards it (KIP-590), and Metadata names another one."""
    cluster, client = await connect(1, 2)
    await delete(client)
    await cluster.stop(1)
    cluster.controller_id = 2

    assert await delete(client) == [0]
    assert cluster.asked(ApiKey.DELETE_TOPICS) == [1, 2]


async def test_other_errors_of_the_controller_are_answers(connect: Connect) -> None:
    """The caller decides what they mean."""
    cluster, client = await connect(1)
    cluster.codes[1] = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    assert await delete(client) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert cluster.asked(ApiKey.DELETE_TOPICS) == [1]


@pytest.mark.parametrize("controller_id", [-1, 7])
async def test_a_cluster_without_a_controller_is_distinguished_from_an_offline_one(
    connect: Connect, controller_id: int
) -> None:
    """Metadata names none, or a broker that it does not contain."""
    cluster, client = await connect(1)
    cluster.controller_id = controller_id

    with pytest.raises(NoController):
        await delete(client)

    await cluster.stop(1)
    with pytest.raises(NoMetadata, match=r"no broker returned the cluster's metadata: 127.0.0.1:\d+ cannot be reached"):
        await delete(client)


async def test_a_controller_that_always_rejects_requests_ends_the_attempts(connect: Connect) -> None:
    """The number of attempts is limited."""
    cluster, client = await connect(1)
    cluster.codes[1] = ErrorCode.NOT_CONTROLLER

    with pytest.raises(NoController, match="is no longer the controller"):
        await delete(client)
    assert cluster.asked(ApiKey.DELETE_TOPICS) == [1, 1]


async def test_metadata_is_read_from_another_broker_each_time(connect: Connect) -> None:
    """After the first read, which uses a bootstrap server."""
    cluster, client = await connect(1, 2, 3)
    for _ in range(4):
        await client.metadata(deadline=deadline(), topics=[])

    assert cluster.asked(ApiKey.METADATA)[0] == 1
    assert set(cluster.asked(ApiKey.METADATA)[1:]) == {1, 2, 3}


async def test_a_broker_is_found_by_its_id(connect: Connect) -> None:
    """Its address is read when it is not known yet; one that is not in the metadata fails."""
    cluster, client = await connect(1, 2)
    decode = body_decoder(ApiKey.METADATA)

    found = await client.call(ApiKey.METADATA, {"topics": []}, decode, broker_id=2, deadline=deadline())

    assert found["cluster_id"] == "tests"
    assert cluster.asked(ApiKey.METADATA) == [1, 2]
    with pytest.raises(ConnectionFailed, match="broker 9 is not in the cluster's metadata"):
        await client.call(ApiKey.METADATA, {"topics": []}, decode, broker_id=9, deadline=deadline())


async def test_a_version_can_be_limited_by_the_caller(connect: Connect) -> None:
    """For a request that is built in some versions only."""
    cluster, client = await connect(1)
    decode = body_decoder(ApiKey.METADATA)

    await client.call(ApiKey.METADATA, {"topics": []}, decode, deadline=deadline(), versions=(5, 8))

    assert cluster.requests[-1] == (1, ApiKey.METADATA, 8)


async def test_no_request_is_sent_after_its_deadline(connect: Connect) -> None:
    """Also not by a client whose timeout is longer."""
    cluster, client = await connect(1)
    await client.metadata(deadline=deadline())
    sent = len(cluster.requests)

    with pytest.raises(NoMetadata, match="no time left before the deadline"):
        await client.metadata(deadline=asyncio.get_running_loop().time() - 1)
    assert len(cluster.requests) == sent


async def test_a_response_over_the_decoders_limit_fails_without_another_attempt(connect: Connect) -> None:
    """Decoding takes a hundred times the memory of the response."""
    cluster, client = await connect(1)
    await client.metadata(deadline=deadline())

    with pytest.raises(MalformedResponse, match=r"the response has \d+ bytes; the limit is 10"):
        await client.call(ApiKey.METADATA, {"topics": []}, body_decoder(ApiKey.METADATA, 10), deadline=deadline())
    assert len(cluster.asked(ApiKey.METADATA)) == 2


async def test_nothing_is_sent_after_the_close(connect: Connect) -> None:
    """Calls fail."""
    _, client = await connect(1)
    await delete(client)
    await client.close()

    with pytest.raises(NoMetadata, match="was closed locally"):
        await client.metadata(deadline=deadline())


@pytest.mark.parametrize("server", ["kafka", "kafka:", ":9092", "kafka:0", "kafka:65536", "kafka:x", "kafka:٣"])
def test_a_malformed_bootstrap_server_is_reported(server: str) -> None:
    """With its text."""
    with pytest.raises(ValueError, match=f"the bootstrap server '{server}' is not HOST:PORT"):
        parse_bootstrap([server])
