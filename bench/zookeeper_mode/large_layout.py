"""A large cluster of znodes and sockets that Steward and a native controller control in turn: the set-up of benchmarks at scale.

Both use the same znodes in one ZooKeeper, and brokers that are sockets (`socket_brokers`). Each controller runs without the other when it
is measured, and its process stays the same over its rounds, so that Java's compiler has done its work.
"""

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kazoo.client import KazooClient

from bench.zookeeper_mode.layout import FIRST_COMPILER_ONLY, LEADERS_STAY, SETTINGS
from bench.zookeeper_mode.socket_brokers import SocketBrokers
from kafka_zookeeper import paths
from kafka_zookeeper.formats.partition_states import PartitionState, encode_partition_state
from kafka_zookeeper.formats.topics import TopicAssignment, encode_topic
from lab.peers.kafka import INTERNAL, KafkaBroker
from lab.peers.steward import StewardController
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until

BROKERS = tuple(range(1, 11))
NATIVE = 99
REPLICATION_FACTOR = 3
PARTITIONS_OF_TOPIC = 100
CHROOT = "/large"
CONTROLLER = f"{CHROOT}{paths.CONTROLLER}"
QUIET_S = 2.0
"""After this time without a LeaderAndIsr the controller has sent all of them; their partitions are then counted."""
OPERATIONS = 400
ZOOKEEPER_HEAP = "1g"
NATIVE_HEAP = "2g"
PATIENCE_S = 900.0
"""A native controller takes minutes for 200,000 partitions."""

Leads = Callable[[int, int], int]
"""Index in `BROKERS` of the first replica, by topic number and partition."""


def leaders_on_all_brokers(topic: int, partition: int) -> int:
    """Spread leaders over all brokers."""
    return (topic + partition) % len(BROKERS)


class LargeLayout:
    """The running cluster with one controller at a time; `expected` states are sent to brokers at each takeover."""

    def __init__(self, zookeeper: ZooKeeperServer, folder: Path, brokers: SocketBrokers, partitions: int) -> None:
        self.client: KazooClient = zookeeper.client
        self.brokers = brokers
        self.partitions = partitions
        self._zookeeper, self._folder = zookeeper, folder

    @contextlib.contextmanager
    def ours(self) -> Iterator[StewardController]:
        """Run a Steward controller as the active one for the block."""
        connect = self._zookeeper.connect(CHROOT)
        controller = StewardController(connect, self._folder, listeners=(INTERNAL,), arguments=LEADERS_STAY)
        with contextlib.closing(controller):
            self.brokers.mark()
            controller.launch()
            self.wait_until_notified(since=0)
            yield controller
            controller.stop()

    @contextlib.contextmanager
    def native(self) -> Iterator[KafkaBroker]:
        """Run a broker whose controller is the active one for the block."""
        broker = KafkaBroker(NATIVE, self._zookeeper, self._folder, chroot=CHROOT, heap=NATIVE_HEAP, settings=SETTINGS)
        broker.process.command = [part for part in broker.process.command if part != FIRST_COMPILER_ONLY]
        with contextlib.closing(broker):
            self.brokers.mark()
            broker.launch()
            self.wait_until_notified(since=0)
            yield broker

    def takeover(self) -> float:
        """Delete the controller's znode, so that the running one takes over; return the seconds until the last broker is notified."""
        before = self.client.get(CONTROLLER)[1].czxid
        self.brokers.mark()
        deleted_s = time.time()
        self.client.delete(CONTROLLER)
        self.wait_until_notified(since=before)
        return self.brokers.last_request_s() - deleted_s

    def wait_until_notified(self, since: int) -> None:
        """Wait until a controller that took over after `since` (a zxid) has sent every state and has stopped sending."""

        def taken() -> bool:
            znode = self.client.exists(CONTROLLER)
            return znode is not None and znode.czxid > since

        wait_until(taken, timeout_s=PATIENCE_S, what="a new controller")
        self.wait_until_received(self.partitions * REPLICATION_FACTOR)

    def wait_until_received(self, expected: int) -> None:
        """Wait until brokers have received this number of partitions since the mark and no longer receive any."""

        def received() -> bool:
            last_s = self.brokers.last_request_s()
            quiet = last_s > 0 and time.time() - last_s >= QUIET_S
            return quiet and self.brokers.partitions_received() >= expected

        wait_until(received, timeout_s=PATIENCE_S, what=f"{expected} partitions sent to brokers")


@contextlib.contextmanager
def large_layout(partitions: int, leads: Leads = leaders_on_all_brokers) -> Iterator[LargeLayout]:
    """Yield a cluster with this number of partitions and without a controller; all processes end with the block."""
    with lab_folder() as folder, contextlib.ExitStack() as stack:
        zookeeper = ZooKeeperServer(folder, heap=ZOOKEEPER_HEAP)
        stack.callback(zookeeper.close)
        zookeeper.start()
        parents = ("", "/brokers", paths.TOPICS, paths.BROKER_IDS, "/config/topics")
        for parent in parents:
            zookeeper.client.ensure_path(f"{CHROOT}{parent}")
        in_transactions(zookeeper.client, [made for number in topics_of(partitions) for made in _topic(number, leads)])
        brokers = SocketBrokers(BROKERS, zookeeper.client, CHROOT)
        brokers.start()
        stack.callback(brokers.close)
        yield LargeLayout(zookeeper, folder, brokers, partitions)


def topics_of(partitions: int) -> range:
    """Return the numbers of the topics for this number of partitions."""
    return range(partitions // PARTITIONS_OF_TOPIC)


def topic_name(number: int) -> str:
    """Return a topic's name."""
    return f"bench-{number}"


def states(number: int, leads: Leads) -> Iterator[tuple[str, bytes]]:
    """Yield path and document of every partition's state of a topic: with a leader and all in sync."""
    for partition in range(PARTITIONS_OF_TOPIC):
        hosts = _hosts(number, partition, leads)
        document = encode_partition_state(PartitionState(hosts[0], 0, hosts, 1))
        yield paths.partition_state(topic_name(number), partition), document


def in_transactions(client: KazooClient, creates: Sequence[tuple[str, bytes]], *, create: bool = True) -> None:
    """Write znodes, created (`create`) or overwritten, some hundreds at a time."""
    for start in range(0, len(creates), OPERATIONS):
        transaction = client.transaction()
        write = transaction.create if create else transaction.set_data
        for path, data in creates[start : start + OPERATIONS]:
            write(f"{CHROOT}{path}", data)
        failed = [result for result in transaction.commit() if isinstance(result, Exception)]
        assert not failed, f"the znodes could not be written: {failed[:3]}"


def _hosts(number: int, partition: int, leads: Leads) -> tuple[int, ...]:
    first = leads(number, partition)
    others = [place for place in range(len(BROKERS)) if place != first]
    followers = [others[(number + partition + step) % len(others)] for step in range(REPLICATION_FACTOR - 1)]
    return tuple(BROKERS[place] for place in (first, *followers))


def _topic(number: int, leads: Leads) -> Iterator[tuple[str, bytes]]:
    name = topic_name(number)
    replicas = {partition: _hosts(number, partition, leads) for partition in range(PARTITIONS_OF_TOPIC)}
    yield paths.topic(name), encode_topic(TopicAssignment(replicas, topic_id=uuid.UUID(int=(1 << 100) + number + 2)))
    yield paths.topic_config(name), json.dumps({"version": 1, "config": {}}).encode()
    yield paths.partitions(name), b""
    for partition in replicas:
        yield paths.partition(name, partition), b""
    yield from states(number, leads)
