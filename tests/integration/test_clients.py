"""Clients of every kind work through the controller: it is listed as a broker, and relays requests that it does not serve."""

import asyncio
import socket
import struct

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from lab.peers import kafka_tools
from lab.peers.kafka import CLIENT
from lab.processes.waiting import wait_until
from tests.integration.conftest import PATIENCE_S, Held

pytestmark = pytest.mark.kafka

CONTROLLER = 1000


def assigned_brokers(held: Held, topic: str) -> set[int]:
    """Brokers in a topic's assignment."""
    return {replica for replicas in held.cluster.assignment(topic).values() for replica in replicas}


def test_the_controller_is_listed_on_the_clients_listener(held: Held) -> None:
    """Protocol notes, Z24: an AdminClient of the client listener finds the controller."""
    held.wait_until_held()

    metadata = held.admin.list_topics(timeout=PATIENCE_S)

    assert set(metadata.brokers) == {1, 2, 3, 4, CONTROLLER}
    assert metadata.controller_id == CONTROLLER
    assert held.controller.address(CLIENT) == f"{metadata.brokers[CONTROLLER].host}:{metadata.brokers[CONTROLLER].port}"


@pytest.mark.parametrize("through", ["a broker", "the controller"])
def test_a_transaction_and_a_group_work(held: Held, through: str) -> None:
    """Idempotent, transactional and group clients (FindCoordinator, InitProducerId and JoinGroup may reach the controller)."""
    server = held.cluster.bootstrap() if through == "a broker" else held.controller.address(CLIENT)
    topic = f"transacted-{through.rsplit(maxsplit=1)[-1]}"
    held.create(topic)
    producer = Producer({"bootstrap.servers": server, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for number in range(20):
        producer.produce(topic, str(number))
    producer.commit_transaction(PATIENCE_S)

    consumer = Consumer({"bootstrap.servers": server, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: set[bytes] = set()

    def read() -> bool:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.add(message.value())
        return len(found) == 20

    wait_until(read, timeout_s=PATIENCE_S, what="twenty records of the transaction")
    consumer.close()
    assert {str(number).encode() for number in range(20)} == found


def test_aiokafka_works_through_the_controller(held: Held) -> None:
    """Protocol notes, Z25: aiokafka sends InitProducerId to any node, including the controller."""
    held.create("aio", partitions=1)

    async def round_trip() -> bytes:
        server = held.controller.address(CLIENT)
        async with AIOKafkaProducer(bootstrap_servers=server, enable_idempotence=True) as producer:
            await producer.send_and_wait("aio", b"here")
        async with AIOKafkaConsumer("aio", bootstrap_servers=server, auto_offset_reset="earliest") as consumer:
            record = await consumer.getone()
            return bytes(record.value)

    assert asyncio.run(asyncio.wait_for(round_trip(), PATIENCE_S)) == b"here"


def test_an_assignment_to_the_controller_is_corrected(held: Held) -> None:
    """Protocol notes, Z22: brokers place auto-created topics on every known broker, including the controller; it corrects that."""
    producer = Producer({"bootstrap.servers": held.cluster.bootstrap(), "acks": "all"})
    names = [f"auto-{number}" for number in range(12)]
    for name in names:
        producer.produce(name, b"made by a broker")
    assert producer.flush(PATIENCE_S) == 0

    for name in [*names, "__consumer_offsets", "__transaction_state"]:
        assert assigned_brokers(held, name) <= {1, 2, 3, 4}, name


def test_config_requests_are_answered_by_the_right_node(held: Held) -> None:
    """DescribeConfigs and IncrementalAlterConfigs: brokers answer for topics, the controller for its own configuration."""
    held.create("configured", partitions=1, retention_ms="123456")
    resources = [
        ConfigResource("topic", "configured"),
        ConfigResource("broker", "2"),
        ConfigResource("broker", str(CONTROLLER)),
    ]

    described = {
        resource: held.admin.describe_configs([resource])[resource].result(PATIENCE_S) for resource in resources
    }

    assert described[resources[0]]["retention.ms"].value == "123456"
    assert described[resources[1]]["broker.id"].value == "2"
    assert described[resources[2]] is not None


def test_log_directories_are_counted_once(held: Held) -> None:
    """DescribeLogDirs asks every listed broker: the controller has no directories, and must not answer with those of a broker."""
    held.create("weighed", partitions=1)

    described = kafka_tools.run_tool(
        "org.apache.kafka.tools.LogDirsCommand",
        *("--bootstrap-server", held.cluster.bootstrap(), "--describe", "--topic-list", "weighed"),
    )

    assert described.returncode == 0, described.stderr
    assert described.stdout.count('"weighed-0"') == 3


def test_garbage_on_a_listener_closes_only_that_connection(held: Held) -> None:
    """Limits before parsing: oversized, negative and malformed frames; an Admin client continues in the meantime."""
    admin = AdminClient({"bootstrap.servers": held.controller.address(CLIENT)})
    host, port = held.controller.address(CLIENT).split(":")
    frames = [
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", -1),
        struct.pack(">i", 6) + b"\xff" * 6,
        b"GET / HTTP/1.0\r\n\r\n",
    ]

    for frame in frames:
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
            connection.sendall(frame)
            assert connection.recv(1) == b"", "the connection stayed open"
        assert CONTROLLER in admin.list_topics(timeout=PATIENCE_S).brokers

    assert held.controller.ready
