"""Time for which the light broker's event loop keeps a client waiting while a large topic is compacted and a cold consumer reads it.

A process of its own sends ApiVersions every few milliseconds, which the loop answers at once; the time until the answer is the stall, with what the two cores
of this machine add: the compaction, the consumer and the probe want them as well. Before the consumer begins, the topic's files are
removed from the page cache.
"""

import multiprocessing
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from bench.broker_load import create_topic
from bench.harness import Effort, Row, limited, side_of
from kafka_wire import ApiKey, codec
from lab.frames import receive_frame, send_frame
from lab.peers.light_broker import LightBroker, light_broker
from lab.processes.waiting import wait_until

NAME = "light-broker-stall"
ABOUT = "stalls of the light broker while a topic of 10 GiB is compacted and a cold consumer reads it (about 8 minutes)"

TOPIC, PARTITIONS = "compacted", 4
TOPIC_BYTES, QUICK_TOPIC_BYTES = 10 * 1024**3, 64 * 1024**2
VALUE_BYTES, VALUES = 1024, 64
RECORDS_OF_A_KEY = 20
"""Compaction leaves one of them."""
SEGMENT_BYTES, QUICK_SEGMENT_BYTES = 256 * 1024**2, 4 * 1024**2
QUEUED_RECORDS, RECORDS_AT_ONCE = 100_000, 10_000
PROBE_S = 0.005
PERCENTILE, LIMIT_MS = 0.999, 50.0
TIMEOUT_S = 120.0
READ_TIMEOUT_S, COMPACTION_TIMEOUT_S = 600.0, 1_200.0
VERSION = 3
"""Of ApiVersions."""
RATIO = "min.cleanable.dirty.ratio"
ERRORS = 3
"""Level of syslog."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the row when the topic is read, and a part of it is compacted."""
    total_bytes = QUICK_TOPIC_BYTES if effort.quick else TOPIC_BYTES
    with light_broker({"log.cleaner.backoff.ms": "500"}) as broker:
        _create(broker, QUICK_SEGMENT_BYTES if effort.quick else SEGMENT_BYTES)
        _produce(broker, total_bytes)
        before = _log_bytes(broker)
        _drop_from_page_cache(broker)
        _begin_compaction(broker)
        waits_ms, read_s = _probed_read(broker)
        compacted_s = wait_until(
            lambda: _log_bytes(broker) < before, timeout_s=COMPACTION_TIMEOUT_S, what="a log is compacted"
        )
    what = f"from a request to its answer, while {total_bytes >> 20:,} MiB are compacted and read from the disk: {PERCENTILE:.1%} of the requests"
    row = limited(f"{NAME}.p999", what, "ms", side_of([waits_ms[int(len(waits_ms) * PERCENTILE)]]), LIMIT_MS, "P13")
    also = {"median, ms": waits_ms[len(waits_ms) // 2], "longest, ms": waits_ms[-1], "requests": float(len(waits_ms))}
    yield replace(row, also={**also, "read, s": read_s, "first compacted log after the read, s": compacted_s})


def _create(broker: LightBroker, segment_bytes: int) -> None:
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": str(segment_bytes),
        "min.cleanable.dirty.ratio": "1.0",
    }
    create_topic(broker.bootstrap, TOPIC, PARTITIONS, config=config)


def _produce(broker: LightBroker, total_bytes: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, "batch.size": 1_000_000})
    values = [os.urandom(VALUE_BYTES) for _ in range(VALUES)]
    records = total_bytes // VALUE_BYTES
    for index in range(records):
        while len(producer) >= QUEUED_RECORDS:
            producer.poll(0.01)
        key = (index % (records // RECORDS_OF_A_KEY)).to_bytes(4, "big")
        producer.produce(TOPIC, values[index % VALUES], key, partition=index % PARTITIONS)
    if left := producer.flush(TIMEOUT_S):
        raise KafkaException(f"{left} records were not acknowledged in {TIMEOUT_S:g} s")


def _logs(broker: LightBroker) -> list[Path]:
    return [
        path for partition in range(PARTITIONS) for path in (broker.data_folder / f"{TOPIC}-{partition}").glob("*.log")
    ]


def _log_bytes(broker: LightBroker) -> int:
    return sum(path.stat().st_size for path in _logs(broker))


def _drop_from_page_cache(broker: LightBroker) -> None:
    for path in _logs(broker):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def _begin_compaction(broker: LightBroker) -> None:
    entry = ConfigEntry(RATIO, "0.01", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": ERRORS})
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def _probed_read(broker: LightBroker) -> tuple[list[float], float]:
    """Read the topic in this process while another one probes; return the sorted waits in ms, and the seconds of the read."""
    context = multiprocessing.get_context("spawn")
    ended, (receiving, sending) = context.Event(), context.Pipe(duplex=False)
    probe = context.Process(target=_probe, args=(broker.bootstrap, ended, sending), daemon=True)
    probe.start()
    receiving.recv()  # It is connected.
    started = time.perf_counter()
    _read(broker)
    read_s = time.perf_counter() - started
    ended.set()
    waits_ms: list[float] = receiving.recv()
    probe.join(TIMEOUT_S)
    return sorted(waits_ms), read_s


def _probe(bootstrap: str, ended: Event, sending: Connection) -> None:
    """Send requests until the end, then the waits."""
    host, _, port = bootstrap.rpartition(":")
    request = codec.encode_request(ApiKey.API_VERSIONS, VERSION, 1, "probe", {})
    waits_ms = []
    with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sending.send(None)
        while not ended.is_set():
            started = time.perf_counter()
            send_frame(connection, request)
            receive_frame(connection)
            waits_ms.append((time.perf_counter() - started) * 1000)
            time.sleep(PROBE_S)
    sending.send(waits_ms)


def _read(broker: LightBroker) -> None:
    """Read all partitions to their ends."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "cold",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    deadline, unread = time.monotonic() + READ_TIMEOUT_S, set(range(PARTITIONS))
    try:
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        while unread:
            if time.monotonic() > deadline:
                raise KafkaException(f"partitions {sorted(unread)} were not read in {READ_TIMEOUT_S:g} s")
            for message in consumer.consume(RECORDS_AT_ONCE, 1.0):
                if (error := message.error()) is None:
                    continue
                if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library's public constant
                    raise KafkaException(error)
                unread.discard(message.partition())
    finally:
        consumer.close()
