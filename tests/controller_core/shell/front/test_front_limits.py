"""Limits of one request: its frame, its elements, and the part that is decoded before authorization."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from controller_core.model import Origin
from controller_core.model.changes import TopicAdded
from controller_core.shell.admin.handlers import handlers
from controller_core.shell.front.front import Front
from controller_core.shell.front.handler import RelayInstead
from controller_core.shell.front.request_limits import LARGE_BYTES, SMALL_BYTES, USUAL_BYTES, own_bytes
from controller_core.zookeeper_mode.apis import SERVED
from controller_core.zookeeper_mode.transitions import apply
from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.server import Peer
from kafka_wire.slices import SLICE_ELEMENTS
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with, broker
from tests.controller_core.shell.front.fakes import Client, FakeBroker
from tests.kafka_node.authorization.samples import guard_of

StartBrokers = Callable[..., Awaitable[list[FakeBroker]]]
StartFront = Callable[..., Awaitable[Front]]
Connect = Callable[[Front], Awaitable[Client]]

GARBAGE = b"\xff" * 64
CLUSTER_ACTION = (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
MEMBERS = [{"broker_id": broker, "broker_epoch": -1} for broker in (1, 2, 3)]


class Echo:
    """A handler that answers each named topic and records the bodies."""

    def __init__(self, failing_from: int = 1 << 30, relaying: bool = False) -> None:
        self.bodies: list[Body] = []
        self.called_twice = asyncio.Event()
        self.failing_from = failing_from
        self.relaying = relaying

    async def __call__(self, _: RequestContext, body: Body) -> Body:
        """Return the answer."""
        self.bodies.append(body)
        if len(self.bodies) == 2:
            self.called_twice.set()
        if self.relaying:
            raise RelayInstead("a broker answers")
        if len(self.bodies) > self.failing_from:
            return {"error_code": ErrorCode.NOT_CONTROLLER, "topics": []}
        return {"topics": [_answered(topic) for topic in body["topics"]]}


def _answered(topic: Body) -> Body:
    if "partitions" not in topic:
        return {"name": topic["name"]}
    return {"partitions": [{"partition_index": partition["partition_index"]} for partition in topic["partitions"]]}


async def send_beginning(client: Client, size: int, key: int, version: int = 0) -> None:
    """Write only the size of a frame and the beginning of its header."""
    client.writer.write(struct.pack(">ihh", size, key, version))
    await client.writer.drain()


@pytest.mark.parametrize("key", sorted(SERVED))
async def test_request_over_the_limit_of_its_api_is_closed_before_its_body(
    key: ApiKey, start_front: StartFront, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka closes a connection with a larger frame than its limit (InvalidReceiveException); here the limit depends on the API."""
    front = await start_front([], dict.fromkeys(SERVED.keys() - {ApiKey.API_VERSIONS}, Echo()))
    client = await connect(front)
    await send_beginning(client, own_bytes(key) + 1, key)

    assert await client.is_closed_by_server()
    assert [record for record in caplog.records if f"API key {int(key)}" in vars(record).get("reason", "")] != []
    assert front.request_bytes(key, 0) in {SMALL_BYTES, USUAL_BYTES, LARGE_BYTES}


@pytest.mark.parametrize("key", [ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.VOTE, 9_999, -5])
async def test_request_that_will_be_refused_is_not_buffered(
    key: int, start_front: StartFront, connect: Connect
) -> None:
    """A request between servers, or an unknown API."""
    client = await connect(await start_front([]))
    await send_beginning(client, SMALL_BYTES + 1, key)

    assert await client.is_closed_by_server()


