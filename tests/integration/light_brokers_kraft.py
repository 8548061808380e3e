"""A cluster with KRaft controllers, a Kafka 4.3 broker and a light broker."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from lab.peers.created_topic import create_topic
from lab.peers.kraft import CONTROLLER_ID, KraftNode, new_id
from lab.peers.light_broker import FEATURES, KRaftLightBroker
from lab.peers.live_brokers import alive
from lab.processes.folder import lab_folder
from lab.processes.ports import free_port
from lab.processes.waiting import wait_until
from tests.controller_core.shell.quorum.members import CLUSTER_ID
from tests.integration.steward_controllers import steward_cluster

PATIENCE_S = 60.0
KAFKA, LIGHT = 1, 2


@dataclass(frozen=True, slots=True)
class Mixed:
    """A cluster of a Kafka broker and a light broker."""

    kafka: KraftNode
    light: KRaftLightBroker
    folder: Path
    quorum: str
    cluster_id: str

    @property
    def bootstrap(self) -> str:
        """The addresses of both brokers."""
        return f"{self.kafka.address},{self.light.address}"

    def admin(self, address: str | None = None) -> AdminClient:
        """Return a client of both brokers, or of one."""
        return AdminClient({"bootstrap.servers": address or self.bootstrap})

    def wait_until_known(self) -> None:
        """Wait until each broker knows the other one."""
        wait_until(
            lambda: all({KAFKA, LIGHT} <= alive(address) for address in (self.kafka.address, self.light.address)),
            timeout_s=PATIENCE_S,
            what="each broker knows the other one",
        )

    def create(self, topic: str, *assignment: list[int], **config: str) -> None:
        """Create a topic with this assignment, and wait for its leaders."""
        named = {name.replace("_", "."): value for name, value in config.items()}
        new = NewTopic(topic, num_partitions=len(assignment), replica_assignment=list(assignment), config=named)
        create_topic(self.admin(), new, PATIENCE_S)
        self.wait_until_in_sync(topic, *assignment)

    def wait_until_in_sync(self, topic: str, *assignment: list[int]) -> None:
        """Wait until each broker knows that the ISRs of a topic are these replicas, and the first ones lead."""
        wanted = {number: (replicas[0], set(replicas)) for number, replicas in enumerate(assignment)}
        self._wait(topic, lambda found: found == wanted, f"{topic} is in sync")

    def wait_for_state(self, topic: str, leader: int, isr: set[int]) -> None:
        """Wait until the live brokers know this leader and ISR of partition 0."""
        self._wait(topic, lambda found: found.get(0) == (leader, isr), f"{topic} is led by {leader} with {isr}")

    def _wait(self, topic: str, is_reached, what: str) -> None:
        def is_known() -> bool:
            live = [address for address in (self.kafka.address, self.light.address) if alive(address)]
            return all(is_reached(self.states(topic, address)) for address in live)

        wait_until(is_known, timeout_s=PATIENCE_S, what=what)

    def states(self, topic: str, address: str) -> Mapping[int, tuple[int, set[int]]]:
        """Return leader and ISR of each partition, as one broker has them."""
        found = self.admin(address).list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        return {number: (state.leader, set(state.isrs)) for number, state in found.items()}


RACKS = {KAFKA: "a", LIGHT: "b"}


def rack_settings(broker_id: int) -> dict[str, str]:
    """Return the settings of a broker in a rack, whose consumers may read from followers."""
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    return {"broker.rack": RACKS[broker_id], "replica.selector.class": selector}


def light_settings(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return settings of a light broker in a cluster of two."""
    return {"offsets.topic.replication.factor": "1", **rack_settings(LIGHT), **(settings or {})}


@contextlib.contextmanager
def kafka_controller(folder: Path, features: tuple[str, ...] = FEATURES) -> Iterator[tuple[str, str]]:
    """Run a controller of Kafka 4.3 in a folder; yield its quorum and the id of its cluster."""
    port, cluster_id = free_port(), new_id()
    quorum = f"{CONTROLLER_ID}@127.0.0.1:{port}"
    node = KraftNode(
        CONTROLLER_ID, folder, quorum=quorum, cluster_id=cluster_id, controller_port=port, port=None, brokers=1
    )
    node.format(*(part for feature in features for part in ("--feature", feature)))
    node.launch()
    try:
        node.wait_until_ready()
        yield quorum, cluster_id
    finally:
        node.close()


@contextlib.contextmanager
def under_kafka() -> Iterator[Mixed]:
    """Yield a cluster whose controller is Kafka's."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(lab_folder())
        quorum, cluster_id = stack.enter_context(kafka_controller(folder))
        kafka = KraftNode(
            KAFKA,
            folder,
            quorum=quorum,
            cluster_id=cluster_id,
            controller_port=None,
            port=free_port(),
            brokers=1,
            settings=rack_settings(KAFKA),
        )
        stack.callback(kafka.close)
        kafka.format()
        kafka.launch()
        kafka.wait_until_ready()
        light = KRaftLightBroker(LIGHT, folder, cluster_id=cluster_id, quorum=quorum, settings=light_settings())
        stack.callback(light.kill)
        yield _started(Mixed(kafka, light, folder, quorum, cluster_id))


@contextlib.contextmanager
def under_steward() -> Iterator[Mixed]:
    """Yield a cluster whose controller is Steward's."""
    with (
        steward_cluster(1, 1, features=FEATURES, broker_settings=rack_settings(KAFKA)) as cluster,
        contextlib.ExitStack() as stack,
    ):
        settings = light_settings()
        light = KRaftLightBroker(LIGHT, cluster.folder, cluster_id=CLUSTER_ID, quorum=cluster.voters, settings=settings)
        stack.callback(light.kill)
        yield _started(Mixed(cluster.brokers[KAFKA], light, cluster.folder, cluster.voters, CLUSTER_ID))


def _started(one: Mixed) -> Mixed:
    one.light.start()
    one.wait_until_known()
    return one
