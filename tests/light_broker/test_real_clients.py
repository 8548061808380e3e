"""Real clients that produce to a light broker and consume from it, in a process of its own.

Each client reads its own topic by assigned partitions, without a group.
"""

import asyncio
from collections.abc import Iterator

import pytest

from lab.peers.kafka_tools import run_tool, run_tool_of_kafka_4
from lab.peers.light_broker import LightBroker, light_broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 300
TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[LightBroker]:
    """A standalone light broker, which creates topics when clients ask for them."""
    with light_broker({"num.partitions": "1"}) as started:
        yield started


def produced(broker: LightBroker, topic: str, **settings: object) -> list[int]:
    """Produce COUNT records by librdkafka, and return their offsets."""
    from confluent_kafka import Producer

    delivered: list[int] = []

    def note(error: object, message: object) -> None:
        assert error is None
        delivered.append(message.offset())  # type: ignore[attr-defined]

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "acks": "all", **settings})
    for number in range(COUNT):
        producer.produce(topic, f"{topic}-{number}".encode(), on_delivery=note)
    assert producer.flush(TIMEOUT_S) == 0
    return delivered


def consumed(broker: LightBroker, topic: str, *, count: int = COUNT, **settings: object) -> list[str]:
    """Consume records by librdkafka from the start of partition 0."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False, **settings}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages = consumer.consume(count, timeout=TIMEOUT_S)
    consumer.close()
    assert [message.error() for message in messages if message.error()] == []
    return [message.value().decode() for message in messages]


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_produces_and_consumes_with_each_codec(broker: LightBroker, codec: str) -> None:
    """Batches are checked when they are appended, and consumed as they were sent."""
    topic = f"rdkafka-{codec}"

    assert produced(broker, topic, **{"compression.type": codec}) == list(range(COUNT))
    assert consumed(broker, topic) == [f"{topic}-{number}" for number in range(COUNT)]


@pytest.mark.slow
def test_librdkafka_produces_idempotently_and_consumes_committed_records(broker: LightBroker) -> None:
    """KIP-98."""
    topic = "rdkafka-idempotent"

    assert produced(broker, topic, **{"enable.idempotence": True}) == list(range(COUNT))
    assert consumed(broker, topic, **{"isolation.level": "read_committed"}) == [
        f"{topic}-{number}" for number in range(COUNT)
    ]


@pytest.mark.slow
def test_batches_that_are_larger_than_a_buffer_are_produced_and_consumed(broker: LightBroker) -> None:
    """Large fields of a request are views of its frame."""
    from confluent_kafka import Producer

    topic, value = "rdkafka-large", "x" * 300_000
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 50})
    for _ in range(5):
        producer.produce(topic, value.encode())

    assert producer.flush(TIMEOUT_S) == 0
    assert consumed(broker, topic, count=5) == [value] * 5


def test_librdkafka_finds_offsets_and_deletes_records(broker: LightBroker) -> None:
    """ListOffsets, DeleteRecords."""
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import AdminClient

    topic = "rdkafka-offsets"
    produced(broker, topic)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, 1)], timeout=TIMEOUT_S)
    assert found.offset == 0

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 100)]).values():
        assert future.result(TIMEOUT_S).low_watermark == 100
    watermarks = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S)
    consumer.close()

    assert watermarks == (100, COUNT)


def test_kafka_python_produces_and_consumes(broker: LightBroker) -> None:
    """With idempotence, which is its default."""
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    partition = TopicPartition("kafka-python", 0)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, compression_type="gzip", acks="all")
    sent = [producer.send(partition.topic, str(number).encode()) for number in range(COUNT)]
    offsets = [delivery.get(TIMEOUT_S).offset for delivery in sent]
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    consumer.assign([partition])
    values = [int(next(consumer).value) for _ in range(COUNT)]
    ends = (consumer.beginning_offsets([partition])[partition], consumer.end_offsets([partition])[partition])
    consumer.close()

    assert (offsets, values, ends) == (list(range(COUNT)), list(range(COUNT)), (0, COUNT))


@pytest.mark.slow
def test_a_broker_that_is_stopped_marks_its_folder_as_clean() -> None:
    """SIGTERM, with a record that is only in memory: Kafka skips the recovery of such a folder (LogManager.shutdown, CleanShutdownFileHandler)."""
    with light_broker({"num.partitions": "1"}) as stopped:
        assert produced(stopped, "clean") == list(range(COUNT))
        mark = stopped.data_folder / ".kafka_cleanshutdown"
        assert not mark.exists()

        assert stopped.terminate() == 0
        assert mark.read_text() == '{"version":0,"brokerEpoch":1}'

        stopped.start()
        assert not mark.exists()


def test_transactional_producers_of_librdkafka_and_kafka_python_end_at_once_with_a_message(broker: LightBroker) -> None:
    """Not after the timeout of init_transactions: its error is not retriable."""
    from confluent_kafka import KafkaException, Producer
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    librdkafka = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"})
    with pytest.raises(KafkaException, match=r"This broker has no transactions\. Remove transactional\.id") as raised:
        librdkafka.init_transactions(TIMEOUT_S)
    kafka_python = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="t")
    with pytest.raises(KafkaError, match=r"TransactionalIdAuthorizationFailed|InvalidRequestError"):
        kafka_python.init_transactions()
    kafka_python.close()

    assert raised.value.args[0].fatal()


async def test_a_transactional_producer_of_aiokafka_ends_at_once(broker: LightBroker) -> None:
    """It starts by asking for the coordinator."""
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError

    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="t")
    async with asyncio.timeout(TIMEOUT_S):
        with pytest.raises(KafkaError):
            await producer.start()
        await producer.stop()


async def test_aiokafka_produces_and_consumes(broker: LightBroker) -> None:
    """With idempotence."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    partition = TopicPartition("aiokafka", 0)
    async with asyncio.timeout(TIMEOUT_S):
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True) as producer:
            sent = [await producer.send(partition.topic, str(number).encode()) for number in range(COUNT)]
            offsets = [(await delivery).offset for delivery in sent]
        async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([partition])
            values = [int((await consumer.getone()).value) for _ in range(COUNT)]

    assert (offsets, values) == (list(range(COUNT)), list(range(COUNT)))


@pytest.mark.kafka
def test_kafkas_console_clients_produce_and_consume(broker: LightBroker) -> None:
    """Kafka 4.3 produces and Kafka 3.9 consumes."""
    lines = [f"line {number}" for number in range(50)]
    to = ("--bootstrap-server", broker.bootstrap, "--topic", "console")
    producing = run_tool_of_kafka_4(
        "org.apache.kafka.tools.ConsoleProducer", *to, "--compression-codec", "lz4", stdin="\n".join(lines) + "\n"
    )
    consuming = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *to,
        *("--partition", "0", "--offset", "earliest", "--max-messages", "50", "--timeout-ms", "30000"),
        *("--isolation-level", "read_committed"),
    )

    assert (producing.returncode, producing.stderr) == (0, "")
    assert consuming.stdout.splitlines() == lines


@pytest.mark.kafka
def test_kafkas_performance_clients_produce_and_consume(broker: LightBroker) -> None:
    """Kafka 3.9 produces batches of zstd with acks=all, and Kafka 4.3 reads the offsets of each partition."""
    topic = "performance"
    producing = run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "2000", "--record-size", "1000", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={broker.bootstrap}", "acks=all", "compression.type=zstd"),
    )
    offsets = run_tool_of_kafka_4(
        "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", broker.bootstrap, "--topic", topic
    )

    assert "2000 records sent" in producing.stdout
    assert offsets.stdout.splitlines() == [f"{topic}:0:2000"]
