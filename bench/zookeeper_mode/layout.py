"""One cluster that Steward and a native controller control in turn: the set-up of every benchmark with real brokers.

It has four brokers, a thousand partitions of replication factor 3 that the victim (broker 4) leads, and one ZooKeeper, so that both
controllers get the same znodes, brokers and data in one run. Times are measured from outside and in the same way for both: ZooKeeper's
timestamp of each partition's state, and the brokers' logs.
"""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.logs import BrokerLog
from lab.peers.cluster import KafkaCluster, kafka_cluster
from lab.peers.steward import StewardController
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until

BROKERS = (1, 2, 3, 4)
VICTIM = 4
TOPICS = 10
PARTITIONS_OF_TOPIC = 100
QUICK_PARTITIONS_OF_TOPIC = 10
SESSION_TIMEOUT_MS = 3000
BROKER_HEAP = "256m"
ZOOKEEPER_HEAP = "256m"
CHROOT = "/bench"

PATIENCE_S = 120.0
"""For steps of seconds: a broker with a thousand logs starts, catches up and leads again."""

ATTEMPT_MS = 15_000
"""For one request to a controller that may have just ended."""

POLL_S = 0.5
"""Between two reads of all states: long, so that reads are no load during a measurement."""

SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.replication.factor": "1",
    "unclean.leader.election.enable": "false",
}
"""Leaders move only when the benchmark moves them."""

LEADERS_STAY = ("--no-auto-leader-rebalance-enable",)
"""The same for Steward."""

FIRST_COMPILER_ONLY = "-XX:TieredStopAtLevel=1"
"""The lab's brokers run without Java's second compiler; a measured native controller gets Java's defaults."""

MADE = r"Finished LeaderAndIsr request in \d+ms correlationId \d+ from controller \d+ for {partitions} partitions"

QUIET = logging.getLogger("bench.clients")
QUIET.addHandler(logging.NullHandler())  # clients log every broken connection, which the benchmark causes on purpose
QUIET.propagate = False

Assignment = Mapping[str, list[list[int]]]


class Holder(StrEnum):
    """Which side is the controller."""

    OURS = "ours"
    NATIVE = "native"


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """One partition's state as ZooKeeper has it; `written_s` is the server's time of the last write."""

    leader: int
    isr: tuple[int, ...]
    written_s: float


