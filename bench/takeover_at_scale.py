"""`/controller` is deleted over 1,000 to 200,000 partitions: when has the last broker been told? Ours against native (P3).

The same znodes in one ZooKeeper, and brokers that are sockets (`socket_brokers`). Each controller is alone when it is measured, so
it comes back itself: what is timed is to notice, to take the place, to read everything, to decide and to tell. Each side takes
over once before it counts, so that Java's compiler knows the way.
"""

import contextlib
import json
import time
import uuid
from collections.abc import Iterator

from kazoo.client import KazooClient

from bench.harness import Effort, Row, duration
from bench.layout import FIRST_COMPILER_ONLY, LEADERS_STAY, PATIENCE_S, SETTINGS
from bench.socket_brokers import SocketBrokers
from kafka_zookeeper import paths
from kafka_zookeeper.formats.partition_states import PartitionState, encode_partition_state
from kafka_zookeeper.formats.topics import TopicAssignment, encode_topic
from lab.folder import lab_folder
from lab.kafka import KafkaBroker
from lab.steward import StewardController
from lab.waiting import wait_until
from lab.zookeeper import ZooKeeperServer

NAME = "takeover_at_scale"
ABOUT = "/controller deleted over up to 200,000 partitions, against a native controller (many minutes)"

SIZES = (1_000, 10_000, 50_000, 200_000)
QUICK_SIZES = (1_000,)
ROUNDS = 3
PEER = "Kafka 3.9's controller, alone, the same znodes and sockets"
BROKERS = tuple(range(1, 11))
NATIVE = 99
REPLICATION_FACTOR = 3
PARTITIONS_OF_TOPIC = 100
CHROOT = "/large"
CONTROLLER = f"{CHROOT}{paths.CONTROLLER}"
QUIET_S = 2.0
"""After so long without a LeaderAndIsr the brokers have been told; what they were told is then counted."""
OPERATIONS = 400
ZOOKEEPER_HEAP = "1g"
NATIVE_HEAP = "2g"


def measure(effort: Effort) -> Iterator[Row]:
    """Yield a row for each size."""
    for partitions in QUICK_SIZES if effort.quick else SIZES:
        with lab_folder() as folder, contextlib.ExitStack() as stack:
            zookeeper = ZooKeeperServer(folder, heap=ZOOKEEPER_HEAP)
            stack.callback(zookeeper.close)
            zookeeper.start()
            write_topics(zookeeper.client, partitions)
            brokers = SocketBrokers(BROKERS, zookeeper.client, CHROOT)
            brokers.start()
            stack.callback(brokers.close)
            stage = Stage(zookeeper.client, brokers, partitions * REPLICATION_FACTOR)
            controller = StewardController(zookeeper.connect(CHROOT), folder, arguments=LEADERS_STAY)
            stack.callback(controller.close)
            controller.launch()
            ours = stage.takeovers(effort.runs(ROUNDS))
            controller.stop()
            brokers.mark()
            native = KafkaBroker(NATIVE, zookeeper, folder, chroot=CHROOT, heap=NATIVE_HEAP, settings=SETTINGS)
            native.process.command = [part for part in native.process.command if part != FIRST_COMPILER_ONLY]
            stack.callback(native.close)
            native.launch()
            theirs = stage.takeovers(effort.runs(ROUNDS))
        what = f"/controller deleted to the last LeaderAndIsr, {partitions:,} partitions, RF 3, 10 brokers that are sockets"
        yield duration(f"{NAME}.{partitions}", what, PEER, (ours, theirs))


class Stage:
    """One cluster of znodes and sockets; `expected` states are told to brokers at each take-over."""

    def __init__(self, client: KazooClient, brokers: SocketBrokers, expected: int) -> None:
        self._client, self._brokers, self._expected = client, brokers, expected

    def takeovers(self, rounds: int) -> list[float]:
        """Have the controller take over, once without counting; seconds from the deletion to the last broker told."""
        self._wait_until_told(since=0)
        return [self._takeover() for _ in range(rounds + 1)][1:]

    def _takeover(self) -> float:
        before = self._client.get(CONTROLLER)[1].czxid
        self._brokers.mark()
        deleted_s = time.time()
        self._client.delete(CONTROLLER)
        self._wait_until_told(since=before)
        return self._brokers.last_told_s() - deleted_s

    def _wait_until_told(self, since: int) -> None:
        """Wait until a controller that took the place after `since` (a zxid) has told every state, and no more comes."""

        def told() -> bool:
            last_s = self._brokers.last_told_s()
            if last_s == 0 or time.time() - last_s < QUIET_S:
                return False
            znode = self._client.exists(CONTROLLER)
            return znode is not None and znode.czxid > since and self._brokers.partitions_told() >= self._expected

        wait_until(told, timeout_s=PATIENCE_S, what="all brokers told by the controller")


def write_topics(client: KazooClient, partitions: int) -> None:
    """Write topics as Kafka does, every partition with a leader and all in sync."""
    for parent in (
        CHROOT,
        f"{CHROOT}/brokers",
        f"{CHROOT}{paths.TOPICS}",
        f"{CHROOT}{paths.BROKER_IDS}",
        f"{CHROOT}/config/topics",
    ):
        client.ensure_path(parent)
    count = min(PARTITIONS_OF_TOPIC, partitions)
    creates = [made for number in range(partitions // count) for made in _topic(number, count)]
    for start in range(0, len(creates), OPERATIONS):
        transaction = client.transaction()
        for path, data in creates[start : start + OPERATIONS]:
            transaction.create(f"{CHROOT}{path}", data)
        failed = [result for result in transaction.commit() if isinstance(result, Exception)]
        assert not failed, f"the znodes could not be written: {failed[:3]}"


def _topic(number: int, count: int) -> Iterator[tuple[str, bytes]]:
    name = f"bench-{number}"
    replicas = {
        partition: tuple(BROKERS[(number + partition + step) % len(BROKERS)] for step in range(REPLICATION_FACTOR))
        for partition in range(count)
    }
    yield paths.topic(name), encode_topic(TopicAssignment(replicas, topic_id=uuid.UUID(int=(1 << 100) + number + 2)))
    yield paths.topic_config(name), json.dumps({"version": 1, "config": {}}).encode()
    yield paths.partitions(name), b""
    for partition, hosts in replicas.items():
        yield paths.partition(name, partition), b""
        yield paths.partition_state(name, partition), encode_partition_state(PartitionState(hosts[0], 0, hosts, 1))
