"""The controller as a listed node of the cluster, for Kafka's own tools and compared with the answers of real brokers."""

import asyncio
import time
from collections import Counter

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from controller_core.shell.admin.responses import MAX_SILENCE_MS
from kafka_wire import ApiKey, ErrorCode
from lab.peers import kafka_tools
from lab.processes.waiting import wait_until
from tests.integration.clusters import call
from tests.integration.conftest import PATIENCE_S, Held

pytestmark = pytest.mark.kafka

TOPIC = "listed-once"
NAMES = tuple(f"listed-once-{number}" for number in range(9))
"""So many names that every broker coordinates some of them: the brokers share 50 partitions of groups and of transactions."""
LOGGER = "kafka.server.KafkaServer"


@pytest.fixture(scope="module")
def used(held: Held) -> Held:
    """The cluster with consumer groups and finished transactions."""
    held.create(TOPIC, partitions=1)
    for name in NAMES:
        settings = {"bootstrap.servers": held.cluster.bootstrap()}
        producer = Producer({**settings, "transactional.id": name})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce(TOPIC, b"record")
        producer.commit_transaction(PATIENCE_S)
        consumer = Consumer({**settings, "group.id": name})
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
        consumer.close()
    return held


def names_in(output: str) -> Counter[str]:
    """Count the lines that begin with each name."""
    first_words = (line.split()[0] for line in output.splitlines() if line.strip())
    return Counter(word for word in first_words if word in NAMES)


def test_kafka_transactions_lists_each_transaction_once(used: Held) -> None:
    """ListTransactions goes to every listed node (AllBrokersStrategy): the controller adds none of a broker."""
    done = kafka_tools.kafka_transactions("--bootstrap-server", used.cluster.bootstrap(), "list")

    assert done.returncode == 0, done.stderr
    assert names_in(done.stdout) == Counter(NAMES)


async def test_groups_and_transactions_are_listed_by_their_coordinators_only(used: Held) -> None:
    """KIP-518, KIP-664: the controller's lists are empty, and the lists of all nodes together name each entry once."""
    nodes = [used.controller.address(), *(broker.address() for broker in used.cluster.brokers.values())]
    groups = [await call(node, ApiKey.LIST_GROUPS, {}) for node in nodes]
    transactions = [await call(node, ApiKey.LIST_TRANSACTIONS, {"state_filters": []}) for node in nodes]

    assert (groups[0]["error_code"], groups[0]["groups"]) == (ErrorCode.NONE, [])
    assert (transactions[0]["error_code"], transactions[0]["transaction_states"]) == (ErrorCode.NONE, [])
    listed = Counter(group["group_id"] for answer in groups for group in answer["groups"])
    assert {name: listed[name] for name in NAMES} == dict.fromkeys(NAMES, 1)
    found = Counter(state["transactional_id"] for answer in transactions for state in answer["transaction_states"])
    assert {name: found[name] for name in NAMES} == dict.fromkeys(NAMES, 1)


async def test_unknown_states_are_returned_as_by_a_broker(used: Held) -> None:
    """TransactionStateManager.listTransactionStates."""
    states = {"state_filters": ["Ongoing", "ongoing", "PrepareEpochFence", "Dead", "No such state"]}
    own = await call(used.controller.address(), ApiKey.LIST_TRANSACTIONS, states)
    brokers = await call(used.cluster.broker(1).address(), ApiKey.LIST_TRANSACTIONS, states)

    assert set(own["unknown_state_filters"]) == set(brokers["unknown_state_filters"]) == {"ongoing", "No such state"}


def test_kafka_consumer_groups_lists_each_group_once(used: Held) -> None:
    """ConsumerGroupCommand --list through the controller's address, with and without filters."""
    server = ("--bootstrap-server", used.controller.address(), "--list")
    done = kafka_tools.kafka_consumer_groups(*server)
    filtered = kafka_tools.kafka_consumer_groups(*server, "--state", "Empty", "--type", "classic")

    assert (done.returncode, filtered.returncode) == (0, 0), done.stderr + filtered.stderr
    assert names_in(done.stdout) == Counter(NAMES)
    assert names_in(filtered.stdout) == Counter(NAMES)


async def test_requests_to_a_node_without_the_replica_are_answered_as_by_a_broker(used: Held) -> None:
    """AlterReplicaLogDirs, DescribeProducers: they are not relayed."""
    placed = set(used.cluster.assignment(TOPIC)[0])
    without = next(broker for broker_id, broker in used.cluster.brokers.items() if broker_id not in placed)
    topics = [{"name": TOPIC, "partition_indexes": [0, 7]}, {"name": "absent", "partition_indexes": [0]}]
    dirs = [{"path": "/no/such/directory", "topics": [{"name": TOPIC, "partitions": [0]}]}]

    for key, body in ((ApiKey.DESCRIBE_PRODUCERS, {"topics": topics}), (ApiKey.ALTER_REPLICA_LOG_DIRS, {"dirs": dirs})):
        own = await call(used.controller.address(), key, body)
        brokers = await call(without.address(), key, body)
        assert own == brokers, key


async def test_a_brokers_directory_is_not_taken_for_the_controllers(used: Held) -> None:
    """KIP-113: a move between directories that is sent to the controller's id moves nothing on any broker."""
    paths = []
    for broker in used.cluster.brokers.values():
        described = await call(broker.address(), ApiKey.DESCRIBE_LOG_DIRS, {"topics": []})
        paths += [result["log_dir"] for result in described["results"]]
    for path in paths:
        dirs = [{"path": path, "topics": [{"name": TOPIC, "partitions": [0]}]}]
        answer = await call(used.controller.address(), ApiKey.ALTER_REPLICA_LOG_DIRS, {"dirs": dirs})
        assert answer["results"][0]["partitions"][0]["error_code"] == ErrorCode.LOG_DIR_NOT_FOUND


