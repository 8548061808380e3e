"""A standby: live brokers answer its clients, and its readiness is correct.

Brokers list the controller's id as a node, so clients connect to a restarted process also while it waits for the session of its killed
predecessor to end.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from controller_core.shell.admin.handlers import handlers, no_wait
from controller_core.shell.admin.topic_authorization import authorize_topics
from controller_core.shell.front.handler import RelayInstead
from controller_core.shell.zookeeper import broker_registrations as registrations_module
from kafka_node.authorization.acl import Operation, ResourceType
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.client import Connection
from kafka_wire.net.server import CloseConnection
from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperSession
from tests.controller_core.shell.front.fakes import Client, FakeBroker
from tests.controller_core.shell.running_process import INTERNAL, OWN_ID, RunningProcess
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.kafka_node.authorization.samples import Right, context, guard_of
from tests.waiting import until

ALL_TOPICS: Body = {"topics": None, "allow_auto_topic_creation": False}


@pytest.fixture
async def broker() -> AsyncIterator[FakeBroker]:
    """A broker that answers every relayed request with its own id and the request."""
    broker = await FakeBroker(1).start()
    yield broker
    await broker.close()


async def client_of(running: RunningProcess) -> Client:
    """Connect to the process."""
    return Client(*await asyncio.open_connection("127.0.0.1", running.process._fronts[INTERNAL].port))


@pytest.mark.parametrize("holder", [OWN_ID, 999], ids=["its killed predecessor", "another process"])
@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER])
async def test_a_standby_has_a_broker_describe_the_cluster(
    running: RunningProcess, broker: FakeBroker, holder: int, key: ApiKey
) -> None:
    """An answer without brokers would mean to a client that the cluster has none."""
    running.broker(1, broker.port)
    running.elect(holder)
    running.start()
    await running.until(lambda: running.process._not_ready_reason() is None)
    client = await client_of(running)
    frame = codec.encode_request(key, 1, 7, "tests", {})

    assert await client.exchange(frame) == frame[4:8] + broker.answer(frame)
    assert running.process.active is None
    await client.close()
    await running.end()


async def test_it_describes_the_cluster_itself_once_the_session_of_its_predecessor_has_ended(
    running: RunningProcess, broker: FakeBroker
) -> None:
    """C5: /controller is not changed until then; the ephemeral znode is deleted with that session."""
    running.broker(1, broker.port)
    predecessor = running.elect(OWN_ID)
    running.start()
    await running.until(lambda: running.process._not_ready_reason() is None)
    assert running.server.at(paths.CONTROLLER).owner == predecessor.session_id
    predecessor.expire()
    await running.until_active()
    client = await Connection.open("127.0.0.1", running.process._fronts[INTERNAL].port, client_id="tests")
    answer = await client.call(ApiKey.METADATA, ALL_TOPICS)

    assert (answer["controller_id"], [node["node_id"] for node in answer["brokers"]]) == (OWN_ID, [1, OWN_ID])
    await client.close()
    await running.end()


async def test_it_is_not_ready_before_it_knows_the_brokers(running: RunningProcess) -> None:
    """/readyz: an earlier request could not be relayed."""
    running.broker(1)
    running.elect(OWN_ID)
    reasons: list[str | None] = []
    running.server.before_reads.append((paths.BROKER_IDS, lambda: reasons.append(running.process._not_ready_reason())))
    running.start()
    await running.until(lambda: running.process._not_ready_reason() is None)

    assert reasons == ["not the active controller, and the registered brokers have not been read yet"]
    await running.end()


async def test_registrations_of_brokers_are_followed(running: RunningProcess) -> None:
    """A request is relayed to currently registered brokers."""
    running.elect(999)
    first = running.broker(1)
    running.start()
    await running.until(lambda: [broker.broker_id for broker in running.process._live_brokers.on(INTERNAL)] == [1])
    running.broker(2)
    await running.until(lambda: [broker.broker_id for broker in running.process._live_brokers.on(INTERNAL)] == [1, 2])
    first.expire()
    await running.until(lambda: [broker.broker_id for broker in running.process._live_brokers.on(INTERNAL)] == [2])
    await running.end()


async def test_a_failed_read_of_registrations_is_repeated_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An active controller continues without it."""
    monkeypatch.setattr(registrations_module, "RETRY_S", 0.001)
    running = RunningProcess()
    running.broker(1)
    registered = registrations_module.RegisteredBrokers(OWN_ID, lambda _: None)
    running.server.faults.append(Fault.READ_LOST)
    following = asyncio.create_task(registered.follow(cast(ZooKeeperSession, running.server.session())))
    await until(lambda: registered.are_known or following.done())

    assert [broker.id for broker in registered.list()] == [1]
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert not registered.are_known


