"""Load of brokers by one librdkafka client: records of 1 KiB, produced at full speed or at a steady rate, and read from the page cache."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.free_memory import occupy_free_memory

PARTITIONS = 4
VALUE_BYTES = 1024
VALUES = 64
"""Different random values: more would only fill the processor's caches."""
MAX_BATCH_BYTES = 1_048_588
"""Kafka's max.message.bytes."""
QUEUED_RECORDS = 100_000
"""Records that wait in the client: it always has a full batch for each partition."""
TIMEOUT_S = 120.0
"""Of requests, and of the last records of a run: some hundred times what a quiet machine takes."""
RECORDS_AT_ONCE = 10_000
FETCH_BACKOFF_MS = 10
"""Pause of a fetch while librdkafka's queue of 64 MB is full. With its default of 1 s the client pauses when a broker is faster."""
RETRY_MS = 10
"""Time between two attempts to connect to a broker that is starting."""
LONG_RUN_BYTES = 32 * 1024**2
"""Of a run that is worth the filling of the free memory, which takes up to a minute the first time."""
SETTLED_S = 0.5
DELETION_S = 30.0
ERRORS = 3
"""Level of syslog: librdkafka reports at a lower one each Admin client that ends."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Time of a run, and the processor time of the broker in it, both for `total_bytes` of values."""

    total_bytes: int
    seconds: float
    cpu_s: float

    @property
    def mb_per_s(self) -> float:
        """Return megabytes a second."""
        return self.total_bytes / 1e6 / self.seconds

    @property
    def cpu_s_per_gb(self) -> float:
        """Return processor seconds of the broker a gigabyte."""
        return self.cpu_s / (self.total_bytes / 1e9)


def measured(pids: Sequence[int], total_bytes: int, work: Callable[[], None]) -> Spent:
    """Do the work, which makes the processes of brokers handle `total_bytes`.

    It begins when the disk has what earlier runs left in memory: writing that takes a part of both cores, in some runs and not in others.
    No memory is free then, for the same reason (`free_memory`), and brokers and the kernel have ended the work of the run before, such as a
    topic's creation and the end of connections. A short run does without.
    """
    os.sync()
    if total_bytes >= LONG_RUN_BYTES:
        occupy_free_memory()
        time.sleep(SETTLED_S)
    cpu_s, started = sum(map(cpu_seconds, pids)), time.perf_counter()
    work()
    return Spent(total_bytes, time.perf_counter() - started, sum(map(cpu_seconds, pids)) - cpu_s)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process so far, of the user and of the kernel (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def create_topic(
    bootstrap: str,
    topic: str,
    partitions: int = PARTITIONS,
    replicas: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic."""
    admin, new = _admin(bootstrap), NewTopic(topic, partitions, replicas, config=dict(config or {}))
    admin.create_topics([new], operation_timeout=TIMEOUT_S)[topic].result(TIMEOUT_S)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic, so that its files do not stay in the page cache."""
    admin = _admin(bootstrap)
    admin.delete_topics([topic], operation_timeout=DELETION_S)[topic].result(TIMEOUT_S)


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": ERRORS})


def produce(
    bootstrap: str,
    topic: str,
    batch_bytes: int,
    total_bytes: int,
    acks: int | str = 1,
    *,
    settings: Mapping[str, str] | None = None,
    values: Sequence[bytes] | None = None,
) -> None:
    """Produce records in full batches to all partitions in turn, and wait until all are acknowledged.

    `settings` are further ones of the client. `values` have 1 KiB each and are random by default.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "batch.size": batch_bytes,
            "message.max.bytes": MAX_BATCH_BYTES,
            "linger.ms": 50,
            "queue.buffering.max.messages": QUEUED_RECORDS,
            **(settings or {}),
        }
    )
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    values = values or [os.urandom(VALUE_BYTES) for _ in range(VALUES)]
    for index in range(total_bytes // VALUE_BYTES):
        while len(producer) >= QUEUED_RECORDS:
            producer.poll(0.01)
        producer.produce(topic, values[index % len(values)], partition=index % PARTITIONS, on_delivery=delivered)
        if index % VALUES == 0:
            producer.poll(0)
    left = producer.flush(TIMEOUT_S)
    if left or failed:
        raise KafkaException(failed[0] if failed else f"{left} records were not acknowledged in {TIMEOUT_S:g} s")


def latencies_s(bootstrap: str, topic: str, records: int, rate_per_s: int) -> list[float]:
    """Produce records one by one at a steady rate with acks=all; return the seconds from each call to its acknowledgement."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    found: list[float] = []
    failed: list[KafkaError] = []

    def delivery(started: float) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                found.append(time.perf_counter() - started)
            else:
                failed.append(error)

        return delivered

    value = os.urandom(VALUE_BYTES)
    for partition in range(PARTITIONS):  # The client then knows the leaders, and has connections to them.
        producer.produce(topic, value, partition=partition)
    producer.flush(TIMEOUT_S)
    begin = time.perf_counter()
    for index in range(records):
        while (left_s := begin + index / rate_per_s - time.perf_counter()) > 0:
            producer.poll(left_s)
        on_delivery = delivery(time.perf_counter())
        producer.produce(topic, value, partition=index % PARTITIONS, on_delivery=on_delivery)
    left = producer.flush(TIMEOUT_S)
    if left or failed:
        raise KafkaException(failed[0] if failed else f"{left} records were not acknowledged in {TIMEOUT_S:g} s")
    return found


def produce_one(bootstrap: str, topic: str) -> None:
    """Produce one record as soon as the broker takes it."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": 1,
            "reconnect.backoff.ms": RETRY_MS,
            "reconnect.backoff.max.ms": RETRY_MS,
            "retry.backoff.ms": RETRY_MS,
            "retry.backoff.max.ms": RETRY_MS,
            "topic.metadata.refresh.fast.interval.ms": RETRY_MS,
            "linger.ms": 0,
            "log_level": 0,  # a broker that is starting refuses connections
        }
    )
    producer.produce(topic, b"first", partition=0)
    if left := producer.flush(TIMEOUT_S):
        raise KafkaException(f"{left} record was not acknowledged in {TIMEOUT_S:g} s")


def consume(bootstrap: str, topic: str, total_bytes: int) -> None:
    """Read all records of a topic that has `total_bytes` of values."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "enable.auto.commit": False,
        "fetch.queue.backoff.ms": FETCH_BACKOFF_MS,
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        missing, deadline = total_bytes // VALUE_BYTES, time.monotonic() + TIMEOUT_S
        while missing > 0:
            if time.monotonic() > deadline:
                raise KafkaException(f"{missing} records were not read in {TIMEOUT_S:g} s")
            missing -= sum(1 for _ in _records(consumer.consume(RECORDS_AT_ONCE, 1.0)))
    finally:
        consumer.close()


def _records(messages: list[Message]) -> Iterator[Message]:
    for message in messages:
        if (error := message.error()) is None:
            yield message
        else:
            raise KafkaException(error)
