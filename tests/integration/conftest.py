"""A cluster under Steward: four real brokers, a controller in a chroot of ZooKeeper, and an operator."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

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

from lab.peers.cluster import KafkaCluster
from lab.peers.cluster import kafka_cluster as start_kafka_cluster
from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.kubernetes import kubernetes_api as start_kubernetes_api
from lab.peers.steward import StewardController, StewardOperator
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.integration.kubernetes import POD_ROLE, User, cluster_text, install

if TYPE_CHECKING:
    from tests.integration.faults_zookeeper import Stage

BROKERS = (1, 2, 3, 4)
CHROOT = "/kafka/steward"
PATIENCE_S = 90.0
"""A generous limit for operations of a second or two: tests check order and outcome."""


@dataclass
class Held:
    """A cluster and its controller."""

    cluster: KafkaCluster
    controller: StewardController

    @cached_property
    def admin(self) -> AdminClient:
        """An Admin client that connects to the brokers' client listener only; kept, since its futures end with it."""
        return AdminClient({"bootstrap.servers": self.cluster.bootstrap()})

    def create(self, topic: str, partitions: int = 3, replication_factor: int = 3, **config: str) -> None:
        """Create a topic through the controller and wait until all replicas are in sync."""
        new = NewTopic(
            topic, partitions, replication_factor, config={k.replace("_", "."): v for k, v in config.items()}
        )
        wait_until(lambda: self._created(new), timeout_s=PATIENCE_S, what=f"topic {topic}")
        self.cluster.wait_until_in_sync(topic)

    def _created(self, new: NewTopic) -> bool:
        """Create a topic; False if the client still asks a former controller and has to ask again."""
        try:
            self.admin.create_topics([new])[new.topic].result(PATIENCE_S)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.NOT_CONTROLLER:
                self.admin.list_topics(timeout=PATIENCE_S)  # only this makes librdkafka find a new controller
                return False
            raise
        return True

    def topics(self) -> set[str]:
        """List the topics in ZooKeeper."""
        return set(self.cluster.zookeeper.client.get_children(f"{CHROOT}/brokers/topics"))

    def config_of(self, topic: str) -> dict[str, str]:
        """Read a topic's own configuration from a broker."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self.admin.describe_configs([resource])[resource].result(PATIENCE_S)
        on_topic = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: entry.value for name, entry in entries.items() if entry.source == on_topic}

    def set_config(self, kind: ResourceType, name: str, **values: str | None) -> None:
        """Set or reset (None) configurations as a tool does."""
        changes = [
            ConfigEntry(
                key.replace("_", "."),
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in values.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=changes)

        def is_set() -> bool:
            try:
                self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN:
                    raise
                return False  # a broker answers so while it has no session with ZooKeeper
            return True

        wait_until(is_set, timeout_s=PATIENCE_S, what=f"configs of {name} set")

    def leaders(self, topic: str) -> dict[int, int]:
        """Read each partition's leader from ZooKeeper."""
        return {partition: self.state(topic, partition)["leader"] for partition in self.cluster.assignment(topic)}

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        """Read one partition's state from ZooKeeper."""
        state = self.cluster.partition_state(topic, partition)
        assert state is not None, f"{topic}-{partition} has no state"
        return state

    def wait_until_held(self) -> None:
        """Wait until the controller is active."""
        wait_until(
            lambda: self.cluster.controller_id() == self.controller.controller_id,
            timeout_s=PATIENCE_S,
            what="Steward as the active controller",
        )

    def wait_until_known(self) -> None:
        """Wait until every broker knows all brokers and the controller."""
        self.cluster.wait_until_known(self.controller.controller_id)

    def wait_until_all_are_back(self, topic: str) -> None:
        """Wait until every replica of a topic is in sync again."""
        self.cluster.wait_until_in_sync(topic, timeout_s=PATIENCE_S)


@pytest.fixture(scope="session")
def held() -> Iterator[Held]:
    """Four brokers under the controller; use topics with names of your own, and leave every broker running."""
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
def stage() -> Iterator["Stage"]:
    """Four brokers under a controller that reaches ZooKeeper through a proxy."""
    from tests.integration.faults_zookeeper import start_stage  # it imports this module

    with start_stage() as running:
        yield running


@pytest.fixture(scope="package")
def pods_api() -> Iterator[KubernetesApi]:
    """An API server for operators with pods, each in a namespace of its own; an operator without pods would handle the same Clusters."""
    with start_kubernetes_api() as running:
        install(running)
        running.kubectl("apply", "--filename=-", stdin=POD_ROLE, check=True)
        yield running


@pytest.fixture(scope="session")
def operator(kubernetes_api: KubernetesApi) -> Iterator[StewardOperator]:
    """An operator on a Kubernetes API, with exactly the permissions that it needs, which checks everything often; leave it running."""
    install(kubernetes_api)
    with lab_folder() as folder:
        running = StewardOperator(kubernetes_api.kubeconfig_for(OPERATOR), folder, arguments=["--resync-interval-s=5"])
        try:
            running.start()
            yield running
        finally:
            running.close()


@pytest.fixture
def user(
    held: Held, kubernetes_api: KubernetesApi, operator: StewardOperator, request: pytest.FixtureRequest
) -> Iterator[User]:
    """A namespace for one test, with the Cluster `main` of Steward's cluster; emptied at the end."""
    held.wait_until_held()
    assert operator.ready, "an earlier test has stopped the operator"
    user = User(kubernetes_api, f"test-{zlib.crc32(request.node.nodeid.encode()):08x}")
    user.apply(cluster_text(held.cluster.bootstrap().split(",")))
    user.wait_until_ready("main", kind="clusters")
    yield user
    user.clean_up()
