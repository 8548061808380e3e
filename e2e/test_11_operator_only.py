"""Only the operator, for a stock Kafka 4.3 that others run: installed as README.md describes it, with TLS, SCRAM and Kafka's authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from e2e import release as chart
from e2e import stock_kafka
from e2e.images import STEWARD
from e2e.kind.programs import clients as programs
from e2e.kube import Kube
from e2e.release import Release
from e2e.resources import API, CLUSTERS, ELECTIONS, REASSIGNMENTS, TOPICS, election, move, topic
from e2e.stock_kafka import StockKafka
from lab.processes.waiting import wait_until
from lab.release.chart import CHART, NAMESPACE, OPERATOR_ONLY, operator_manifest

READY_WITHIN_S = 20
"""From `helm install` to a Ready Cluster; the images are on the nodes."""

OPERATOR_MB = 134
"""128 MiB, at rest."""

DONE_WITHIN_S = 60.0

DELETED_WITHIN_S = 110
"""The pod's grace period, and then the namespace."""

NAME = "orders"

CLUSTER_SPEC: dict[str, Any] = {
    "bootstrapServers": [stock_kafka.BOOTSTRAP],
    "tls": {"caSecretRef": {"name": stock_kafka.CA_SECRET}},
    "authentication": {"type": "ScramSHA512", "secretRef": {"name": stock_kafka.USER_SECRET}},
}

TENANT = "tenant@example.org"
"""A user with the ClusterRole edit in the operator's namespace."""


@pytest.fixture(scope="module")
def stock(kube: Kube) -> Iterator[StockKafka]:
    """Three nodes of Kafka 4.3. The usual release serves all namespaces: it is uninstalled first where an earlier test has left it."""
    Release(kube, programs().helm).uninstall_if_present()
    stock_kafka.load_image(kube)
    cluster = StockKafka(kube)
    cluster.install()
    yield cluster
    cluster.uninstall()


@pytest.fixture(scope="module")
def installed(kube: Kube, stock: StockKafka) -> Iterator[tuple[Release, float]]:
    """The chart without brokers, controllers and ZooKeeper, with the stock Kafka as its Cluster, and the seconds until that was Ready."""
    release = Release(kube.within(chart.OPERATOR_NAMESPACE), programs().helm)
    release.kube.attempt("create", "namespace", chart.OPERATOR_NAMESPACE)
    release.kube.apply(*stock.client_secrets())
    seconds = release.install_operator(**OPERATOR_ONLY, clusters=[CLUSTER_SPEC])
    yield release, seconds
    release.uninstall_if_present()
    kube.delete("namespace", chart.OPERATOR_NAMESPACE, "--wait=false")


@pytest.fixture
def operator(installed: tuple[Release, float]) -> Release:
    """The installed release."""
    return installed[0]


@pytest.mark.shows("F39")
def test_the_operator_is_ready_within_seconds_of_helm_install(installed: tuple[Release, float]) -> None:
    """`docs/install.md`: one Deployment, and a Cluster that is Ready."""
    print(f"helm install of only the operator to a Ready Cluster: {installed[1]:.0f} s")

    assert installed[1] < READY_WITHIN_S


def test_the_operator_serves_a_kafka_that_others_run(operator: Release) -> None:
    """One pod, which logs in with the Secrets that the Cluster names, and sees the three brokers."""
    status = (operator.kube.get(CLUSTERS, chart.CLUSTER) or {})["status"]
    pods = [pod["metadata"]["name"] for pod in operator.kube.items("pods")]
    megabytes = operator.resident_mb(pods[0])
    print(f"resident: {megabytes:.0f} MB")

    assert status["brokerIds"] == list(stock_kafka.IDS)
    assert len(pods) == 1
    assert megabytes < OPERATOR_MB


