"""Quotas, SCRAM users, features and older AlterConfigs through the controller, by Kafka's own tools and a real broker.

At first there is no broker, so that the answers come from the controller.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from kafka_wire import ApiKey
from lab.peers import kafka_tools
from lab.peers.cluster import KafkaCluster
from lab.peers.cluster import kafka_cluster as start_kafka_cluster
from lab.peers.steward import StewardController
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.integration.clusters import alter_quota, call
from tests.integration.conftest import PATIENCE_S

pytestmark = pytest.mark.kafka

CHROOT = "/kafka/admin-calls"
TOPIC = "altered"
Held = tuple[KafkaCluster, StewardController]


@pytest.fixture(scope="module")
def without_broker(zookeeper: ZooKeeperServer) -> Iterator[Held]:
    """A controller of a cluster whose one broker has not been started yet."""
    zookeeper.make_chroot(CHROOT)
    with (
        lab_folder() as folder,
        start_kafka_cluster((1,), start=False, zookeeper=zookeeper, chroot=CHROOT) as cluster,
    ):
        controller = StewardController(cluster.zookeeper_connect, folder)
        try:
            controller.start()
            cluster.wait_for_controller(controller.controller_id)
            yield cluster, controller
        finally:
            controller.close()


@pytest.fixture(scope="module")
def held(without_broker: Held) -> Held:
    """The same with its broker, after the tests without it."""
    cluster, controller = without_broker
    cluster.start_brokers()
    admin = AdminClient({"bootstrap.servers": controller.address()})
    wait_until(
        lambda: 1 in admin.list_topics(timeout=PATIENCE_S).brokers, timeout_s=PATIENCE_S, what="the broker known"
    )
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(PATIENCE_S)
    cluster.wait_until_in_sync(TOPIC)
    return without_broker


def kafka_configs(held: Held, *arguments: str) -> str:
    """Run kafka-configs against the controller, and return its output."""
    done = kafka_tools.kafka_configs("--bootstrap-server", held[1].address(), *arguments)
    return done.stdout + done.stderr


async def quotas(address: str) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    """All quotas that a node describes."""
    answer = await call(address, ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False})
    assert answer["error_code"] == 0, answer
    return {
        tuple(sorted((part["entity_type"], part["entity_name"]) for part in entry["entity"])): {
            value["key"]: value["value"] for value in entry["values"]
        }
        for entry in answer["entries"]
    }


def test_kafka_configs_sets_quotas_and_credentials(without_broker: Held) -> None:
    """KIP-546, KIP-554: ConfigCommand, answered by the controller only."""
    alice = ("--entity-type", "users", "--entity-name", "CN=alice")
    for wanted in (
        "producer_byte_rate=1024,request_percentage=12.5",
        "SCRAM-SHA-256=[iterations=4096,password=secret]",
    ):
        made = kafka_configs(without_broker, "--alter", *alice, "--add-config", wanted)
        assert "Completed updating config for user CN=alice." in made

    described = kafka_configs(without_broker, "--describe", "--entity-type", "users")
    assert "Quota configs for user-principal 'CN=alice' are " in described
    assert "producer_byte_rate=1024.0" in described
    assert "request_percentage=12.5" in described
    assert "SCRAM credential configs for user-principal 'CN=alice' are SCRAM-SHA-256=iterations=4096" in described


def test_kafka_configs_is_refused_with_kafkas_message(without_broker: Held) -> None:
    """ZkAdminManager.alterClientQuotas."""
    asked = ("--entity-type", "clients", "--entity-name", "c", "--add-config", "consumer_byte_rate=1.5")
    refused = kafka_configs(without_broker, "--alter", *asked)
    assert "InvalidRequestException: Configuration consumer_byte_rate must be a LONG value" in refused


async def test_broker_and_controller_read_the_quotas_that_the_other_writes(held: Held) -> None:
    """Both describe the same quotas, from the same znodes, whichever of them altered a quota."""
    cluster, controller = held
    own, broker = controller.address(), cluster.broker(1).address()
    bob, anybody, here = ("user", "CN=bob"), ("client-id", None), ("ip", "127.0.0.1")
    before = await quotas(own)
    await alter_quota(own, {"user": "CN=bob"}, "producer_byte_rate", 1024.0)
    await alter_quota(own, {"user": "CN=bob"}, "request_percentage", 12.5)
    of_bob = {**before, (bob,): {"producer_byte_rate": 1024.0, "request_percentage": 12.5}}
    await alter_quota(own, {"user": "CN=bob", "client-id": None}, "consumer_byte_rate", 2048.0)
    await alter_quota(broker, {"ip": "127.0.0.1"}, "connection_creation_rate", 1000.0)
    expected = {
        **of_bob,
        (anybody, bob): {"consumer_byte_rate": 2048.0},
        (here,): {"connection_creation_rate": 1000.0},
    }
    assert await quotas(own) == await quotas(broker) == expected

    await alter_quota(own, {"user": "CN=bob", "client-id": None}, "consumer_byte_rate", None)
    await alter_quota(broker, {"ip": "127.0.0.1"}, "connection_creation_rate", None)
    assert await quotas(own) == await quotas(broker) == of_bob
    assert cluster.zookeeper.client.get_children(f"{CHROOT}/config/users/CN%3Dbob") == []


async def test_a_broker_enforces_a_quota_set_by_the_controller(held: Held) -> None:
    """ClientQuotaManager: the notification in /config/changes reaches a running broker."""
    cluster, controller = held
    await alter_quota(controller.address(), {"client-id": "slow"}, "producer_byte_rate", 1.0)

    throttled: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap(),
            "client.id": "slow",
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )

    def is_throttled() -> bool:
        producer.produce(TOPIC, b"x" * 1000)
        producer.flush(PATIENCE_S)
        return bool(throttled)

    wait_until(is_throttled, timeout_s=PATIENCE_S, what="throttling by the broker")


def test_kafka_features_reports_an_unknown_feature(held: Held) -> None:
    """KIP-584: brokers of ZooKeeper mode support none."""
    done = kafka_tools.kafka_features("--bootstrap-server", held[1].address(), "upgrade", "--feature", "flavour=1")

    assert done.returncode == 1
    message = "Could not apply finalized feature update because the provided feature is not supported."
    assert message in done.stdout + done.stderr


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")
def test_a_topic_is_altered_through_the_controller_by_the_older_request(held: Held) -> None:
    """The controller relays AlterConfigs to a broker: configurations that the request does not name fall back to their defaults."""
    admin = AdminClient({"bootstrap.servers": held[1].address()})
    for config in ({"retention.ms": "7200000", "segment.bytes": "1048576"}, {"retention.ms": "3600000"}):
        resource = ConfigResource(ResourceType.TOPIC, TOPIC, set_config=config)
        admin.alter_configs([resource])[resource].result(PATIENCE_S)

    asked = ConfigResource(ResourceType.TOPIC, TOPIC)
    found = admin.describe_configs([asked])[asked].result(PATIENCE_S)
    assert found["retention.ms"].value == "3600000"
    assert found["segment.bytes"].is_default
