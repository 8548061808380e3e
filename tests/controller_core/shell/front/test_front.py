"""Dispatch of requests: own requests to handlers, others to a broker, invalid requests close the connection."""

import asyncio
import random
import struct

import pytest

from controller_core.shell.front.front import Front
from controller_core.shell.front.handler import RelayInstead
from controller_core.zookeeper_mode.apis import SERVED
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.server import CloseConnection, ServerLimits
from tests.controller_core.shell.front.fakes import request


class OwnHandler:
    """A handler that records requests and answers a cluster id."""

    def __init__(self) -> None:
        self.requests: list[tuple[RequestContext, Body]] = []

    async def __call__(self, context: RequestContext, body: Body) -> Body:
        self.requests.append((context, body))
        return {"cluster_id": "own"}


async def test_own_request_is_handled_with_its_context(start_brokers, start_front, connect) -> None:
    """The body is decoded, and no broker receives the request."""
    brokers, own = await start_brokers(1), OwnHandler()
    client = await connect(await start_front(brokers, {ApiKey.DESCRIBE_CLUSTER: own}))
    answer = await client.call(ApiKey.DESCRIBE_CLUSTER, 1, {"endpoint_type": 2})
    [(context, body)] = own.requests

    assert answer["cluster_id"] == "own"
    assert context == RequestContext("CLIENT", "tests", "127.0.0.1", 7, 1)
    assert body["endpoint_type"] == 2
    assert brokers[0].relayed == []


async def test_request_without_handler_is_relayed_even_if_it_is_served(start_brokers, start_front, connect) -> None:
    """The table of handlers decides."""
    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers))
    await client.exchange(request(ApiKey.CREATE_TOPICS))

    assert len(brokers[0].relayed) == 1


async def test_handler_may_relay_a_request(start_brokers, start_front, connect) -> None:
    """For example Metadata with a topic that a broker should create: the request is relayed unchanged."""

    async def leave(_context: RequestContext, _body: Body) -> Body:
        raise RelayInstead("a broker answers")

    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers, {ApiKey.DESCRIBE_CLUSTER: leave}))
    frame = codec.encode_request(ApiKey.DESCRIBE_CLUSTER, 0, 9, "tests", {})

    assert frame[4:8] + brokers[0].answer(frame) == await client.exchange(frame)
    assert brokers[0].relayed == [frame[:4] + frame[8:]]


async def test_own_and_relayed_answers_keep_the_order_of_requests(start_brokers, start_front, connect) -> None:
    """Regardless of which answer is ready first."""
    gate = asyncio.Event()

    async def slow(_context: RequestContext, _body: Body) -> Body:
        await gate.wait()
        return {"cluster_id": "late"}

    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers, {ApiKey.DESCRIBE_CLUSTER: slow}))
    await client.send_frame(codec.encode_request(ApiKey.DESCRIBE_CLUSTER, 0, 11, None, {}))
    await client.send_frame(request(ApiKey.LIST_GROUPS, correlation_id=12))
    await brokers[0].arrived.wait()
    gate.set()

    assert [int.from_bytes((await client.read_frame())[:4], "big") for _ in range(2)] == [11, 12]


async def test_api_versions_offers_own_and_common_versions(start_brokers, start_front, connect) -> None:
    """Own ranges for own APIs, common ranges of brokers for others, and no requests between servers."""
    brokers = await start_brokers(1, 2)
    client = await connect(
        await start_front(brokers, {ApiKey.DESCRIBE_CLUSTER: OwnHandler(), ApiKey.CREATE_TOPICS: OwnHandler()})
    )
    body = {"client_software_name": "tests", "client_software_version": "1"}
    answer = await client.call(ApiKey.API_VERSIONS, 3, body)
    found = {entry["api_key"]: (entry["min_version"], entry["max_version"]) for entry in answer["api_keys"]}

    assert answer["error_code"] == ErrorCode.NONE
    assert tuple(SERVED[ApiKey.DESCRIBE_CLUSTER]) == found[ApiKey.DESCRIBE_CLUSTER]
    assert tuple(SERVED[ApiKey.CREATE_TOPICS]) == found[ApiKey.CREATE_TOPICS]
    assert found[ApiKey.FETCH] == (0, 17)
    assert ApiKey.UPDATE_METADATA not in found


