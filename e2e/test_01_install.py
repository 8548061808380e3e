"""`helm install` with the chart's defaults, on a cluster that has nothing of Kafka yet."""

import pytest

from e2e import release as chart
from e2e.clients import KafkaClients
from e2e.release import Release
from e2e.resources import CLUSTERS

pytestmark = pytest.mark.smoke

READY_WITHIN_S = 120
"""On two cores and 8 GiB."""

OPERATOR_MB, CONTROLLER_MB = 120, 100
"""Limit of a process's memory at rest."""

ZONE = "topology.kubernetes.io/zone"


def test_everything_is_ready_within_two_minutes_of_helm_install(install_seconds: float) -> None:
    """Operator, controllers, ZooKeeper and three brokers."""
    print(f"helm install to all Ready: {install_seconds:.0f} s")

    assert install_seconds < READY_WITHIN_S


def test_the_cluster_resource_reports_that_the_brokers_are_reached(release: Release) -> None:
    """The first command of a user: `kubectl get clusters.steward.dev`."""
    release.kube.wait_condition(CLUSTERS, chart.CLUSTER, timeout_s=30)
    status = (release.kube.get(CLUSTERS, chart.CLUSTER) or {})["status"]

    assert status["brokerIds"] == [0, 1, 2]
    assert status["controllerId"] not in status["brokerIds"], "the controller is Steward's and none of the brokers"


def test_every_broker_is_in_the_rack_of_its_node(release: Release, clients: KafkaClients) -> None:
    """`broker.rack` is the node's zone label, and the brokers are in three of them."""
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in release.kube.items("nodes")}
    racks = {
        pod["metadata"]["name"].rpartition("-")[2]: nodes[pod["spec"]["nodeName"]]
        for pod in release.pods(chart.BROKERS)
    }

    described = clients.describe()
    controller = str(described["controller"])

    assert racks == {broker: rack for broker, rack in described["brokers"].items() if broker != controller}
    assert len(set(racks.values())) == 3


def test_nothing_runs_as_root_or_restarts(release: Release) -> None:
    """An installation that is at rest after its start: no container had to try twice."""
    statuses = [
        (pod["metadata"]["name"], status["restartCount"])
        for workload in chart.WORKLOADS
        for pod in release.pods(workload)
        for status in pod["status"]["containerStatuses"]
    ]

    assert [(name, count) for name, count in statuses if count] == []
    assert all(
        pod["spec"]["securityContext"]["runAsNonRoot"] for workload in chart.WORKLOADS for pod in release.pods(workload)
    )


def test_operator_and_controllers_are_small_at_rest(release: Release) -> None:
    """The main process of each pod, by what the kernel counts as resident."""
    held = {
        pod["metadata"]["name"]: release.resident_mb(pod["metadata"]["name"])
        for workload in (chart.OPERATOR, chart.CONTROLLER)
        for pod in release.pods(workload)
    }
    print(f"resident: {', '.join(f'{name} {megabytes:.0f} MB' for name, megabytes in held.items())}")

    bounds = {name: CONTROLLER_MB if "controller" in name else OPERATOR_MB for name in held}
    assert {name: megabytes for name, megabytes in held.items() if megabytes >= bounds[name]} == {}
