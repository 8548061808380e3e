"""Real peers for all tests; each starts when the first test asks for it and is shared from then on.

A test that breaks its peer (stops, kills or freezes something) starts one of its own with `lab.peers.cluster.kafka_cluster` and its like.
"""

import gc
import os
import zlib
from collections.abc import Iterator
from random import Random

import kazoo.protocol.connection
import kazoo.retry
import pytest
from hypothesis import settings

from lab.peers import cluster, kraft, kubernetes
from lab.peers import zookeeper as zookeeper_module
from lab.peers.authority import Authority
from lab.peers.cluster import KafkaCluster
from lab.peers.kraft import CONTROLLER_ID, KraftCluster
from lab.peers.kubernetes import KubernetesApi
from lab.peers.steward import ROOT
from lab.peers.zookeeper import ZooKeeperServer
from tests.effort import EXHAUSTIVE

pytest_plugins = ["lab.test_runs.pytest_plugin", "pytester"]

# A busy machine is no defect of an example; pytest's own timeout ends one that hangs. The soak tries more examples, `--quick` fewer.
settings.register_profile("brief", deadline=None, max_examples=5)
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("soak", deadline=None, max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# kazoo's threads draw from the module `random` at any time, and hypothesis would blame the strategy that it draws from at that time.
kazoo.protocol.connection.random = kazoo.retry.random = Random()


FEW_COLLECTIONS = (10_000, 20, 50)
"""Thresholds of the garbage collector. With Python's own (700, 10, 10) it takes a twentieth of the processor time of tests that compute."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests with the mark `soak` to the soak."""
    if EXHAUSTIVE:
        return
    left = [item for item in items if item.get_closest_marker("soak")]
    if left:
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    """Leave what was imported to no collection, and collect the rest less often."""
    gc.freeze()
    gc.set_threshold(*FEW_COLLECTIONS)


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeperServer]:
    """A ZooKeeper server; mark the test `zookeeper` and stay under a chroot of your own."""
    with zookeeper_module.zookeeper_server() as server:
        yield server


@pytest.fixture
def chroot(zookeeper: ZooKeeperServer, request: pytest.FixtureRequest) -> str:
    """An empty chroot on the shared ZooKeeper, for this test alone: a path such as `/0a1b2c3d`."""
    path = f"/{zlib.crc32(request.node.nodeid.encode()):08x}"
    zookeeper.make_chroot(path)
    return path


SMALL_FETCHES = {"replica.fetch.max.bytes": "65536"}
"""A throttled follower exceeds its rate by one fetch, and fetches again when its window of 11 s is over. By Kafka's default of 1 MiB a move of
2 MB would end after two windows; with this size it is still running minutes later, however busy the machine is."""


@pytest.fixture(scope="session")
def kafka_cluster() -> Iterator[KafkaCluster]:
    """Three brokers under a controller of their own (Kafka's); mark the test `kafka` and use topics of your own."""
    with cluster.kafka_cluster((1, 2, 3), settings=SMALL_FETCHES) as running:
        yield running


@pytest.fixture(scope="session")
def kraft_cluster() -> Iterator[KraftCluster]:
    """Three brokers of Kafka 4.x in two racks, and a controller of their own; mark the test `kafka` and use topics of your own."""
    with kraft.kraft_cluster(
        (1, 2, 3), controller_id=CONTROLLER_ID, racks={1: "a", 2: "b", 3: "b"}, directories=2
    ) as running:
        yield running


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority for the tests of one module."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def kubernetes_api() -> Iterator[KubernetesApi]:
    """A Kubernetes API; mark the test `kubernetes` and use a namespace of your own."""
    with kubernetes.kubernetes_api() as api:
        yield api


@pytest.fixture(scope="session")
def operators_api() -> Iterator[KubernetesApi]:
    """A second one, with Steward's kinds, for operators that serve all namespaces: they would change the resources of other tests."""
    with kubernetes.kubernetes_api() as api:
        api.install_definitions(ROOT / "crds")
        yield api