async def test_apis_that_brokers_do_not_serve_are_not_offered(start_front, connect) -> None:
    """KIP-966: brokers in ZooKeeper mode do not serve DescribeTopicPartitions, and clients use Metadata instead."""
    own = {ApiKey.DESCRIBE_TOPIC_PARTITIONS: OwnHandler(), ApiKey.METADATA: OwnHandler()}
    client = await connect(await start_front([], own))
    body = {"client_software_name": "tests", "client_software_version": "1"}
    answer = await client.call(ApiKey.API_VERSIONS, 3, body)

    assert [entry["api_key"] for entry in answer["api_keys"]] == [ApiKey.METADATA, ApiKey.API_VERSIONS]


@pytest.mark.parametrize("version", [5, 99, 32_767, -1])
async def test_unknown_version_of_api_versions_is_answered_in_version_0(version, start_front, connect) -> None:
    """KIP-511: an error and the supported versions, so that the client can retry on the same connection."""
    client = await connect(await start_front([]))
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1)
    frame = await client.exchange(header + (b"\0what this version has" if version >= 3 else b""))
    _, answer = codec.decode_response(ApiKey.API_VERSIONS, 0, frame)

    assert answer["error_code"] == ErrorCode.UNSUPPORTED_VERSION
    assert [(e["api_key"], e["min_version"], e["max_version"]) for e in answer["api_keys"]] == [(18, 0, 4)]
    assert (await client.call(ApiKey.API_VERSIONS, 0, {}))["error_code"] == ErrorCode.NONE


async def test_invalid_client_software_name_is_refused(start_front, connect) -> None:
    """KIP-511: INVALID_REQUEST."""
    client = await connect(await start_front([]))
    answer = await client.call(ApiKey.API_VERSIONS, 3, {"client_software_name": "a b", "client_software_version": "1"})

    assert (answer["error_code"], answer["api_keys"]) == (ErrorCode.INVALID_REQUEST, [])


async def test_unserved_own_version_is_refused_if_the_response_has_an_error_code(start_front, connect) -> None:
    """DescribeCluster has a top-level error code. CreateTopics has none, so its connection is closed, as in Kafka."""
    front = await start_front([], {ApiKey.DESCRIBE_CLUSTER: OwnHandler(), ApiKey.CREATE_TOPICS: OwnHandler()})
    front._own = {**front._own, ApiKey.DESCRIBE_CLUSTER: (0, 0), ApiKey.CREATE_TOPICS: (2, 5)}
    client = await connect(front)
    answer = await client.call(ApiKey.DESCRIBE_CLUSTER, 1, {})
    assert answer["error_code"] == ErrorCode.UNSUPPORTED_VERSION
    await client.send_frame(request(ApiKey.CREATE_TOPICS, 6))

    assert await client.is_closed_by_server()


@pytest.mark.parametrize("version", [3, 99, -1])
async def test_unknown_own_version_closes_the_connection(version, start_front, connect) -> None:
    """There is no format for an answer."""
    client = await connect(await start_front([], {ApiKey.DESCRIBE_CLUSTER: OwnHandler()}))
    await client.send_frame(request(ApiKey.DESCRIBE_CLUSTER, version))

    assert await client.is_closed_by_server()


async def test_failing_handler_closes_one_connection_and_is_logged_once(start_front, connect, caplog) -> None:
    """UNKNOWN_SERVER_ERROR with the API and a traceback; other requests are answered."""

    async def broken(_context: RequestContext, _body: Body) -> Body:
        raise ZeroDivisionError

    front = await start_front([], {ApiKey.CREATE_TOPICS: broken, ApiKey.DESCRIBE_CLUSTER: OwnHandler()})
    client, other = await connect(front), await connect(front)
    await client.send_frame(codec.encode_request(ApiKey.CREATE_TOPICS, 5, 1, None, {}))

    assert await client.is_closed_by_server()
    assert (await other.call(ApiKey.DESCRIBE_CLUSTER, 0, {}))["cluster_id"] == "own"
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert (record.api, record.api_version, record.exc_info[0]) == ("CREATE_TOPICS", 5, ZeroDivisionError)


