"""A light broker next to a Kafka 3.9 broker in a cluster in ZooKeeper mode, under each kind of controller."""

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from kafka_log.files.text_files import read_meta_properties
from kafka_wire import ApiKey, ErrorCode
from lab.faults.zookeeper_sessions import end_session
from lab.peers.cluster import KafkaCluster, kafka_cluster
from lab.peers.kafka import CLIENT, INTERNAL, SESSION_TIMEOUT_MS
from lab.peers.light_broker import ZooKeeperLightBroker
from lab.peers.live_brokers import alive
from lab.peers.steward import CONTROLLER_ID, StewardController
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.integration.clusters import call
from tests.integration.conftest import CHROOT, PATIENCE_S
from tests.integration.few_records import produce, read

pytestmark = pytest.mark.kafka

KAFKA, LIGHT = 1, 2
SOFTWARE = {"client_software_name": "tests", "client_software_version": "1"}
VALUES = [f"value {number}".encode() for number in range(50)]


@dataclass(frozen=True, slots=True)
class Mixed:
    """A cluster of a Kafka broker and a light broker."""

    cluster: KafkaCluster
    light: ZooKeeperLightBroker
    folder: Path
    controller_id: int

    def admin(self) -> AdminClient:
        """Return a client that knows both brokers."""
        return AdminClient({"bootstrap.servers": f"{self.cluster.bootstrap()},{self.light.address()}"})

    def registration_epoch(self) -> int:
        """Return the czxid of the light broker's znode."""
        return int(self.cluster.zookeeper.client.get(self.light.registration_path)[1].czxid)

    def wait_until_known(self) -> None:
        """Wait until each broker knows the other one."""
        addresses = [self.cluster.broker(KAFKA).address(), self.light.address()]
        wait_until(
            lambda: all({KAFKA, LIGHT} <= alive(address) for address in addresses),
            timeout_s=PATIENCE_S,
            what="each broker knows the other one",
        )

    def create(self, topic: str, *assignment: list[int], **config: str) -> None:
        """Create a topic with this assignment, and wait for its leaders."""
        named = {name.replace("_", "."): value for name, value in config.items()}
        new = NewTopic(topic, num_partitions=len(assignment), replica_assignment=list(assignment), config=named)
        admin = self.admin()
        admin.create_topics([new])[topic].result(timeout=PATIENCE_S)
        self.cluster.wait_until_in_sync(topic)


@contextmanager
def mixed(controller: str) -> Iterator[Mixed]:
    """Yield a cluster whose controller is Steward's, or the Kafka broker."""
    with lab_folder() as folder, kafka_cluster((KAFKA,), start=False, chroot=CHROOT, folder=folder) as cluster:
        steward = StewardController(cluster.zookeeper_connect, folder) if controller == "steward" else None
        settings = {"offsets.topic.replication.factor": "1"}
        light = ZooKeeperLightBroker(LIGHT, cluster.zookeeper, folder, chroot=CHROOT, settings=settings)
        try:
            if steward is not None:
                steward.start()
            cluster.start_brokers()
            cluster.wait_for_controller(CONTROLLER_ID if steward is not None else KAFKA)
            light.start()
            one = Mixed(cluster, light, folder, CONTROLLER_ID if steward is not None else KAFKA)
            one.wait_until_known()
            yield one
        finally:
            light.kill()
            if steward is not None:
                steward.close()


@pytest.fixture(scope="module", params=["steward", "kafka"])
def one(request: pytest.FixtureRequest) -> Iterator[Mixed]:
    """A cluster under each kind of controller."""
    with mixed(request.param) as made:
        yield made


def test_a_light_broker_registers_as_a_broker_of_kafka_does(one: Mixed) -> None:
    """BrokerIdZNode, version 5: endpoints by listener, their protocols, and no features; meta.properties has version 0."""
    found = json.loads(one.cluster.zookeeper.read(one.light.registration_path) or b"")
    kafka = json.loads(one.cluster.zookeeper.read(one.cluster.broker(KAFKA).registration_path) or b"")

    assert {**found, "timestamp": "", "endpoints": []} == {**kafka, "timestamp": "", "endpoints": [], "port": -1} | {
        "port": found["port"]
    }
    assert found["endpoints"] == [f"{name}://127.0.0.1:{port}" for name, port in one.light.ports.items()]
    stored = read_meta_properties(one.light.data_folder)
    cluster_id = json.loads(one.cluster.zookeeper.read(f"{CHROOT}/cluster/id") or b"")["id"]
    assert stored is not None
    assert (stored.version, stored.node_id, stored.cluster_id) == (0, LIGHT, cluster_id)


def test_clients_find_the_controller_by_a_light_broker(one: Mixed) -> None:
    """Metadata's controller id is that of UpdateMetadata (ZkMetadataCache)."""
    admin = AdminClient({"bootstrap.servers": one.light.address()})
    metadata = admin.list_topics(timeout=PATIENCE_S)

    assert metadata.controller_id == one.controller_id


