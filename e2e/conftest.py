"""The cluster under test, the release in it, clients and faults; and the reports of failed tests.

The tests run in the order of their files, each on the state that the earlier ones have left: one installation through all of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e import clients as clients_module
from e2e import release as release_module
from e2e import stock_kafka
from e2e.clients import KafkaClients, Witness
from e2e.evidence import evidence
from e2e.faults import Faults
from e2e.kind.programs import clients as programs
from e2e.kube import Kube
from e2e.release import Release
from e2e.spark_image import put_onto_a_node

TEST_TIMEOUT_S = 600
"""For one test; each has its own limits, this one ends a test that hangs."""

NAMESPACES = (
    release_module.NAMESPACE,
    clients_module.NAMESPACE,
    release_module.JOBS_NAMESPACE,
    release_module.OPERATOR_NAMESPACE,
    release_module.SECURED_NAMESPACE,
    stock_kafka.NAMESPACE,
)
"""Those whose pods and logs are shown after a failed test."""

INSTALL_SECONDS = pytest.StashKey[float]()

SPARK_NODE = pytest.StashKey[Future[str | None]]()

SPARK_IMAGE_TIMEOUT_S = 900
"""Half a gigabyte from package registries, and as much onto a node; most of that is done before it is needed."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test time enough for pods to start."""
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))


@contextmanager
def unharmed(topic: str, clients: KafkaClients) -> Iterator[Witness]:
    """Put load on a topic for the block, which must end without a violation, and without a partition under its min ISR of two."""
    running = clients.witness(topic, min_isr=2)
    yield running
    report = running.stop()
    assert report.wrong() == {}
    assert report.under_min_isr == []


@pytest.fixture(scope="session")
def kube() -> Kube:
    """The cluster, of `KUBECONFIG`, at the release's namespace."""
    kubeconfig = os.environ.get("KUBECONFIG")
    if not kubeconfig:
        pytest.exit("KUBECONFIG is not set: `make e2e` makes a cluster and runs these tests in it", returncode=2)
    return Kube(programs().kubectl, Path(kubeconfig), release_module.NAMESPACE)


@pytest.fixture(scope="session")
def release(kube: Kube, request: pytest.FixtureRequest) -> Release:
    """The chart, installed with its defaults and the images of this checkout; every pod is ready."""
    installed = Release(kube, programs().helm)
    request.config.stash[INSTALL_SECONDS] = installed.install()
    if any("spark_node" in getattr(item, "fixturenames", ()) for item in request.session.items):
        aside = ThreadPoolExecutor(1)
        request.config.stash[SPARK_NODE] = aside.submit(put_onto_a_node, kube)
        aside.shutdown(wait=False)
    return installed


@pytest.fixture(scope="session")
def spark_node(release: Release, request: pytest.FixtureRequest) -> str | None:
    """The node that has the image of Spark; None where every node can pull it."""
    assert release
    return request.config.stash[SPARK_NODE].result(SPARK_IMAGE_TIMEOUT_S)


@pytest.fixture(scope="session")
def install_seconds(release: Release, request: pytest.FixtureRequest) -> float:
    """Seconds from `helm install` until every pod was ready."""
    assert release
    return request.config.stash[INSTALL_SECONDS]


@pytest.fixture(scope="session")
def clients(kube: Kube) -> Iterator[KafkaClients]:
    """Pods that use the Kafka cluster as applications do, in a namespace of their own: the release may come later."""
    pods = KafkaClients(kube)
    pods.install()
    yield pods
    pods.uninstall()


@pytest.fixture(scope="session")
def faults(release: Release) -> Iterator[Faults]:
    """Faults for the pods of the cluster."""
    pods = Faults(release.kube)
    pods.install()
    yield pods
    pods.uninstall()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the pods' logs, their descriptions and the events during the test to the report of a failed test."""
    report = yield
    if report.failed and isinstance(item, pytest.Function) and "kube" in item.fixturenames:
        cluster = item.funcargs.get("kube") or item.funcargs.get("release")
        if isinstance(cluster, Release):
            cluster = cluster.kube
        if isinstance(cluster, Kube):
            since_s = time.time() - call.start + 1
            for namespace in dict.fromkeys((cluster.namespace, *NAMESPACES)):
                report.sections.extend(evidence(cluster.within(namespace), since_s))
    return report