async def test_large_produce_is_relayed_unchanged(
    start_brokers: StartBrokers, start_front: StartFront, connect: Connect
) -> None:
    """Kafka's limit applies (socket.request.max.bytes); the frame is written to the broker in pieces."""
    brokers = await start_brokers(1)
    received: list[bytes] = []

    async def react(_: Peer, frame: bytes) -> bytes:
        received.append(frame)
        return frame[4:8] + b"done"

    brokers[0].react = react
    everyone = guard_of(everyone=True)
    for guard in (None, everyone):
        client = await connect(await start_front(brokers, guard=guard))
        records = bytes(range(256)) * 80_000
        body = {"acks": 1, "topic_data": [{"name": "a", "partition_data": [{"index": 0, "records": records}]}]}
        frame = codec.encode_request(ApiKey.PRODUCE, 9, 5, "tests", body)

        assert await client.exchange(frame) == frame[4:8] + b"done"
        assert received.pop()[8:] == frame[8:]


@pytest.mark.parametrize("version", [0, 3])
async def test_unauthorized_alter_partition_is_refused_before_decoding(
    version: int, start_front: StartFront, connect: Connect
) -> None:
    """KafkaApis.handleAlterPartitionRequest requires ClusterAction for any body, so an invalid body is not decoded."""
    client = await connect(await start_front([], {ApiKey.ALTER_PARTITION: Echo()}, guard=guard_of()))
    frame = codec.encode_request(ApiKey.ALTER_PARTITION, version, 7, "tests", b"") + GARBAGE
    _, answer = codec.decode_response(ApiKey.ALTER_PARTITION, version, await client.exchange(frame))

    assert answer["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_authorized_request_with_invalid_body_closes_the_connection(
    start_front: StartFront, connect: Connect
) -> None:
    """As in Kafka (InvalidRequestException)."""
    handler = Echo()
    client = await connect(await start_front([], {ApiKey.ALTER_PARTITION: handler}, guard=guard_of(everyone=True)))
    await client.send_frame(codec.encode_request(ApiKey.ALTER_PARTITION, 3, 7, "tests", b"") + GARBAGE)

    assert await client.is_closed_by_server()
    assert handler.bodies == []


@pytest.mark.slow
async def test_all_isr_changes_of_a_broker_are_processed_in_slices(start_front: StartFront, connect: Connect) -> None:
    """A broker sends its pending changes in one request (DefaultAlterPartitionManager): 100,000 partitions here, 5.4 MB."""
    handler = Echo()
    client = await connect(await start_front([], {ApiKey.ALTER_PARTITION: handler}))
    partitions = [
        {"partition_index": number, "partition_epoch": number, "new_isr_with_epochs": MEMBERS} for number in range(500)
    ]
    body = {"broker_id": 1, "broker_epoch": 9, "topics": [{"partitions": partitions}] * 200}
    answer = await client.call(ApiKey.ALTER_PARTITION, 3, body)
    requested = [partition for body in handler.bodies for topic in body["topics"] for partition in topic["partitions"]]
    answered = [partition["partition_index"] for topic in answer["topics"] for partition in topic["partitions"]]

    assert answered == [*range(500)] * 200
    assert [partition["partition_epoch"] for partition in requested] == answered
    assert max(len(topic["partitions"]) for body in handler.bodies for topic in body["topics"]) <= SLICE_ELEMENTS
    assert {body["broker_epoch"] for body in handler.bodies} == {9}


async def test_top_level_error_ends_a_sliced_request(start_front: StartFront, connect: Connect) -> None:
    """After NOT_CONTROLLER a broker sends the complete request to the next controller."""
    handler = Echo(failing_from=3)
    client = await connect(await start_front([], {ApiKey.ALTER_PARTITION: handler}))
    body = {"topics": [{"partitions": [{"partition_index": number} for number in range(20_000)]}]}
    answer = await client.call(ApiKey.ALTER_PARTITION, 3, body)

    assert answer["error_code"] == ErrorCode.NOT_CONTROLLER
    assert len(handler.bodies) < 20


async def test_sliced_request_is_relayed_as_a_whole(
    start_brokers: StartBrokers, start_front: StartFront, connect: Connect
) -> None:
    """Metadata with automatic creation of topics goes to a broker, byte for byte."""
    brokers = await start_brokers(1)
    client = await connect(await start_front(brokers, {ApiKey.METADATA: Echo(relaying=True)}))
    body = {"topics": [{"name": f"t{number}"} for number in range(2_000)], "allow_auto_topic_creation": True}
    frame = codec.encode_request(ApiKey.METADATA, 4, 7, "tests", body)

    assert await client.exchange(frame) == frame[4:8] + brokers[0].answer(frame)