async def test_requests_for_a_controller_are_refused(running: RunningProcess, broker: FakeBroker) -> None:
    """NOT_CONTROLLER: no broker can process them either."""
    running.broker(1, broker.port)
    running.elect(OWN_ID)
    running.start()
    await running.until(lambda: running.process._not_ready_reason() is None)
    client = await Connection.open("127.0.0.1", running.process._fronts[INTERNAL].port, client_id="tests")
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    made = await client.call(ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 1000})

    assert made["topics"][0]["error_code"] == ErrorCode.NOT_CONTROLLER
    assert broker.relayed == []
    await client.close()
    await running.end()


async def test_without_a_registered_broker_the_answer_lists_none() -> None:
    """An empty answer is true then; while registrations have not been read, the connection is closed and the client retries."""
    body: Body = {**ALL_TOPICS, "include_topic_authorized_operations": False}
    metadata = handlers(lambda: None, registered=lambda: 0)[ApiKey.METADATA]
    assert (await metadata(context(12), {**body, "topics": []}))["brokers"] == []
    with pytest.raises(RelayInstead):
        await handlers(lambda: None, registered=lambda: None)[ApiKey.METADATA](context(12), {**body, "topics": []})


async def test_an_api_that_brokers_do_not_serve_closes_the_connection() -> None:
    """Brokers in ZooKeeper mode refuse DescribeTopicPartitions (KIP-966); clients ask another node by Metadata."""
    handler = handlers(lambda: None, registered=lambda: 3)[ApiKey.DESCRIBE_TOPIC_PARTITIONS]
    with pytest.raises(CloseConnection):
        await handler(context(0), {"topics": [], "cursor": None})


DESCRIBE_T: Right = (Operation.DESCRIBE, ResourceType.TOPIC, "t")
DESCRIBE_ALL: Right = (Operation.DESCRIBE, ResourceType.TOPIC, "*")


@pytest.mark.parametrize(
    ("rights", "changed", "passed_on"),
    [
        ((), {"topics": []}, True),
        ((), {"topics": None}, False),
        ((DESCRIBE_T,), {"topics": None}, False),
        ((DESCRIBE_ALL,), {"topics": None}, True),
        ((DESCRIBE_T,), {"topics": [{"name": "t"}]}, True),
        ((DESCRIBE_T,), {"topics": [{"name": "t"}, {"name": "u"}]}, False),
        ((DESCRIBE_T,), {"topics": [{"name": "t"}], "allow_auto_topic_creation": True}, False),
        ((DESCRIBE_ALL,), {"topics": [], "include_topic_authorized_operations": True}, False),
    ],
)
async def test_a_standby_relays_only_requests_for_authorized_resources(
    rights: tuple[Right, ...], changed: Body, passed_on: bool
) -> None:
    """ADR 7: a broker answers a relayed request with the controller's permissions, and would leave out nothing."""
    version = 12
    table = authorize_topics(handlers(lambda: None, registered=lambda: 3), guard_of(*rights), lambda: None, no_wait)
    encoded = codec.encode("MetadataRequest", version, {**ALL_TOPICS, **changed})
    body = codec.decode("MetadataRequest", version, encoded)

    with pytest.raises(RelayInstead if passed_on else CloseConnection):
        await table[ApiKey.METADATA](context(version), body)