@pytest.mark.shows("F71")
def test_a_client_produces_to_a_light_broker_and_reads_from_it(one: Mixed) -> None:
    """LeaderAndIsr makes it the leader; AllocateProducerIds gives the idempotent producer its id."""
    one.create("orders", [LIGHT])

    produce(one.cluster.bootstrap(), "orders", VALUES)

    assert read(one.light.address(), "orders", len(VALUES)) == VALUES


def test_a_dynamic_config_of_a_topic_applies_on_a_light_broker(one: Mixed) -> None:
    """A config at the creation of a topic has no notification; a later one has (`/config/changes`)."""
    one.create("limited", [LIGHT], retention_ms="7200000")
    admin = AdminClient({"bootstrap.servers": one.light.address()})

    def configs() -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, "limited")
        found = admin.describe_configs([resource])[resource].result(timeout=PATIENCE_S)
        return {name: found[name].value for name in ("retention.ms", "max.message.bytes")}

    assert configs()["retention.ms"] == "7200000"
    change = ConfigEntry("max.message.bytes", "2048", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "limited", incremental_configs=[change])
    on_kafka = AdminClient({"bootstrap.servers": one.cluster.bootstrap()})
    on_kafka.incremental_alter_configs([resource])[resource].result(timeout=PATIENCE_S)
    wait_until(lambda: configs()["max.message.bytes"] == "2048", timeout_s=PATIENCE_S, what="the config applies")
    assert configs() == {"retention.ms": "7200000", "max.message.bytes": "2048"}


def test_a_light_broker_writes_a_config_that_a_client_changes(one: Mixed) -> None:
    """Each broker in ZooKeeper mode does, with a notification for all brokers (AdminZkClient.changeConfigs)."""
    one.create("changed", [LIGHT])
    change = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "changed", incremental_configs=[change])
    on_light = AdminClient({"bootstrap.servers": one.light.address()})

    on_light.incremental_alter_configs([resource])[resource].result(timeout=PATIENCE_S)

    stored = one.cluster.zookeeper.read(f"{CHROOT}/config/topics/changed")
    assert json.loads(stored or b"") == {"version": 1, "config": {"retention.ms": "3600000"}}


def test_a_topic_is_created_automatically_by_a_light_broker(one: Mixed) -> None:
    """The broker sends CreateTopics to the controller with its own defaults (AutoTopicCreationManager)."""
    produce(one.light.address(), "automatic", VALUES)

    assert read(one.light.address(), "automatic", len(VALUES)) == VALUES


def test_a_request_for_the_controller_is_refused_by_a_light_broker(one: Mixed) -> None:
    """A client that asks the wrong broker gets NOT_CONTROLLER, and looks for the controller (KafkaApis.handleCreateTopicsRequest)."""
    topic = {"name": "refused", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}

    answer = asyncio.run(call(one.light.address(), ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 1000}))

    assert [topic["error_code"] for topic in answer["topics"]] == [ErrorCode.NOT_CONTROLLER]


def test_only_the_listener_of_brokers_serves_the_controller(one: Mixed) -> None:
    """ApiVersions of the clients' listener does not list the controller's requests."""
    shown = {
        listener: {
            api["api_key"]
            for api in asyncio.run(call(one.light.address(listener), ApiKey.API_VERSIONS, SOFTWARE))["api_keys"]
        }
        for listener in (INTERNAL, CLIENT)
    }

    assert shown[INTERNAL] - shown[CLIENT] == {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA}


def test_a_lost_session_registers_again_with_another_epoch(one: Mixed) -> None:
    """As KafkaController's RegisterBrokerAndReelect; the broker goes on serving."""
    one.create("lost", [LIGHT])
    before = one.registration_epoch()
    owner = one.cluster.zookeeper.client.get(one.light.registration_path)[1].ephemeralOwner

    end_session(one.cluster.zookeeper.port, owner)

    wait_until(
        lambda: (
            one.cluster.zookeeper.read(one.light.registration_path) is not None and one.registration_epoch() > before
        ),
        timeout_s=PATIENCE_S,
        what="the broker is registered again",
    )
    one.wait_until_known()
    one.cluster.wait_until_in_sync("lost")
    produce(one.cluster.bootstrap(), "lost", VALUES)
    assert read(one.light.address(), "lost", len(VALUES)) == VALUES


def test_a_controlled_shutdown_and_a_restart_keep_the_data(one: Mixed) -> None:
    """C8: ControlledShutdown succeeds, the znode is gone, and the next start leads the same log."""
    one.create("kept", [LIGHT])
    produce(one.cluster.bootstrap(), "kept", VALUES)

    one.light.signal(signal.SIGTERM)
    assert one.light.wait() == 0
    one.light.wait_until_deregistered()
    assert "Controlled shutdown is complete" in one.light.log_path.read_text()
    one.light.start()
    one.wait_until_known()
    one.cluster.wait_until_in_sync("kept")

    assert read(one.cluster.bootstrap(), "kept", len(VALUES)) == VALUES