async def test_partly_authorized_request_is_not_relayed(
    start_brokers: StartBrokers, start_front: StartFront, connect: Connect
) -> None:
    """A broker answers with the controller's rights, and later slices may contain topics that the caller may not describe."""
    handler = Echo(relaying=True)
    front = await start_front(await start_brokers(1), {ApiKey.METADATA: handler}, guard=guard_of())
    client = await connect(front)
    body = {
        "topics": [{"name": f"t{number}"} for number in range(2 * SLICE_ELEMENTS)],
        "allow_auto_topic_creation": True,
    }
    await client.send_frame(codec.encode_request(ApiKey.METADATA, 4, 7, "tests", body))

    assert await client.is_closed_by_server()
    assert {body["allow_auto_topic_creation"] for body in handler.bodies} == {False}


@pytest.mark.parametrize("version", [4, 8, 9, 12])
async def test_encoded_answers_of_slices_are_joined(start_front: StartFront, connect: Connect, version: int) -> None:
    """Metadata of many names: topics in the order of their names, known and unknown, from the real handler."""
    active = active_with(broker(1), broker(2))
    add_topics(active, 2 * SLICE_ELEMENTS)
    known = [f"topic-{number}" for number in range(2 * SLICE_ELEMENTS)]
    requested = [*known, "unknown"]
    client = await connect(await start_front([], handlers(lambda: active)))
    answer = await client.call(
        ApiKey.METADATA, version, {"topics": [{"name": name} for name in requested], "allow_auto_topic_creation": False}
    )

    found = {topic["name"]: topic for topic in answer["topics"]}
    assert [topic["name"] for topic in answer["topics"]] == requested
    assert {node["node_id"] for node in answer["brokers"]} >= {1, 2}
    assert {found[name]["error_code"] for name in known} == {ErrorCode.NONE}
    assert found["unknown"]["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_producers_of_many_partitions_are_described_in_slices(start_front: StartFront, connect: Connect) -> None:
    """KIP-664: the answer for a partition is much larger than the 4 bytes of its request."""
    active = active_with(broker(1), broker(2))
    add_topics(active, 1)
    partitions = list(range(4 * SLICE_ELEMENTS))
    bodies: list[Body] = []
    served = handlers(lambda: active)

    async def recorded(context: RequestContext, body: Body) -> Body:
        bodies.append(body)
        answer: Body = await served[ApiKey.DESCRIBE_PRODUCERS](context, body)
        return answer

    client = await connect(await start_front([], {**served, ApiKey.DESCRIBE_PRODUCERS: recorded}))
    requested = {"topics": [{"name": name, "partition_indexes": partitions} for name in ("topic-0", "unknown")]}
    answer = await client.call(ApiKey.DESCRIBE_PRODUCERS, 0, requested)

    found: dict[str, list[int]] = {"topic-0": [], "unknown": []}
    for topic in answer["topics"]:  # each slice contains the name of the topic
        found[topic["name"]] += [partition["partition_index"] for partition in topic["partitions"]]
    assert found == {"topic-0": partitions, "unknown": partitions}
    assert max(len(topic["partition_indexes"]) for body in bodies for topic in body["topics"]) <= SLICE_ELEMENTS
    assert answer["topics"][0]["partitions"][0]["error_code"] == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("partitions", "is_answered"), [(9_000, True), (90_000, False)])
async def test_request_for_log_directories_of_too_many_replicas_is_closed(
    partitions: int, is_answered: bool, start_front: StartFront, connect: Connect
) -> None:
    """KIP-113: this node has no log directories, so no legitimate request has many replicas."""
    client = await connect(await start_front([], handlers(lambda: None)))
    topics = [{"name": "t", "partitions": list(range(partitions))}]
    frame = codec.encode_request(
        ApiKey.ALTER_REPLICA_LOG_DIRS, 2, 7, "tests", {"dirs": [{"path": "/", "topics": topics}]}
    )
    await client.send_frame(frame)

    assert is_answered != await client.is_closed_by_server()


