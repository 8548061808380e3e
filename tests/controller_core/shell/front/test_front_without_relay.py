"""A listener without a relay, as of a KRaft controller: it offers only its own APIs and refuses all others."""

from collections.abc import AsyncIterator

import pytest

from controller_core.shell.front.front import Front, open_front
from controller_core.shell.front.handler import RelayInstead
from controller_core.shell.front.request_limits import SMALL_BYTES
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.front.fakes import Client, request

SERVED = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.DESCRIBE_CLUSTER: (0, 1),
    ApiKey.METADATA: (0, 12),
    ApiKey.VOTE: (0, 0),
}


async def describe(_context: RequestContext, _body: Body) -> Body:
    """Answer DescribeCluster."""
    return {"cluster_id": "quorum"}


async def relay(_context: RequestContext, _body: Body) -> Body:
    """Request the relay, which does not exist."""
    raise RelayInstead("a broker answers")


async def vote(_context: RequestContext, _body: Body) -> Body:
    """Answer Vote."""
    return {"error_code": ErrorCode.NONE, "topics": []}


@pytest.fixture
async def front() -> AsyncIterator[Front]:
    """A front without brokers."""
    handlers = {ApiKey.DESCRIBE_CLUSTER: describe, ApiKey.METADATA: relay, ApiKey.VOTE: vote}
    front = await open_front("CONTROLLER", "127.0.0.1", 0, handlers, None, served=SERVED)
    yield front
    await front.close(grace_ms=1)


async def test_api_versions_offers_the_served_apis_only(front: Front, connect) -> None:
    """Requests between servers are offered if they are served, as Kafka's controllers offer Vote."""
    client: Client = await connect(front)
    answer = await client.call(ApiKey.API_VERSIONS, 0, {})
    offered = {api["api_key"]: (api["min_version"], api["max_version"]) for api in answer["api_keys"]}

    assert offered == SERVED


async def test_served_requests_are_answered(front: Front, connect) -> None:
    """By their handlers."""
    client: Client = await connect(front)
    described = await client.call(ApiKey.DESCRIBE_CLUSTER, 0, {})
    voted = await client.call(ApiKey.VOTE, 0, {"cluster_id": None, "topics": []})

    assert (described["cluster_id"], voted["error_code"]) == ("quorum", ErrorCode.NONE)


async def test_unsupported_version_of_api_versions_is_answered_in_version_0(front: Front, connect) -> None:
    """KIP-511: UNSUPPORTED_VERSION, and the connection stays open."""
    client: Client = await connect(front)
    await client.send_frame(request(ApiKey.API_VERSIONS, version=99, payload=b"\0"))
    frame = await client.read_frame()

    assert int.from_bytes(frame[4:6], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
    assert (await client.call(ApiKey.DESCRIBE_CLUSTER, 0, {}))["cluster_id"] == "quorum"


@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.UPDATE_METADATA, ApiKey.METADATA, 9_999])
async def test_unserved_request_closes_the_connection(key: int, front: Front, connect) -> None:
    """As in Kafka's controllers for an API that is not enabled; also if a handler requests the missing relay."""
    client: Client = await connect(front)
    await client.send_frame(request(key, payload=b"\0\0\0\0"))

    assert await client.is_closed_by_server()


def test_unserved_requests_are_not_buffered(front: Front) -> None:
    """They are refused in any case."""
    assert front.request_bytes(ApiKey.PRODUCE, 9) == SMALL_BYTES


async def test_lost_broker_is_ignored(front: Front) -> None:
    """No connection is relayed to it."""
    front.disconnect_broker(1)
