"""A cluster that Steward holds: four real brokers under our controller, in a chroot of ZooKeeper."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from lab.cluster import KafkaCluster
from lab.cluster import kafka_cluster as start_kafka_cluster
from lab.folder import lab_folder
from lab.steward import StewardController
from lab.waiting import wait_until

BROKERS = (1, 2, 3, 4)
CHROOT = "/kafka/steward"
PATIENCE_S = 30.0
"""A generous bound for what takes a second or two: tests are about order and outcome."""


@dataclass
class Held:
    """A cluster and the controller that holds it."""

    cluster: KafkaCluster
    controller: StewardController

    @cached_property
    def admin(self) -> AdminClient:
        """An Admin client that knows the brokers' client listener alone; kept, since its futures end with it."""
        return AdminClient({"bootstrap.servers": self.cluster.bootstrap()})

    def create(self, topic: str, partitions: int = 3, replication_factor: int = 3, **config: str) -> None:
        """Create a topic through the controller and wait until all replicas are in sync."""
        new = NewTopic(
            topic, partitions, replication_factor, config={k.replace("_", "."): v for k, v in config.items()}
        )
        wait_until(lambda: self._created(new), timeout_s=PATIENCE_S, what=f"topic {topic}")
        self.cluster.wait_until_in_sync(topic)

    def _created(self, new: NewTopic) -> bool:
        """Create a topic, unless the client still asks a former controller: then it has to ask again."""
        try:
            self.admin.create_topics([new])[new.topic].result(PATIENCE_S)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.NOT_CONTROLLER:
                return False
            raise
        return True

    def leaders(self, topic: str) -> dict[int, int]:
        """Read each partition's leader from ZooKeeper."""
        return {partition: self.state(topic, partition)["leader"] for partition in self.cluster.assignment(topic)}

    def state(self, topic: str, partition: int) -> dict[str, object]:
        """Read one partition's state from ZooKeeper."""
        state = self.cluster.partition_state(topic, partition)
        assert state is not None, f"{topic}-{partition} has no state"
        return state

    def wait_until_held(self) -> None:
        """Wait until our controller holds the cluster."""
        wait_until(
            lambda: self.cluster.controller_id() == self.controller.controller_id,
            timeout_s=PATIENCE_S,
            what="our controller in its place",
        )

    def wait_until_known(self) -> None:
        """Wait until every broker has heard of every other one and of the controller."""
        everybody = {*BROKERS, self.controller.controller_id}
        for broker in self.cluster.brokers.values():
            admin = AdminClient({"bootstrap.servers": broker.address()})
            wait_until(
                lambda admin=admin: set(admin.list_topics(timeout=PATIENCE_S).brokers) == everybody,
                timeout_s=PATIENCE_S,
                what=f"everybody known to broker {broker.broker_id}",
            )

    def wait_until_all_are_back(self, topic: str) -> None:
        """Wait until every replica of a topic is in sync again."""
        self.cluster.wait_until_in_sync(topic, timeout_s=PATIENCE_S)


@pytest.fixture(scope="session")
def held() -> Iterator[Held]:
    """Four brokers under our controller; use topics of your own, and leave every broker running."""
    with (
        lab_folder() as folder,
        start_kafka_cluster(BROKERS, start=False, chroot=CHROOT, folder=folder) as cluster,
    ):
        controller = StewardController(cluster.zookeeper_connect, folder)
        try:
            controller.start()
            cluster.start_brokers()
            held = Held(cluster, controller)
            held.wait_until_known()
            yield held
        finally:
            controller.close()
