"""A cluster whose controller reaches ZooKeeper through a proxy, and matchers for the transactions at which the proxy breaks the connection."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaAdminClient, TopicPartition

from lab.faults.zookeeper_proxy import Matches, ZooKeeperProxy, zookeeper_proxy
from lab.jute import CREATE, DELETE, SET_DATA
from lab.peers.cluster import kafka_cluster
from lab.peers.steward import StewardController
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.integration.conftest import BROKERS, CHROOT, PATIENCE_S, Held
from tests.integration.faults import controller_epoch, moving
from tests.integration.moves import RECORD_BYTES, RECORDS, throttled

SESSION_TIMEOUT_MS = 3_000
"""Session timeout of the controller, as of the lab's brokers: it keeps faults short that outlast a session."""

WITNESS = "witness"
"""The topic that is written to all the time; every broker hosts all of its partitions."""


@dataclass
class Stage(Held):
    """A cluster under the controller, and the proxy between the controller and ZooKeeper."""

    proxy: ZooKeeperProxy

    def move(self, topic: str, targets: dict[int, list[int]]) -> None:
        """Request moves."""
        admin = KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap())
        try:
            admin.alter_partition_reassignments({TopicPartition(topic, part): to for part, to in targets.items()})
        finally:
            admin.close()

    def targets(self, topic: str) -> dict[int, list[int]]:
        """Return the target of each partition's move: its last replica moves to the broker that has none."""
        return {
            partition: [*replicas[:-1], next(broker for broker in BROKERS if broker not in replicas)]
            for partition, replicas in self.cluster.assignment(topic).items()
        }

    @contextmanager
    def with_running_moves(self, *topics: str) -> Iterator[dict[int, list[int]]]:
        """Keep moves of these new topics running while the block lasts, and yield each topic's target assignment.

        They go from brokers 1, 2, 3 to broker 4, which is throttled to a byte a second in the meantime.
        """
        targets = {0: [1, 2, 4], 1: [4, 2, 3]}
        for topic in topics:
            new = NewTopic(topic, 2, replica_assignment=[[1, 2, 3], [3, 2, 1]], config={"min.insync.replicas": "2"})
            wait_until(partial(self._created, new), timeout_s=PATIENCE_S, what=f"topic {topic}")
            self.cluster.wait_until_in_sync(topic)
            self._fill(topic, len(targets))
        with ExitStack() as throttles:
            for topic in topics:
                throttles.enter_context(throttled(self, topic, 4))
                self.move(topic, targets)
                wait_until(partial(self._moves, topic, set(targets)), timeout_s=PATIENCE_S, what="moves")
            yield targets

    def _moves(self, topic: str, partitions: set[int]) -> bool:
        return moving(self, topic) == partitions

    def _fill(self, topic: str, partitions: int) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap(), "acks": "all"})
        for number in range(partitions * RECORDS):
            producer.produce(topic, bytes(RECORD_BYTES), partition=number % partitions)
        assert producer.flush(PATIENCE_S) == 0

    def wait_until_native(self) -> int:
        """Wait until a broker is the controller, under an epoch of its own, and return it."""
        before, holder = controller_epoch(self), self.cluster.controller_id()
        if holder not in BROKERS:
            wait_until(
                lambda: controller_epoch(self) > before and self.cluster.controller_id() in BROKERS,
                timeout_s=PATIENCE_S,
                what="a native controller",
            )
        return int(self.cluster.controller_id() or -1)


@contextmanager
def start_stage() -> Iterator[Stage]:
    """Yield four brokers under the controller behind a proxy, and the topic `WITNESS`."""
    with (
        lab_folder() as folder,
        kafka_cluster(BROKERS, start=False, chroot=CHROOT, folder=folder) as cluster,
        zookeeper_proxy(cluster.zookeeper.port) as proxy,
    ):
        controller = StewardController(
            proxy.connect(CHROOT), folder, arguments=[f"--session-timeout-ms={SESSION_TIMEOUT_MS}"]
        )
        try:
            controller.start()
            cluster.start_brokers()
            held = Stage(cluster, controller, proxy)
            held.wait_until_known()
            held.create(WITNESS, partitions=4, replication_factor=4, min_insync_replicas="2")
            yield held
        finally:
            controller.close()


def topic_path(topic: str) -> str:
    """Path of a topic's znode."""
    return f"{CHROOT}/brokers/topics/{topic}"


def state_path(topic: str, partition: int = 0) -> str:
    """Path of the znode of a partition's state."""
    return f"{topic_path(topic)}/partitions/{partition}/state"


def queue_path(topic: str) -> str:
    """Path of a topic in the queue of deletions."""
    return f"{CHROOT}/admin/delete_topics/{topic}"


def creates(path: str) -> Matches:
    """Match the creation of a znode."""
    return lambda operation: (operation.kind, operation.path) == (CREATE, path)


def sets(path: str, such: Callable[[bytes], bool] = lambda _: True) -> Matches:
    """Match a change of a znode to such data."""
    return lambda operation: (operation.kind, operation.path) == (SET_DATA, path) and such(operation.data)


def deletes(path: str) -> Matches:
    """Match the deletion of a znode."""
    return lambda operation: (operation.kind, operation.path) == (DELETE, path)


def contains_a_move(data: bytes) -> bool:
    """Whether a topic's document contains a running move."""
    document = json.loads(data)
    return bool(document.get("adding_replicas") or document.get("removing_replicas"))


def isr_is(*brokers: int) -> Callable[[bytes], bool]:
    """Match a state with exactly this ISR, in any order."""
    return lambda data: set(json.loads(data)["isr"]) == set(brokers)


def led_by_other_than(broker: int) -> Callable[[bytes], bool]:
    """Match a state with another leader."""
    return lambda data: json.loads(data)["leader"] != broker
