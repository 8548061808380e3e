"""Starts of the light broker and Kafka: with many partitions, after kill -9 with a log to check, in ZooKeeper mode; memory of idle connections.

Kafka runs twice, as in `light_broker`; in each row the peer is the one of the two that is better. A start ends with the first acknowledged record of the
topic. After kill -9 nothing of the log was written to the disk by the broker, so that it checks all of it. In ZooKeeper mode the peer is Kafka 3.9,
and ZooKeeper and the controller run already; Kafka's controller is its broker. It runs twice there: as the lab starts it, with an archive of its
classes, and as Kafka's start script does.
"""

import contextlib
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.broker_load import create_topic, delete_topic, produce, produce_one
from bench.harness import Better, Effort, Row, duration, limited, promised, side_of
from bench.light_broker.data_path import BATCHES, OURS, PEERS, Broker, light_and_kafka
from kafka_wire import ApiKey, codec
from lab.frames import receive_frame, send_frame
from lab.peers.cluster import kafka_cluster
from lab.peers.kafka import KafkaBroker
from lab.peers.light_broker import ZooKeeperLightBroker
from lab.peers.steward import StewardController
from lab.processes.folder import lab_folder
from lab.processes.process import Process

NAME = "light-broker-start"
ABOUT = "starts of the light broker, and memory of its idle connections, compared with Kafka (about 6 minutes)"

RUNS = 3
PARTITIONS, QUICK_PARTITIONS = 1_000, 50
CHECKED_BYTES, QUICK_CHECKED_BYTES = 1024**3, 16 * 1024**2
CONNECTIONS, QUICK_CONNECTIONS = 1_000, 100
LIGHT = 2
ZOOKEEPER_PEER = "Kafka 3.9, -Xmx96m, C1, class archive"
SCRIPT_PEER = "Kafka 3.9 with its script's options"
SCRIPT_OPTIONS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
"""Of kafka-server-start.sh and kafka-run-class.sh."""
ZOOKEEPER_AT_LEAST, START_S = 5.0, 1.0
CLEAN, CHECKED = "many", "checked"
AT_LEAST = 1.0
CONNECTION_KIB = 16.0
TIMEOUT_S = 60.0
SETTLE_S = 2.0
"""After the connections: memory that is freed by then is not theirs."""
VERSION = 3
"""Of ApiVersions."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows when all brokers have run."""
    runs = effort.runs(RUNS)
    partitions = QUICK_PARTITIONS if effort.quick else PARTITIONS
    checked_bytes = QUICK_CHECKED_BYTES if effort.quick else CHECKED_BYTES
    connections = QUICK_CONNECTIONS if effort.quick else CONNECTIONS
    clean: dict[str, list[float]] = defaultdict(list)
    checked: dict[str, list[float]] = defaultdict(list)
    with light_and_kafka() as brokers:
        kib = {name: _connection_kib(broker, connections) for name, broker in brokers.items()}
        for broker in brokers.values():
            create_topic(broker.bootstrap, CLEAN, partitions)
        for _ in range(runs):
            for name, broker in brokers.items():
                clean[name].append(_seconds(broker, CLEAN, broker.process.terminate))
                checked[name].append(_checked_s(broker, checked_bytes))
    what = "from exec to the first acknowledged record"
    yield _start_row("clean", f"{what}, after SIGTERM, with {partitions:,} partitions", clean)
    yield _start_row("checked", f"{what}, after kill -9, with {checked_bytes >> 20:,} MiB to check", checked)
    yield from _connection_rows(kib, connections)
    yield from _zookeeper_rows(runs)


