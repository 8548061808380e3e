"""The process of a light broker in ZooKeeper mode, without a controller: what the test sends is the controller's."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import Node
from lab.peers.zookeeper import ZooKeeperServer
from tests.light_broker.serving import client_of, standalone, topics_of

pytestmark = pytest.mark.zookeeper

TOPIC_ID = UUID(int=9)
WAIT = "light_broker.control.zookeeper.control.METADATA_WAIT_S"
AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}


def settings_of(zookeeper: ZooKeeperServer, chroot: str, **more: str) -> dict[str, str]:
    """Return the settings that select ZooKeeper mode."""
    return {"zookeeper.connect": zookeeper.connect(chroot), "controlled.shutdown.enable": "false", **more}


async def send_topic(node: Node, name: str) -> tuple[Body, Body]:
    """Send what a controller sends for a new topic with one partition on broker 1; return the answers."""
    state = {"partition_index": 0, "controller_epoch": 1, "leader": 1, "leader_epoch": 0, "isr": [1], "replicas": [1]}
    head = {"controller_id": 1, "controller_epoch": 1, "broker_epoch": -1}
    topic = {"topic_name": name, "topic_id": TOPIC_ID}
    roles = {**topic, "partition_states": [{**state, "partition_epoch": 0, "is_new": True}]}
    metadata = {**topic, "partition_states": [{**state, "zk_version": 0, "offline_replicas": []}]}
    endpoint = {"port": 9092, "host": "b", "listener": "PLAINTEXT", "security_protocol": 0}
    brokers = [{"id": 1, "endpoints": [endpoint], "rack": None}]
    return (
        await node.call(ApiKey.LEADER_AND_ISR, {**head, "type": 1, "topic_states": [roles], "live_leaders": []}),
        await node.call(ApiKey.UPDATE_METADATA, {**head, "topic_states": [metadata], "live_brokers": brokers}),
    )


async def test_a_controller_makes_the_broker_the_leader_of_a_topic(
    zookeeper: ZooKeeperServer, chroot: str, tmp_path: Path
) -> None:
    """LeaderAndIsr creates the log, UpdateMetadata shows the topic to clients."""
    async with standalone(tmp_path, settings_of(zookeeper, chroot)) as process, client_of(process) as node:
        roles, metadata = await send_topic(node, "orders")
        topics = await topics_of(node)

    assert roles["topics"][0]["partition_errors"][0]["error_code"] == ErrorCode.NONE
    assert metadata["error_code"] == ErrorCode.NONE
    assert topics["orders"]["partitions"][0]["leader_id"] == 1
    assert (tmp_path / "orders-0").is_dir()


async def test_a_client_waits_until_the_controller_has_sent_the_metadata(
    zookeeper: ZooKeeperServer, chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ControlPlane.start: before it, clients would read that the topic does not exist. Requests of the controller do not wait."""
    monkeypatch.setattr(WAIT, 30)
    async with (
        standalone(tmp_path, settings_of(zookeeper, chroot), is_open=lambda one: one.ports) as process,
        client_of(process) as client,
        client_of(process) as controller,
    ):
        asked = asyncio.create_task(topics_of(client))
        roles, _ = await send_topic(controller, "orders")
        was_done = asked.done()
        topics = await asked

    assert roles["topics"][0]["partition_errors"][0]["error_code"] == ErrorCode.NONE
    assert not was_done
    assert set(topics) == {"orders"}


async def test_without_a_controller_clients_get_responses_after_a_while(
    zookeeper: ZooKeeperServer, chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from Kafka, whose metadata is empty then."""
    monkeypatch.setattr(WAIT, 0.2)
    async with standalone(tmp_path, settings_of(zookeeper, chroot)) as process, client_of(process) as node:
        topics = await topics_of(node)

    assert topics == {}


async def test_a_caller_without_cluster_action_is_no_controller(
    zookeeper: ZooKeeperServer, chroot: str, tmp_path: Path
) -> None:
    """CLUSTER_AUTHORIZATION_FAILED, before the request is decoded; nothing changes."""
    settings = {**settings_of(zookeeper, chroot), **AUTHORIZER}
    async with standalone(tmp_path, settings) as process, client_of(process) as node:
        answers = await send_topic(node, "orders")

        assert process.broker.view.topics == {}
    assert [answer["error_code"] for answer in answers] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2


async def test_a_super_user_is_a_controller(zookeeper: ZooKeeperServer, chroot: str, tmp_path: Path) -> None:
    """As the principal of the controller usually is."""
    settings = {**settings_of(zookeeper, chroot), **AUTHORIZER, "super.users": "User:ANONYMOUS"}
    async with standalone(tmp_path, settings) as process, client_of(process) as node:
        answers = await send_topic(node, "orders")

    assert [answer["error_code"] for answer in answers] == [ErrorCode.NONE] * 2