def test_kafka_transactions_finds_no_producers_on_the_controller(used: Held) -> None:
    """`describe-producers --broker-id`: the tool gets the error of a node without the replica."""
    own = str(used.controller.controller_id)
    server = ("--bootstrap-server", used.cluster.bootstrap())
    asked = ("describe-producers", "--topic", TOPIC, "--partition", "0", "--broker-id", own)
    done = kafka_tools.kafka_transactions(*server, *asked)

    assert done.returncode != 0
    assert "NotLeaderOrFollower" in done.stdout + done.stderr


async def levels(held: Held) -> list[str]:
    """Ask each broker for the level of a logger of its own."""
    answers = []
    for broker_id, broker in held.cluster.brokers.items():
        asked = {"resource_type": 8, "resource_name": str(broker_id), "configuration_keys": [LOGGER]}
        answer = await call(broker.address(), ApiKey.DESCRIBE_CONFIGS, {"resources": [asked]})
        ((level,),) = [result["configs"] for result in answer["results"]]
        answers.append(level["value"])
    return answers


def test_kafka_configs_finds_the_loggers_of_the_controller_and_changes_no_brokers(used: Held) -> None:
    """KIP-412: loggers of the controller's id are those of its process, and no broker's."""
    server = ("--bootstrap-server", used.cluster.bootstrap(), "--entity-type", "broker-loggers", "--entity-name")
    own = str(used.controller.controller_id)
    before = asyncio.run(levels(used))
    described = kafka_tools.kafka_configs(*server, own, "--describe")
    altered = kafka_tools.kafka_configs(*server, own, "--alter", "--add-config", f"{LOGGER}=TRACE")

    assert described.returncode == 0, described.stdout + described.stderr
    assert "controller_core.shell=INFO" in described.stdout
    assert LOGGER not in described.stdout
    assert altered.returncode != 0
    assert LOGGER in altered.stdout + altered.stderr
    assert len(before) == len(used.cluster.brokers)
    assert asyncio.run(levels(used)) == before


async def test_another_nodes_id_is_refused_as_by_a_broker(used: Held) -> None:
    """ConfigHelper.describeConfigs, ConfigAdminManager: whichever broker a relay would have reached, it is not this node."""
    broker = used.cluster.broker(1).address()
    for resource_type in (4, 8):
        configs = [{"name": LOGGER, "config_operation": 0, "value": "INFO"}]
        resource = {"resource_type": resource_type, "resource_name": "2"}
        described = {"resources": [{**resource, "configuration_keys": None}]}
        altered = {"resources": [{**resource, "configs": configs}], "validate_only": True}
        for node in (used.controller.address(), broker):
            answers = [
                (await call(node, ApiKey.DESCRIBE_CONFIGS, described))["results"][0],
                (await call(node, ApiKey.INCREMENTAL_ALTER_CONFIGS, altered))["responses"][0],
            ]
            assert [answer["error_code"] for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2


async def topic_error(held: Held, broker_id: int, topic: str) -> int:
    """Ask one broker for a topic's partitions; return the first error."""
    body = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
    answer = await call(held.cluster.broker(broker_id).address(), ApiKey.METADATA, body)
    (found,) = answer["topics"]
    return next((code for entry in (found, *found["partitions"]) if (code := entry["error_code"])), ErrorCode.NONE)


async def test_every_live_broker_knows_a_topic_when_its_creation_is_answered(used: Held) -> None:
    """DelayedCreatePartitions waits for leaders; here all live brokers must know them, whichever broker is asked next."""
    for number in range(10):
        name = f"known-{number}"
        topic = {"name": name, "num_partitions": 6, "replication_factor": 3}
        body = {"topics": [topic], "timeout_ms": 60_000}
        began = time.monotonic()
        answer = await call(used.controller.address(), ApiKey.CREATE_TOPICS, body)
        assert answer["topics"][0]["error_code"] == ErrorCode.NONE
        if time.monotonic() - began >= MAX_SILENCE_MS / 1000:
            continue  # on a very busy machine a broker may count as silent
        errors = [await topic_error(used, broker_id, name) for broker_id in used.cluster.brokers]
        assert errors == [ErrorCode.NONE] * len(used.cluster.brokers)


def test_a_frozen_broker_does_not_fail_the_creation_of_a_topic(used: Held) -> None:
    """The others know the topic when the answer is sent, and the frozen broker gets it when it continues."""
    assignment = {"partition_index": 0, "broker_ids": [1, 2]}
    name = "created-with-a-frozen-broker"
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": [assignment]}
    frozen = used.cluster.broker(4)
    frozen.pause()
    try:
        body = {"topics": [topic], "timeout_ms": 60_000}
        answer = asyncio.run(call(used.controller.address(), ApiKey.CREATE_TOPICS, body))
        errors = [asyncio.run(topic_error(used, broker_id, name)) for broker_id in (1, 2, 3)]
    finally:
        frozen.resume()
    assert answer["topics"][0]["error_code"] == ErrorCode.NONE
    assert errors == [ErrorCode.NONE] * 3
    wait_until(
        lambda: asyncio.run(topic_error(used, 4, name)) == ErrorCode.NONE,
        timeout_s=PATIENCE_S,
        what="the frozen broker knows the topic",
    )
    used.wait_until_known()
