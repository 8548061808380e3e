"""Groups of real clients and Kafka's tools on a standalone broker, which is a process of its own."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer

from lab.peers.kafka_tools import kafka_dump_log, run_tool_of_kafka_4
from lab.peers.light_broker import LightBroker, light_broker
from lab.processes.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 4
RECORDS = 40
TIMEOUT_S = 30.0

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def broker() -> Iterator[LightBroker]:
    """A broker with a topic of 40 records in four partitions."""
    with light_broker({"group.min.session.timeout.ms": "1000"}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
            future.result(TIMEOUT_S)
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for number in range(RECORDS):
            producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
        assert producer.flush(TIMEOUT_S) == 0
        yield running


@pytest.fixture
def consumers(broker: LightBroker) -> Iterator[Callable[..., Consumer]]:
    """A function that returns a consumer of librdkafka that has joined a group; it leaves at the end."""
    with ExitStack() as open_consumers:

        def join(group_id: str, revoked: list[int] | None = None, **settings: object) -> Consumer:
            config = {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 100,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
            consumer = open_consumers.enter_context(closing(Consumer(config)))
            consumer.subscribe(
                [TOPIC],
                on_revoke=lambda _, lost: (
                    None if revoked is None else revoked.extend(partition.partition for partition in lost)
                ),
            )
            return consumer

        yield join


def consume(*consumers: Consumer, until: Callable[[], bool]) -> list[str]:
    """Poll consumers until a condition holds, and return the values that they got."""
    values: list[str] = []

    def polled() -> bool:
        for consumer in consumers:
            for message in consumer.consume(RECORDS, 0.02):
                assert message.error() is None, message.error()
                values.append((message.value() or b"").decode())
        return until()

    wait_until(polled, timeout_s=TIMEOUT_S, what="consumers of a group", interval_s=0.0)
    return values


def partitions_of(consumer: Consumer) -> set[int]:
    """Return the partitions that a consumer is assigned."""
    return {partition.partition for partition in consumer.assignment()}


def groups_command(broker: LightBroker, *arguments: str) -> str:
    """Return the output of kafka-consumer-groups."""
    done = run_tool_of_kafka_4(GROUPS_COMMAND, "--bootstrap-server", broker.bootstrap, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.java
@pytest.mark.shows("F63")
def test_java_consumer_and_kafka_consumer_groups(broker: LightBroker) -> None:
    """Consume, describe, reset and delete, with the tools of Kafka 4.3."""
    consumed = run_tool_of_kafka_4(
        CONSOLE_CONSUMER,
        "--bootstrap-server",
        broker.bootstrap,
        "--topic",
        TOPIC,
        "--group",
        "java",
        "--from-beginning",
        "--max-messages",
        str(RECORDS),
    )
    described = groups_command(broker, "--describe", "--group", "java")
    reset = groups_command(
        broker, "--reset-offsets", "--group", "java", "--topic", f"{TOPIC}:1", "--to-offset", "3", "--execute"
    )
    deleted = groups_command(broker, "--delete", "--group", "java")

    assert sorted(map(int, consumed.stdout.split())) == list(range(RECORDS)), consumed.stderr
    rows = re.findall(rf"java\s+{TOPIC}\s+(\d)\s+(\d+)\s+(\d+)\s+(\d+)", described)
    assert sorted(rows) == [(str(partition), "10", "10", "0") for partition in range(PARTITIONS)]
    assert re.search(rf"java\s+{TOPIC}\s+1\s+3", reset)
    assert "successful" in deleted


@pytest.mark.slow
@pytest.mark.shows("F63")
def test_kafka_python_goes_on_where_its_group_was(broker: LightBroker) -> None:
    """An independent client: one member consumes, commits and leaves, the next one has nothing left to read."""

    def consumed() -> tuple[int, list[int]]:
        """Return the number of records that a member got, and its positions once it is assigned all partitions."""
        consumer = KafkaConsumer(
            TOPIC,
            bootstrap_servers=broker.bootstrap,
            group_id="python",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        count = 0
        positions: list[int] = []

        def polled() -> bool:
            nonlocal count, positions
            count += sum(len(records) for records in consumer.poll(timeout_ms=200).values())
            positions = [consumer.position(partition) for partition in sorted(consumer.assignment())]
            return positions == [RECORDS // PARTITIONS] * PARTITIONS

        try:
            # Without the topic's metadata at its first assignment this client assigns nothing, and joins once more.
            wait_until(
                lambda: bool(consumer.partitions_for_topic(TOPIC)), timeout_s=TIMEOUT_S, what="the topic is known"
            )
            wait_until(polled, timeout_s=TIMEOUT_S, what="all positions at the end", interval_s=0.0)
            consumer.commit()
        finally:
            consumer.close()  # Otherwise its thread would go on logging in other tests.
        return count, positions

    first, last = consumed(), consumed()

    assert first == (RECORDS, [RECORDS // PARTITIONS] * PARTITIONS)
    assert last == (0, [RECORDS // PARTITIONS] * PARTITIONS)


@pytest.mark.slow
@pytest.mark.shows("F63")
def test_cooperative_members_keep_what_they_need_not_give_up(
    broker: LightBroker, consumers: Callable[..., Consumer]
) -> None:
    """KIP-429: a second member takes half of the partitions, and the first keeps the others throughout."""
    kept: set[int] = set(range(PARTITIONS))
    first = consumers("cooperative", partition_assignment_strategy="cooperative-sticky")
    values = consume(first, until=lambda: len(partitions_of(first)) == PARTITIONS)
    second = consumers("cooperative", partition_assignment_strategy="cooperative-sticky")

    def both_have_half() -> bool:
        nonlocal kept
        kept &= partitions_of(first)
        return len(partitions_of(first)) == len(partitions_of(second)) == PARTITIONS // 2

    values += consume(first, second, until=both_have_half)

    assert kept == partitions_of(first)
    assert partitions_of(first) | partitions_of(second) == set(range(PARTITIONS))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    described = admin.describe_consumer_groups(["cooperative"])["cooperative"].result(TIMEOUT_S)
    assert described.partition_assignor == "cooperative-sticky"


def test_static_member_comes_back_without_a_rebalance(consumers: Callable[..., Consumer]) -> None:
    """KIP-345: it gets the partitions that it had, and the other member keeps its own."""
    revoked: list[int] = []
    first = consumers("static", revoked, group_instance_id="one")
    second = consumers("static", group_instance_id="two")
    consume(first, second, until=lambda: len(partitions_of(first)) == len(partitions_of(second)) == 2)
    before, others = partitions_of(second), partitions_of(first)
    revoked.clear()
    second.close()

    again = consumers("static", group_instance_id="two")
    consume(first, again, until=lambda: len(partitions_of(again)) == 2)

    assert (partitions_of(again), partitions_of(first)) == (before, others)
    assert revoked == []


@pytest.mark.slow
@pytest.mark.shows("B7")
def test_offsets_survive_a_crash_and_kafka_reads_them(broker: LightBroker, consumers: Callable[..., Consumer]) -> None:
    """B7: an acknowledged commit is there after kill -9; DumpLogSegments decodes every record of `__consumer_offsets`."""
    consumer = consumers("crash")
    consume(consumer, until=lambda: len(partitions_of(consumer)) == PARTITIONS)
    offsets = [TopicPartition(TOPIC, partition, 5 + partition) for partition in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)

    broker.kill()
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    committed = consumer.committed(offsets, timeout=TIMEOUT_S)
    files = sorted(str(path) for path in broker.data_folder.glob("__consumer_offsets-*/*.log"))
    dumped = kafka_dump_log("--offsets-decoder", "--print-data-log", "--files", ",".join(files))

    assert [partition.offset for partition in committed] == [5, 6, 7, 8]
    assert "crash" in {group.group_id for group in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    assert dumped.returncode == 0, dumped.stderr
    assert '"group":"crash"' in dumped.stdout
    assert '"offset":8' in dumped.stdout
    assert "Could not" not in dumped.stdout + dumped.stderr