def test_a_user_with_edit_may_declare_topics_and_no_clusters(operator: Release) -> None:
    """The ClusterRoles of the chart are aggregated to those of Kubernetes."""
    operator.kube.run("create", "rolebinding", "tenant", "--clusterrole=edit", f"--user={TENANT}")

    def may(verb: str, kind: str) -> bool:
        return operator.kube.attempt("auth", "can-i", verb, kind, f"--as={TENANT}").stdout.strip() == "yes"

    wait_until(lambda: may("create", TOPICS), timeout_s=DONE_WITHIN_S, what="the right to create Topics")
    assert may("get", CLUSTERS)
    assert not may("create", CLUSTERS)


@pytest.mark.shows("F1", "F3")
def test_a_topic_is_created_and_grows(operator: Release, stock: StockKafka) -> None:
    """As Kafka's own tool shows it."""
    operator.kube.apply(topic(NAME, partitions=3, replication_factor=1, min_isr=1))
    operator.kube.wait_condition(TOPICS, NAME, timeout_s=DONE_WITHIN_S)
    created = stock.topic(NAME)
    operator.kube.apply(topic(NAME, partitions=4, replication_factor=1, min_isr=1))
    operator.kube.wait_condition(TOPICS, NAME, timeout_s=DONE_WITHIN_S)

    assert [len(replicas) for _, replicas in created.values()] == [1, 1, 1]
    assert len(stock.topic(NAME)) == 4


@pytest.mark.shows("F11")
def test_a_reassignment_gives_exactly_the_replicas_of_its_plan(operator: Release, stock: StockKafka) -> None:
    """Kafka's own controllers execute it."""
    plan = {(NAME, 0): [0, 1, 2], (NAME, 1): [1, 2, 0], (NAME, 2): [2, 0, 1], (NAME, 3): [0, 2, 1]}
    operator.kube.apply(move("orders-to-three", plan))
    operator.kube.wait_condition(REASSIGNMENTS, "orders-to-three", timeout_s=DONE_WITHIN_S)

    assert {(NAME, number): replicas for number, (_, replicas) in stock.topic(NAME).items()} == plan


@pytest.mark.shows("F35")
def test_an_election_gives_leadership_to_the_preferred_replicas(operator: Release, stock: StockKafka) -> None:
    """The first replica of each partition leads it."""
    operator.kube.apply(election("orders-preferred", [NAME]))
    operator.kube.wait_condition(ELECTIONS, "orders-preferred", timeout_s=DONE_WITHIN_S)

    assert {number: leader for number, (leader, _) in stock.topic(NAME).items()} == {0: 0, 1: 1, 2: 2, 3: 0}


def test_an_uninstall_keeps_topics_and_blocks_no_deletion(operator: Release, stock: StockKafka) -> None:
    """The hook removes the finalizers, so that the Topic can be deleted without an operator; Kafka keeps the topic."""
    operator.uninstall()
    operator.kube.delete(TOPICS, NAME, f"--timeout={DONE_WITHIN_S:.0f}s")

    assert operator.kube.get(TOPICS, NAME) is None
    assert len(stock.topic(NAME)) == 4


@pytest.mark.shows("F39")
def test_the_manifest_installs_the_operator_without_helm(kube: Kube, stock: StockKafka) -> None:
    """`kubectl apply --filename operator.yaml`, then a Cluster with Secrets; and all of it is deleted again, the CRDs too."""
    own = kube.within(NAMESPACE)
    manifest = operator_manifest(programs().helm, CHART, chart.image_values(STEWARD))
    own.run("apply", "--filename=-", stdin=manifest)
    resource = {"apiVersion": API, "kind": "Cluster", "metadata": {"name": chart.CLUSTER}, "spec": CLUSTER_SPEC}
    own.apply(*stock.client_secrets(), resource)
    own.wait_condition(CLUSTERS, chart.CLUSTER, timeout_s=DONE_WITHIN_S)
    own.delete(CLUSTERS, chart.CLUSTER, f"--timeout={DONE_WITHIN_S:.0f}s")
    own.run("delete", "--filename=-", f"--timeout={DELETED_WITHIN_S}s", stdin=manifest)

    assert own.get("customresourcedefinition", CLUSTERS) is None