async def test_unencodable_answer_is_logged_as_an_error_of_the_handler(start_front, connect, caplog) -> None:
    """It must not be logged as a malformed request of the client."""

    async def wrong(_context: RequestContext, _body: Body) -> Body:
        return {"no_such_field": 1}

    client = await connect(await start_front([], {ApiKey.DESCRIBE_CLUSTER: wrong}))
    await client.send_frame(codec.encode_request(ApiKey.DESCRIBE_CLUSTER, 0, 1, None, {}))

    assert await client.is_closed_by_server()
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_handler_may_close_the_connection(start_front, connect, caplog) -> None:
    """The reason is logged without an error."""

    async def refuse(_context: RequestContext, _body: Body) -> Body:
        raise CloseConnection("not now")

    caplog.set_level("INFO")
    client = await connect(await start_front([], {ApiKey.DESCRIBE_CLUSTER: refuse}))
    await client.send_frame(codec.encode_request(ApiKey.DESCRIBE_CLUSTER, 0, 1, None, {}))

    assert await client.is_closed_by_server()
    assert [record.reason for record in caplog.records] == ["not now"]


@pytest.mark.parametrize("key", [ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.ENVELOPE])
async def test_requests_between_servers_are_never_relayed(key, start_brokers, start_front, connect) -> None:
    """A client's StopReplica would reach the broker from the controller's address."""
    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers))
    await client.send_frame(request(key))

    assert await client.is_closed_by_server()
    assert brokers[0].frames == []


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\0\x12\0\0", id="shorter than a header"),
        pytest.param(request(9_999), id="unknown key"),
        pytest.param(request(-1), id="negative key"),
        pytest.param(request(ApiKey.FETCH, 400), id="a version that no broker serves"),
        pytest.param(struct.pack(">hhih", ApiKey.LIST_GROUPS, 0, 1, 30_000), id="client id past the end"),
        pytest.param(struct.pack(">hhih", ApiKey.LIST_GROUPS, 0, 1, -2), id="negative client id"),
        pytest.param(struct.pack(">hhih", ApiKey.LIST_GROUPS, 0, 1, 2) + b"\xff\xff", id="client id not UTF-8"),
        pytest.param(request(ApiKey.PRODUCE, 9, payload=b"\xff"), id="Produce without acks"),
        pytest.param(request(ApiKey.DESCRIBE_CLUSTER, 0, payload=b"\0too long"), id="own body with more behind it"),
        pytest.param(request(ApiKey.DESCRIBE_CLUSTER, 0), id="own body cut off"),
        pytest.param(request(ApiKey.API_VERSIONS, 3), id="ApiVersions cut off"),
    ],
)
async def test_invalid_frame_closes_its_connection_and_reaches_no_broker(
    frame, start_brokers, start_front, connect
) -> None:
    """Other connections are not affected."""
    brokers = await start_brokers(1)
    front = await start_front(brokers, {ApiKey.DESCRIBE_CLUSTER: OwnHandler()})
    good, bad = await connect(front), await connect(front)
    await good.call(ApiKey.API_VERSIONS, 0, {})
    await bad.send_frame(frame)

    assert await bad.is_closed_by_server()
    assert brokers[0].relayed == []
    assert (await good.call(ApiKey.DESCRIBE_CLUSTER, 0, {}))["cluster_id"] == "own"


@pytest.mark.parametrize("seed", range(4))
async def test_random_frames_do_not_affect_other_clients(seed, start_brokers, start_front, connect) -> None:
    """Pipelined frames of random bytes with real keys and versions."""
    source = random.Random(seed)
    brokers = await start_brokers(1, 2)
    front = await start_front(
        brokers,
        {ApiKey.DESCRIBE_CLUSTER: OwnHandler(), ApiKey.CREATE_TOPICS: OwnHandler()},
        limits=ServerLimits(max_in_flight=4),
    )
    for _ in range(40):
        client = await connect(front)
        try:
            for _ in range(source.randrange(1, 8)):
                head = struct.pack(">hh", source.randrange(-2, 95), source.randrange(-1, 14))
                await client.send_frame(head + source.randbytes(source.randrange(4, 60)))
        except ConnectionError:
            continue
        finally:
            await client.close()
    client = await connect(front)

    assert (await client.call(ApiKey.DESCRIBE_CLUSTER, 0, {}))["cluster_id"] == "own"
    assert (await client.exchange(request(ApiKey.LIST_GROUPS, 0, 5)))[3] == 5


def test_handler_for_an_unserved_api_is_an_error() -> None:
    """ApiVersions is answered by the front itself."""
    for key in (ApiKey.PRODUCE, ApiKey.API_VERSIONS):
        with pytest.raises(ValueError, match="handlers must be for APIs"):
            Front("CLIENT", {key: OwnHandler()}, list, served=SERVED)
