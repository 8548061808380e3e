"""Kafka's Admin tools and a light broker, and Kafka 4.3 as the judge of what its configs look like."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.client import Node, NodeSettings
from lab.peers.kafka_tools import kafka_configs, kafka_topics, run_tool_of_kafka_4
from lab.peers.kraft import KraftCluster
from lab.peers.light_broker import LightBroker, light_broker

pytestmark = pytest.mark.java

TOPIC, BROKER = 2, 4
TIMEOUT_MS = 20_000
DEFAULT = 5


@pytest.fixture(scope="module")
def broker() -> Iterator[LightBroker]:
    """A standalone light broker."""
    with light_broker() as started:
        yield started


def ran(done: Any) -> str:
    """Return the output of a tool that succeeded."""
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.mark.shows("F63")
def test_the_quickstart_works_and_its_record_is_there_after_a_kill(broker: LightBroker) -> None:
    """docs/light-broker.md: create a topic, produce, consume, kill -9, consume again."""
    server = ("--bootstrap-server", broker.bootstrap)
    console = ("org.apache.kafka.tools.consumer.ConsoleConsumer", *server, "--topic", "orders", "--from-beginning")

    assert "Created topic orders." in ran(kafka_topics(*server, "--create", "--topic", "orders", "--partitions", "3"))
    produce_hello(broker)
    for _ in range(2):
        assert ran(run_tool_of_kafka_4(*console, "--max-messages", "1", "--timeout-ms", "30000")) == "hello\n"
        broker.kill()
        broker.start()
    described = ran(kafka_topics(*server, "--describe", "--topic", "orders"))
    assert described.count("Leader: 1\tReplicas: 1\tIsr: 1") == 3


def produce_hello(broker: LightBroker) -> None:
    """Produce one record by librdkafka."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("orders", "hello")
    assert producer.flush(30) == 0


def test_kafka_configs_changes_and_describes_a_topic(broker: LightBroker) -> None:
    """With sources and synonyms."""
    server = ("--bootstrap-server", broker.bootstrap)
    entity = ("--entity-type", "topics", "--entity-name", "configured")
    ran(kafka_topics(*server, "--create", "--topic", "configured"))

    ran(kafka_configs(*server, *entity, "--alter", "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]"))

    described = ran(kafka_configs(*server, *entity, "--describe"))
    assert "retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000" in described
    assert "cleanup.policy=compact,delete" in described


def test_kafka_configs_describes_users_and_kafka_reassign_partitions_lists_nothing(broker: LightBroker) -> None:
    """Quotas, SCRAM users and reassignments are asked for; there are none."""
    server = ("--bootstrap-server", broker.bootstrap)

    users = run_tool_of_kafka_4("kafka.admin.ConfigCommand", *server, "--describe", "--entity-type", "users")
    moves = run_tool_of_kafka_4("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *server, "--list")

    assert (users.returncode, users.stdout, users.stderr) == (0, "", "")
    assert ran(moves).strip() == "No partition reassignments found."


def test_a_transactional_producer_of_kafka_ends_at_once_with_a_message(broker: LightBroker) -> None:
    """Instead of retrying until max.block.ms (TransactionManager.FindCoordinatorHandler)."""
    done = run_tool_of_kafka_4(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "orders", "--num-records", "1", "--record-size", "10", "--throughput", "-1"),
        *("--bootstrap-server", broker.bootstrap, "--transactional-id", "t"),
    )

    assert done.returncode != 0
    assert "This broker has no transactions. Remove transactional.id from the producer's settings." in done.stderr


