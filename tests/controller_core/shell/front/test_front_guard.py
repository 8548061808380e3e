"""The front with an authorizer: every request is authorized before it is answered or relayed."""

import asyncio
from collections.abc import Awaitable, Callable

from controller_core.shell.front.front import Front
from controller_core.shell.front.handler import RelayInstead
from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.peer import ANONYMOUS
from tests.controller_core.shell.front.fakes import Client, FakeBroker, request
from tests.kafka_node.authorization.samples import guard_of

StartBrokers = Callable[..., Awaitable[list[FakeBroker]]]
StartFront = Callable[..., Awaitable[Front]]
Connect = Callable[[Front], Awaitable[Client]]


def allow_all() -> object:
    """Return a guard without ACLs that allows everything without an ACL."""
    return guard_of(everyone=True)


async def never(_context: RequestContext, _body: Body) -> Body:
    """A handler that must not be called."""
    raise AssertionError("the handler was called")


async def test_unauthorized_request_is_not_relayed(
    start_brokers: StartBrokers, start_front: StartFront, connect: Connect
) -> None:
    """It is refused in the format of its response; the connection stays open."""
    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers, guard=guard_of()))
    answer = await client.call(ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["g"]})

    assert [(coordinator["key"], coordinator["error_code"]) for coordinator in answer["coordinators"]] == [
        ("g", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    ]
    quorum = await client.call(ApiKey.DESCRIBE_QUORUM, 1, {"topics": []})
    assert quorum["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert brokers[0].relayed == []


async def test_authorized_request_is_relayed_unchanged(
    start_brokers: StartBrokers, start_front: StartFront, connect: Connect
) -> None:
    """Byte for byte, as without an authorizer."""
    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers, guard=allow_all()))
    frame = codec.encode_request(ApiKey.LIST_GROUPS, 4, 1, "tests", {})

    assert frame[4:8] + brokers[0].answer(frame) == await client.exchange(frame)


async def test_unauthorized_own_request_does_not_reach_its_handler(start_front: StartFront, connect: Connect) -> None:
    """An unauthorized ControlledShutdown moves no leaderships."""
    client = await connect(await start_front([], {ApiKey.CONTROLLED_SHUTDOWN: never}, guard=guard_of()))
    answer = await client.call(ApiKey.CONTROLLED_SHUTDOWN, 3, {"broker_id": 1})

    assert answer["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_handler_does_not_relay_an_unauthorized_request(
    start_brokers: StartBrokers, start_front: StartFront, connect: Connect
) -> None:
    """DescribeConfigs of a topic: a broker would answer it for the controller's principal."""

    async def relay(_context: RequestContext, _body: Body) -> Body:
        raise RelayInstead("a broker answers")

    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers, {ApiKey.DESCRIBE_CONFIGS: relay}, guard=guard_of()))
    body = {"resources": [{"resource_type": 2, "resource_name": "t", "configuration_keys": None}]}
    answer = await client.call(ApiKey.DESCRIBE_CONFIGS, 4, body)

    assert [result["error_code"] for result in answer["results"]] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert brokers[0].relayed == []


async def test_request_that_cannot_be_authorized_or_refused_closes_the_connection(
    start_brokers: StartBrokers, start_front: StartFront, connect: Connect
) -> None:
    """A malformed body, and Produce without a response."""
    brokers = await start_brokers(1)
    front = await start_front(brokers, guard=guard_of())
    garbage, silent = await connect(front), await connect(front)
    await garbage.send_frame(request(ApiKey.LIST_GROUPS, 4, payload=b"\xff\xff\xff"))
    assert await garbage.is_closed_by_server()
    unanswered = {"acks": 0, "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": None}]}]}
    await silent.send_frame(codec.encode_request(ApiKey.PRODUCE, 9, 1, "tests", unanswered))
    assert await silent.is_closed_by_server()
    assert brokers[0].relayed == []


async def test_unauthenticated_client_is_anonymous(start_front: StartFront, connect: Connect) -> None:
    """KafkaPrincipal.ANONYMOUS, which ACLs may contain."""
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def shutdown(context: RequestContext, _body: Body) -> Body:
        seen.put_nowait(context.principal)
        return {"error_code": 0}

    guard = guard_of((Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME))
    refusing = await connect(await start_front([], {ApiKey.CONTROLLED_SHUTDOWN: shutdown}, guard=guard))
    answer = await refusing.call(ApiKey.CONTROLLED_SHUTDOWN, 3, {"broker_id": 1})
    assert answer["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    allowing = await connect(await start_front([], {ApiKey.CONTROLLED_SHUTDOWN: shutdown}, guard=allow_all()))
    await allowing.call(ApiKey.CONTROLLED_SHUTDOWN, 3, {"broker_id": 1})
    assert seen.get_nowait() == ANONYMOUS
