"""Clients of stock Kafka 4.3 brokers whose internal topics Steward's controllers create: transactions, and groups of all protocols."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from lab.peers.kafka_streams import count_by_key
from lab.peers.kafka_tools import run_tool_of_kafka_4
from tests.integration.steward_controllers import StewardCluster, steward_cluster

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.soak("integration/test_kafka_4_admin.py"),
]

PATIENCE_S = 60
RECORDS = 100
SHARE_STATE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[StewardCluster]:
    """Three controllers, two brokers, and a topic with two committed transactions and one that was aborted."""
    with steward_cluster(controllers=3, brokers=2, broker_settings=SHARE_STATE) as cluster:
        cluster.create("orders", 2, 2)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "orders"})
        producer.init_transactions(PATIENCE_S)
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for number in range(RECORDS):
                producer.produce("orders", f"{end.__name__} {number}".encode())
            end(PATIENCE_S)
        yield cluster


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_what_transactions_have_committed(protocol: str, cluster: StewardCluster) -> None:
    """KIP-98 and KIP-848; an aborted transaction is not read."""
    settings = {"group.id": protocol, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "isolation.level": "read_committed", **settings})
    consumer.subscribe(["orders"])
    read: list[bytes] = []
    while len(read) < 2 * RECORDS:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"no message within {PATIENCE_S} s, after {len(read)}"
        assert message.error() is None
        read.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()

    assert sorted(set(read)) == sorted(f"commit_transaction {number}".encode() for number in range(RECORDS))


def test_a_share_group_reads(cluster: StewardCluster) -> None:
    """KIP-932, with Kafka's console consumer."""
    to = ("--bootstrap-server", cluster.bootstrap)
    group = ("--entity-type", "groups", "--entity-name", "share", "--add-config", "share.auto.offset.reset=earliest")
    run_tool_of_kafka_4("kafka.admin.ConfigCommand", *to, "--alter", *group)
    read = ("--topic", "orders", "--group", "share", "--max-messages", "50", "--timeout-ms", str(PATIENCE_S * 1000))
    done = run_tool_of_kafka_4("org.apache.kafka.tools.consumer.ConsoleShareConsumer", *to, *read)

    assert done.stdout.count("_transaction ") == 50, done.stderr


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_a_streams_application_counts_exactly_once(protocol: str, cluster: StewardCluster, tmp_path: Path) -> None:
    """Kafka Streams with its own group protocol (KIP-1071) and without: the changelog topic is created by a broker or the application."""
    source, target = f"{protocol}-events", f"{protocol}-counts"
    for topic in (source, target):
        cluster.create(topic, 2, 2)
    keys = Counter({"a": 30, "b": 20, "c": 1})
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for key in keys.elements():
        producer.produce(source, b"event", key.encode())
    assert producer.flush(PATIENCE_S) == 0
    application = count_by_key(tmp_path, cluster.bootstrap, f"{protocol}-application", protocol, source, target)
    application.launch()
    try:
        found = read_counts(cluster, target, keys)
        groups = run_tool_of_kafka_4(
            "org.apache.kafka.tools.GroupsCommand", "--bootstrap-server", cluster.bootstrap, "--list"
        )
    finally:
        application.terminate()

    assert found == keys
    listed = {line.split()[0]: line.split()[1].lower() for line in groups.stdout.splitlines() if line.strip()}
    assert listed[f"{protocol}-application"] == protocol
    assert f"{protocol}-application-counts-changelog" in cluster.topics()


def read_counts(cluster: StewardCluster, topic: str, until: Counter[str]) -> Counter[str]:
    """Read committed counts of keys until they are these, or until there is nothing new."""
    settings = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings})
    consumer.subscribe([topic])
    counts: Counter[str] = Counter()
    while counts != until and (message := consumer.poll(PATIENCE_S)) is not None:
        assert message.error() is None
        counts[message.key().decode()] = int(message.value())
    consumer.close()
    return counts
