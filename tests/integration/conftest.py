"""A cluster that Steward holds: four real brokers under our controller, in a chroot of ZooKeeper, and our operator before it."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)

from lab.cluster import KafkaCluster
from lab.cluster import kafka_cluster as start_kafka_cluster
from lab.folder import lab_folder
from lab.kubernetes import OPERATOR, KubernetesApi
from lab.steward import StewardController, StewardOperator
from lab.waiting import wait_until
from tests.integration.kubernetes import User, cluster_text, install

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
                self.admin.list_topics(timeout=PATIENCE_S)  # librdkafka learns of another controller by this alone
                return False
            raise
        return True

    def topics(self) -> set[str]:
        """Name the topics in ZooKeeper."""
        return set(self.cluster.zookeeper.client.get_children(f"{CHROOT}/brokers/topics"))

    def config_of(self, topic: str) -> dict[str, str]:
        """Ask a broker for what is set on a topic itself."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self.admin.describe_configs([resource])[resource].result(PATIENCE_S)
        on_topic = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: entry.value for name, entry in entries.items() if entry.source == on_topic}

    def set_config(self, kind: ResourceType, name: str, **values: str | None) -> None:
        """Set or reset (None) settings as a tool does."""
        changes = [
            ConfigEntry(
                key.replace("_", "."),
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in values.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=changes)
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)

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
        self.cluster.wait_until_known(self.controller.controller_id)

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


@pytest.fixture(scope="session")
def operator(kubernetes_api: KubernetesApi) -> Iterator[StewardOperator]:
    """Our operator on a Kubernetes API, with the rights that it needs and no others; leave it running."""
    install(kubernetes_api)
    with lab_folder() as folder:
        running = StewardOperator(kubernetes_api.kubeconfig_for(OPERATOR), folder)
        try:
            running.start()
            yield running
        finally:
            running.close()


@pytest.fixture
def user(
    held: Held, kubernetes_api: KubernetesApi, operator: StewardOperator, request: pytest.FixtureRequest
) -> Iterator[User]:
    """A namespace of the test's own with the Cluster `main`, which is the one that Steward holds; emptied in the end."""
    held.wait_until_held()
    assert operator.ready, "a former test left no operator behind"
    user = User(kubernetes_api, f"test-{zlib.crc32(request.node.nodeid.encode()):08x}")
    user.apply(cluster_text(held.cluster.bootstrap().split(",")))
    user.wait_until_ready("main", kind="clusters")
    yield user
    user.leave()