async def configs_of(bootstrap: str, kind: int, name: str) -> dict[str, Any]:
    """Return the configs of a resource, as a broker describes them, by name."""
    host, _, port = bootstrap.rpartition(":")
    node = Node(host, int(port), NodeSettings(client_id="test"))
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    try:
        topic = {"name": "judged", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        await node.call(ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": TIMEOUT_MS}, timeout_ms=TIMEOUT_MS)
        async with asyncio.timeout(TIMEOUT_MS / 1000):
            while (result := await described(node, resource))["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                pass  # the broker does not have the metadata of the topic yet
    finally:
        await node.close()
    assert (result["error_code"], bool(result["configs"])) == (ErrorCode.NONE, True)
    return {config["name"]: config for config in result["configs"]}


async def described(node: Node, resource: dict[str, Any]) -> dict[str, Any]:
    """Return the result of DescribeConfigs for one resource."""
    body = {"resources": [resource], "include_synonyms": True, "include_documentation": True}
    answer = await node.call(ApiKey.DESCRIBE_CONFIGS, body, timeout_ms=TIMEOUT_MS)
    result: dict[str, Any] = answer["results"][0]
    return result


@pytest.mark.kafka
@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "judged"), (BROKER, "1")])
def test_configs_with_kafkas_defaults_are_described_as_by_kafka(
    broker: LightBroker, kraft_cluster: KraftCluster, kind: int, name: str
) -> None:
    """Names, values, types, sources, synonyms and documentation (ConfigHelper)."""
    judge = asyncio.run(configs_of(kraft_cluster.bootstrap().split(",")[0], kind, name))
    ours = asyncio.run(configs_of(broker.bootstrap, kind, name))
    compared = [name for name, config in judge.items() if config["config_source"] == DEFAULT]

    assert set(judge) ^ set(ours) == set()
    assert {name: shown(ours[name]) for name in compared} == {name: shown(judge[name]) for name in compared}
    assert writable(ours) - writable(judge) == set()


VALUES = (
    *("", "x", "true", "0.5", "2", "*", "0:1,1:2", "0:1,", "gzip", "LogAppendTime"),
    *("-3", "-1", "0", "1", "13", "1048575", "1048576", "2147483648", "9223372036854775808"),
    *("delete", "delete,delete", "compact,delete", "delete,", "compact,x"),
)
"""Values at the bounds of some config, and of the type of another one."""


async def refusals(bootstrap: str, names: list[str]) -> dict[tuple[str, str], tuple[str, str | None]]:
    """Return error and message by config and value, for topics that are only to be validated."""
    host, _, port = bootstrap.rpartition(":")
    cases = [(name, value) for name in names for value in VALUES]
    topics = [
        {
            "name": f"validated-{number}",
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": [],
            "configs": [{"name": name, "value": value}],
        }
        for number, (name, value) in enumerate(cases)
    ]
    node = Node(host, int(port), NodeSettings(client_id="test"))
    try:
        body = {"topics": topics, "timeout_ms": TIMEOUT_MS, "validate_only": True}
        answer = await node.call(ApiKey.CREATE_TOPICS, body, timeout_ms=TIMEOUT_MS)
    finally:
        await node.close()
    found = {
        topic["name"]: (ErrorCode.of(topic["error_code"]).name, topic["error_message"] or None)
        for topic in answer["topics"]
    }
    return {case: found[f"validated-{number}"] for number, case in enumerate(cases)}


@pytest.mark.kafka
def test_values_of_topic_configs_are_refused_as_by_kafka(broker: LightBroker, kraft_cluster: KraftCluster) -> None:
    """Each config with values at its bounds, of another type, and names that Kafka 4 has removed (LogConfig.validate)."""
    names = [*TOPIC_CONFIGS, "message.format.version", "message.downconversion.enable"]
    judge = asyncio.run(refusals(kraft_cluster.bootstrap().split(",")[0], names))
    ours = asyncio.run(refusals(broker.bootstrap, names))

    assert {case: ours[case] for case in ours if ours[case] != judge[case]} == {}


def shown(config: dict[str, Any]) -> dict[str, Any]:
    """Return what must be the same."""
    fields = ("value", "config_source", "is_sensitive", "synonyms", "config_type", "documentation")
    return {key: config[key] for key in fields}


def writable(configs: dict[str, Any]) -> set[str]:
    """Return the configs that may be changed: here fewer than in Kafka, such as those of TLS."""
    return {name for name, config in configs.items() if not config["read_only"]}