def add_topics(active: FakeActive, count: int) -> None:
    """Add topics of one partition each."""
    for number in range(count):
        numbers, replicas = np.arange(1, dtype=np.int32), np.full((1, 1), 1, np.int32)
        apply(active.cluster, TopicAdded(f"topic-{number}", None, numbers, replicas, Origin.OBSERVED))
    rows = active.cluster.columns.used()
    active.cluster.columns.leader[rows] = 1


async def test_slices_of_brokers_do_not_wait_for_slices_of_clients(start_front: StartFront, connect: Connect) -> None:
    """KIP-497: with 2,000 requests of clients in flight an AlterPartition waited minutes for its decoding."""
    front = await start_front([], {ApiKey.METADATA: Echo(), ApiKey.ALTER_PARTITION: Echo()})
    client, broker_client = await connect(front), await connect(front)
    async with front._sliced[
        False
    ]._coding_lock:  # the state while a client's slice is decoded and many more are queued
        await client.send_frame(codec.encode_request(ApiKey.METADATA, 4, 7, "tests", {"topics": [{"name": "a"}]}))
        body = {"topics": [{"partitions": [{"partition_index": 0}]}]}
        answer = await broker_client.call(ApiKey.ALTER_PARTITION, 3, body)

    assert [topic["partitions"][0]["partition_index"] for topic in answer["topics"]] == [0]
    await client.read_frame()


@pytest.mark.slow
async def test_other_requests_are_answered_between_slices(start_front: StartFront, connect: Connect) -> None:
    """A small request of another client does not wait for the end of a large one."""
    handler = Echo()
    front = await start_front([], {ApiKey.METADATA: handler})
    large, small = await connect(front), await connect(front)
    body = {"topics": [{"name": f"t{number}"} for number in range(100_000)]}
    large_call = asyncio.create_task(large.call(ApiKey.METADATA, 4, body))
    await handler.called_twice.wait()
    await small.call(ApiKey.METADATA, 4, {"topics": [{"name": "small"}]})

    assert len(handler.bodies) < 200
    assert len((await large_call)["topics"]) == 100_000


@pytest.mark.parametrize("key", [ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CLIENT_QUOTAS])
async def test_request_with_too_many_elements_is_closed(key: ApiKey, start_front: StartFront, connect: Connect) -> None:
    """The smallest possible elements, in a frame within its limit."""
    own: dict[ApiKey, Any] = {
        ApiKey.CREATE_ACLS: Echo(),
        ApiKey.DESCRIBE_CONFIGS: Echo(),
        ApiKey.ALTER_CLIENT_QUOTAS: Echo(),
    }
    client = await connect(await start_front([], own))
    array = {
        ApiKey.CREATE_ACLS: "creations",
        ApiKey.DESCRIBE_CONFIGS: "resources",
        ApiKey.ALTER_CLIENT_QUOTAS: "entries",
    }
    await client.send_frame(codec.encode_request(key, 1, 7, "tests", {array[key]: [{}] * 40_000}))

    assert await client.is_closed_by_server()


async def test_standby_answers_a_large_request_in_its_format(start_front: StartFront, connect: Connect) -> None:
    """NOT_CONTROLLER, slice by slice."""
    client = await connect(await start_front([], handlers(lambda: None)))
    body = {"topic_names": [f"t{number}" for number in range(5_000)], "timeout_ms": 1}
    answer = await client.call(ApiKey.DELETE_TOPICS, 5, body)

    assert {response["error_code"] for response in answer["responses"]} == {ErrorCode.NOT_CONTROLLER}
    assert len(answer["responses"]) == 5_000


async def test_many_oversized_requests_are_logged_once(
    start_front: StartFront, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning per host and interval."""
    front = await start_front([], {ApiKey.CREATE_TOPICS: Echo()})
    for _ in range(5):
        client = await connect(front)
        await send_beginning(client, USUAL_BYTES + 1, ApiKey.CREATE_TOPICS)
        assert await client.is_closed_by_server()

    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1