class Layout:
    """The running cluster."""

    def __init__(self, cluster: KafkaCluster, controller: StewardController, assignment: Assignment) -> None:
        self.cluster = cluster
        self.controller = controller
        self.assignment = assignment
        self.logs = {broker: BrokerLog(cluster.broker(broker).process.log_path) for broker in BROKERS}

    def admin(self) -> AdminClient:
        """Return a new client: a client keeps sending requests to a controller that ended long ago."""
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.cluster.bootstrap(),
            "socket.timeout.ms": ATTEMPT_MS,
        }
        return AdminClient(settings, logger=QUIET)

    @property
    def partitions(self) -> int:
        """Number of partitions, all led by the victim."""
        return sum(map(len, self.assignment.values()))

    def give_to(self, holder: Holder) -> int:
        """Make Steward, or a broker other than the victim, the controller; return its id."""
        if holder is Holder.OURS:
            if not self.controller.process.running:
                self.controller.start()
            self.cluster.wait_for_controller(self.controller.controller_id)
            return self.controller.controller_id
        self.controller.stop()
        wait_until(lambda: self._native_id() is not None, timeout_s=PATIENCE_S, what="a native controller")
        while (native := self._native_id()) == VICTIM:
            self.cluster.zookeeper.client.delete(f"{CHROOT}/controller")
            wait_until(lambda: self._native_id() is not None, timeout_s=PATIENCE_S, what="another native controller")
        assert native is not None
        return native

    def _native_id(self) -> int | None:
        current = self.cluster.controller_id()
        return current if current in BROKERS else None

    def read_states(self) -> dict[tuple[str, int], ObservedPartition]:
        """Read the state of every partition that has one."""
        client = self.cluster.zookeeper.client
        names = [(topic, partition) for topic, lists in self.assignment.items() for partition in range(len(lists))]
        path = f"{CHROOT}/brokers/topics/{{}}/partitions/{{}}/state"
        answers = [client.get_async(path.format(topic, partition)) for topic, partition in names]
        states = {}
        for name, answer in zip(names, answers, strict=True):
            if not answer.exception:
                data, stat = answer.get()
                state: dict[str, Any] = json.loads(data)
                states[name] = ObservedPartition(state["leader"], tuple(state["isr"]), stat.mtime / 1000)
        return states

    def wait_until_led_by_others(self) -> float:
        """Wait until the victim leads nothing and return the server's time of the last of those writes."""
        seen: list[ObservedPartition] = []

        def moved() -> bool:
            time.sleep(POLL_S)
            seen[:] = self.read_states().values()
            return all(state.leader not in (VICTIM, -1) for state in seen)

        wait_until(moved, timeout_s=PATIENCE_S, what="leaders other than the victim")
        return max(state.written_s for state in seen)

    def wait_until_in_sync(self) -> None:
        """Wait until every replica is in its ISR."""

        def in_sync() -> bool:
            time.sleep(POLL_S)
            states = self.read_states()
            return len(states) == self.partitions and all(
                set(state.isr) == set(self.assignment[topic][partition]) for (topic, partition), state in states.items()
            )

        wait_until(in_sync, timeout_s=PATIENCE_S, what=f"{self.partitions} partitions in sync")

    def let_victim_lead(self) -> None:
        """Elect the preferred leader, the victim, for every partition."""
        names = [TopicPartition(topic, p) for topic, lists in self.assignment.items() for p in range(len(lists))]

        def led() -> bool:
            # Brokers may still name a former controller: then the request is repeated.
            with contextlib.suppress(KafkaException):
                admin = self.admin()
                admin.elect_leaders(ElectionType.PREFERRED, names).result(PATIENCE_S)
            return all(state.leader == VICTIM for state in self.read_states().values())

        wait_until(led, timeout_s=PATIENCE_S, what="the victim leading everything")

    def prepare(self, holder: Holder) -> int:
        """Bring the cluster to the initial state of a round; return the controller's id."""
        victim = self.cluster.broker(VICTIM)
        if not victim.process.running:
            victim.start()
        controller_id = self.give_to(holder)
        self.wait_until_in_sync()
        self.let_victim_lead()
        return controller_id

    def wait_until_known(self) -> None:
        """Wait until every broker knows all brokers and the controller; before that, requests of clients time out."""
        expected = {*BROKERS, self.controller.controller_id}

        def known() -> bool:
            clients = [AdminClient({"bootstrap.servers": self.cluster.broker(id_).address()}) for id_ in BROKERS]
            return all(set(client.list_topics(timeout=PATIENCE_S).brokers) == expected for client in clients)

        wait_until(known, timeout_s=PATIENCE_S, what="all brokers known to every broker")

    def create_topics(self) -> None:
        """Create all topics with the replicas of the layout."""
        new = [NewTopic(topic, len(lists), replica_assignment=lists) for topic, lists in self.assignment.items()]
        admin = self.admin()
        for log in self.logs.values():
            log.mark()
        for made in admin.create_topics(new, request_timeout=PATIENCE_S, operation_timeout=PATIENCE_S).values():
            made.result(PATIENCE_S)
        self._wait_until_made()

    def hosted(self, broker: int) -> int:
        """Return the number of replicas on a broker."""
        return sum(broker in replicas for lists in self.assignment.values() for replicas in lists)

    def _wait_until_made(self) -> None:
        """Wait until every broker has created its logs: a new partition's ISR is complete before that."""

        def made() -> bool:
            time.sleep(POLL_S)
            finished = {broker: MADE.format(partitions=self.hosted(broker)) for broker in BROKERS}
            return all(self.logs[broker].stamps(pattern) for broker, pattern in finished.items())

        wait_until(made, timeout_s=PATIENCE_S, what="all logs created")


class Gone:
    """The moment of a znode's deletion, as a client with a watch sees it."""

    def __init__(self, layout: Layout, path: str) -> None:
        self._heard = threading.Event()
        self._at_s = 0.0
        assert layout.cluster.zookeeper.client.exists(f"{CHROOT}{path}", watch=self._note), f"{path} is not there"

    def _note(self, _event: object) -> None:
        self._at_s = time.time()
        self._heard.set()

    def at_s(self) -> float:
        """Wait for it and return the time."""
        assert self._heard.wait(PATIENCE_S), "the znode stayed"
        return self._at_s


def assignment(partitions_of_topic: int) -> Assignment:
    """Put every partition's first replica on the victim, the other two on two of the others in turn."""
    others = [broker for broker in BROKERS if broker != VICTIM]
    pairs = [[VICTIM, others[turn % 3], others[(turn + 1 + turn // 3 % 2) % 3]] for turn in range(6)]
    return {f"bench-{topic}": [pairs[p % len(pairs)] for p in range(partitions_of_topic)] for topic in range(TOPICS)}


@contextlib.contextmanager
def layout(*, quick: bool = False) -> Iterator[Layout]:
    """Yield the cluster with its topics, with all partitions in sync and Steward as controller."""
    lists = assignment(QUICK_PARTITIONS_OF_TOPIC if quick else PARTITIONS_OF_TOPIC)
    with (
        lab_folder() as folder,
        kafka_cluster(
            BROKERS,
            start=False,
            folder=folder,
            chroot=CHROOT,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            settings=SETTINGS,
            heap=BROKER_HEAP,
        ) as cluster,
    ):
        for broker in cluster.brokers.values():
            broker.process.command = [part for part in broker.process.command if part != FIRST_COMPILER_ONLY]
        controller = StewardController(cluster.zookeeper_connect, folder, arguments=LEADERS_STAY)
        try:
            controller.start()
            cluster.start_brokers()
            running = Layout(cluster, controller, lists)
            running.wait_until_known()
            running.create_topics()
            running.wait_until_in_sync()
            yield running
        finally:
            controller.close()