def _zookeeper_rows(runs: int) -> Iterator[Row]:
    """Restart a broker of a cluster in ZooKeeper mode."""
    light_s: list[float] = []
    archived_s: list[float] = []
    script_s: list[float] = []
    with (
        lab_folder() as folder,
        kafka_cluster((1,)) as kafka,
        kafka_cluster((1,), start=False) as cluster,
        contextlib.ExitStack() as stack,
    ):
        controller = StewardController(cluster.zookeeper_connect, folder)
        stack.callback(controller.close)
        controller.start()
        light = ZooKeeperLightBroker(LIGHT, cluster.zookeeper, folder)
        stack.callback(light.kill)
        light.start()
        stock = kafka.broker(1)
        archived = stock.process.command
        # A light broker answers requests for the controller with NOT_CONTROLLER.
        for address in (controller.address(), stock.address()):
            create_topic(address, CLEAN)
        for _ in range(runs):
            light_s.append(_registered_s(light, light))
            archived_s.append(_registered_s(stock, stock.process))
            stock.process.command = as_its_script_does(archived)
            script_s.append(_registered_s(stock, stock.process))
            stock.process.command = archived
    what = "from exec to the first acknowledged record, ZooKeeper already there"
    row = duration(f"{NAME}.zookeeper", what, ZOOKEEPER_PEER, (light_s, archived_s))
    yield promised(row, "P13", ZOOKEEPER_AT_LEAST)
    yield duration(f"{NAME}.zookeeper_script", what, SCRIPT_PEER, (light_s, script_s))
    yield limited(f"{NAME}.zookeeper_limit", what, "s", side_of(light_s), START_S, "P13")


def _registered_s(broker: ZooKeeperLightBroker | KafkaBroker, process: Process) -> float:
    process.terminate()
    broker.wait_until_deregistered()
    started = time.perf_counter()
    broker.launch()
    produce_one(broker.address(), CLEAN)
    return time.perf_counter() - started


def as_its_script_does(command: Sequence[str]) -> list[str]:
    """Return the command of a broker with the options of Kafka's start script instead of the lab's."""
    java, *options = command
    return [java, *SCRIPT_OPTIONS, *(option for option in options if not option.startswith("-X"))]


def _start_row(figure: str, what: str, seconds: Mapping[str, list[float]]) -> Row:
    peer = min(PEERS, key=lambda name: side_of(seconds[name]).median)
    return promised(duration(f"{NAME}.{figure}", what, peer, (seconds[OURS], seconds[peer])), "P13", AT_LEAST)


def _seconds(broker: Broker, topic: str, end: Callable[[], object]) -> float:
    end()
    started = time.perf_counter()
    broker.process.launch()
    produce_one(broker.bootstrap, topic)
    return time.perf_counter() - started


def _checked_s(broker: Broker, total_bytes: int) -> float:
    create_topic(broker.bootstrap, CHECKED)
    produce(broker.bootstrap, CHECKED, max(BATCHES.values()), total_bytes)
    found = _seconds(broker, CHECKED, broker.process.kill)
    delete_topic(broker.bootstrap, CHECKED)
    return found


def _connection_rows(kib: Mapping[str, float], connections: int) -> Iterator[Row]:
    what = f"resident memory of each of {connections:,} connections that have sent ApiVersions and are idle"
    ours = side_of([kib[OURS]])
    yield limited(f"{NAME}.connection", what, "KiB", ours, CONNECTION_KIB, "P13")
    peer = min(PEERS, key=lambda name: kib[name])
    yield Row(f"{NAME}.connection_of_kafka", what, peer, "KiB", Better.LOWER, ours, side_of([kib[peer]]), 1)


def _connection_kib(broker: Broker, count: int) -> float:
    host, _, port = broker.bootstrap.rpartition(":")
    request = codec.encode_request(ApiKey.API_VERSIONS, VERSION, 1, "bench", {})
    before = broker.process.resident_bytes
    connections = []
    try:
        for _ in range(count):
            connection = socket.create_connection((host, int(port)), TIMEOUT_S)
            connections.append(connection)
            send_frame(connection, request)
            receive_frame(connection)
        time.sleep(SETTLE_S)
        return max(broker.process.resident_bytes - before, 0) / 1024 / count
    finally:
        for connection in connections:
            connection.close()