@pytest.mark.shows("F71")
def test_a_kafka_broker_follows_a_light_broker(one: Mixed) -> None:
    """acks=all with min.insync.replicas 2: the follower leaves the ISR when it stops, and joins again by AlterPartition (KIP-497)."""
    one.create("replicated", [LIGHT, KAFKA], min_insync_replicas="2")

    produce(one.light.address(), "replicated", VALUES, acks="all")

    state = one.cluster.partition_state("replicated", 0)
    assert state is not None
    assert (state["leader"], sorted(state["isr"])) == (LIGHT, [KAFKA, LIGHT])
    one.cluster.broker(KAFKA).restart()
    one.cluster.wait_until_in_sync("replicated")
    one.wait_until_known()
    produce(one.light.address(), "replicated", VALUES, acks="all")
    assert read(one.light.address(), "replicated", 2 * len(VALUES)) == VALUES * 2


def test_a_light_broker_follows_a_kafka_broker_and_leads_after_it(one: Mixed) -> None:
    """The follower is in the ISR with all records; a controlled shutdown of the leader makes it the leader, which loses none."""
    one.create("followed", [KAFKA, LIGHT])
    produce(one.cluster.bootstrap(), "followed", VALUES, acks="all")

    one.cluster.broker(KAFKA).stop()
    after = one.cluster.partition_state("followed", 0)
    found = read(one.light.address(), "followed", len(VALUES))
    one.cluster.broker(KAFKA).start()
    one.cluster.wait_until_in_sync("followed")
    one.wait_until_known()

    assert after is not None
    assert (after["leader"], after["isr"], found) == (LIGHT, [LIGHT], VALUES)


def test_a_light_broker_that_comes_back_follows_and_joins_the_isr_again(one: Mixed) -> None:
    """It fetches what the Kafka broker took as the leader in the meantime; both logs then have the same records."""
    one.create("returned", [LIGHT, KAFKA])
    produce(one.light.address(), "returned", VALUES, acks="all")

    one.light.signal(signal.SIGTERM)
    assert one.light.wait() == 0
    one.light.wait_until_deregistered()
    produce(one.cluster.bootstrap(), "returned", VALUES, acks="all")
    one.light.start()
    one.wait_until_known()
    one.cluster.wait_until_in_sync("returned")
    one.cluster.broker(KAFKA).stop()
    found = read(one.light.address(), "returned", 2 * len(VALUES))
    one.cluster.broker(KAFKA).start()
    one.cluster.wait_until_in_sync("returned")
    one.wait_until_known()

    assert found == VALUES * 2


def test_groups_have_their_coordinators_on_both_brokers(one: Mixed) -> None:
    """`__consumer_offsets` has partitions on both; a group that joins by one broker finds its coordinator on the other."""
    one.create("grouped", [LIGHT])
    produce(one.cluster.bootstrap(), "grouped", VALUES)
    coordinators = set()
    for number, group in enumerate(("a", "b", "c", "d", "e", "f")):
        bootstrap = (one.light.address(), one.cluster.bootstrap())[number % 2]
        config = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
        consumer = Consumer({**config, "enable.auto.commit": False})
        consumer.subscribe(["grouped"])
        found = consumer.consume(len(VALUES), timeout=PATIENCE_S)
        consumer.commit(asynchronous=False)
        committed = consumer.committed([TopicPartition("grouped", 0)], timeout=PATIENCE_S)
        consumer.close()
        assert ([record.value() for record in found], committed[0].offset) == (VALUES, len(VALUES))
        request = {"key_type": 0, "coordinator_keys": [group]}
        answer = asyncio.run(call(bootstrap, ApiKey.FIND_COORDINATOR, request))
        coordinators.add(answer["coordinators"][0]["node_id"])

    assert coordinators == {KAFKA, LIGHT}


def test_a_deleted_topic_is_gone_from_a_light_broker(one: Mixed) -> None:
    """StopReplica deletes the log, and UpdateMetadata the topic."""
    one.create("gone", [LIGHT])

    on_both = one.admin()
    on_both.delete_topics(["gone"])["gone"].result(timeout=PATIENCE_S)

    admin = AdminClient({"bootstrap.servers": one.light.address()})
    wait_until(
        lambda: (
            "gone" not in admin.list_topics(timeout=PATIENCE_S).topics
            and not (one.light.data_folder / "gone-0").exists()
        ),
        timeout_s=PATIENCE_S,
        what="the topic is deleted",
    )


def test_another_process_with_the_id_of_a_live_broker_does_not_start(one: Mixed) -> None:
    """The error has the znode and what to do. Source: KafkaZkClient.registerBroker."""
    other = ZooKeeperLightBroker(LIGHT, one.cluster.zookeeper, one.folder / "other", chroot=CHROOT)
    other.launch()

    code = other.wait(timeout_s=SESSION_TIMEOUT_MS / 1000 + PATIENCE_S)

    assert code == 1
    assert "Another process is registered with the broker id 2" in other.log_text()
