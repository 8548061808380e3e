"""The operator without brokers, controllers and ZooKeeper, for Kafka clusters that others run."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kafka_operator.settings import OperatorSettings
from lab.release.chart import OPERATOR_ONLY
from tests.charts.rendering import NAMESPACE, RELEASE, Chart, Resource, one, operator_arguments
from tests.charts.rights import granted, needed

pytestmark = pytest.mark.helm

STOCK = {"bootstrapServers": "kafka.kafka:9092"}

SECURED: dict[str, Any] = {
    "name": "secured",
    "bootstrapServers": ["kafka-1.example.org:9093", "kafka-2.example.org:9093"],
    "tls": {"caSecretRef": {"name": "kafka-ca"}},
    "authentication": {"type": "ScramSHA512", "secretRef": {"name": "kafka-user"}},
    "allowedNamespaces": [{"namespaces": ["orders"]}],
}

PODS = {"brokers": {"statefulSet": "kafka", "firstId": 0, "replicas": 3}}
"""Pods of brokers that the operator replaces and scales, in a StatefulSet of another chart."""


def render(chart: Chart, *clusters: dict[str, Any], **values: Any) -> list[Resource]:
    """Render the operator with these entries of `clusters`."""
    return chart.render({**OPERATOR_ONLY, "clusters": list(clusters), **values})


@pytest.mark.shows("F39")
def test_only_the_operator_is_installed(chart: Chart) -> None:
    """One Deployment: no StatefulSet, no volume, no budget, and no `helm test`, which needs brokers."""
    resources = render(chart, STOCK)

    assert [item["metadata"]["name"] for item in resources if item["kind"] == "Deployment"] == [f"{RELEASE}-operator"]
    kinds = {item["kind"] for item in resources}
    assert kinds.isdisjoint({"StatefulSet", "PodDisruptionBudget", "PersistentVolumeClaim", "Pod"})
    assert [item["metadata"]["name"] for item in resources if item["kind"] in {"Service", "NetworkPolicy"}] == [
        f"{RELEASE}-operator",
        f"{RELEASE}-operator",
    ]


def test_each_entry_becomes_a_cluster_with_its_whole_spec(chart: Chart) -> None:
    """The first has the name of the release, as the Cluster of the chart's own brokers would have."""
    resources = render(chart, STOCK, SECURED)

    assert one(resources, "Cluster", RELEASE)["spec"] == {"bootstrapServers": ["kafka.kafka:9092"]}
    assert one(resources, "Cluster", "secured")["spec"] == {
        key: value for key, value in SECURED.items() if key != "name"
    }


def test_bootstrap_servers_of_a_command_line_are_separated_by_commas(chart: Chart) -> None:
    """`--set` takes a text; the resource has a list."""
    resources = render(chart, {"bootstrapServers": "a:9092,b:9092"})

    assert one(resources, "Cluster", RELEASE)["spec"]["bootstrapServers"] == ["a:9092", "b:9092"]


def test_clusters_are_declared_in_addition_to_the_charts_own(chart: Chart) -> None:
    """One operator serves both."""
    resources = chart.render({"clusters": [SECURED]})

    assert {item["metadata"]["name"] for item in resources if item["kind"] == "Cluster"} == {RELEASE, "secured"}


@pytest.mark.parametrize("namespaces", [(NAMESPACE,), ()], ids=["own", "all"])
def test_the_operator_has_no_rights_on_pods_and_nodes(chart: Chart, namespaces: tuple[str, ...]) -> None:
    """The rights are those that the operator checks at its start with the same arguments."""
    resources = render(chart, STOCK, operator={"allNamespaces": not namespaces})
    lease = f"{RELEASE}-operator"
    settings = OperatorSettings(namespaces=namespaces, own_namespace=NAMESPACE, lease=lease)

    assert {"--pods", "--drain"}.isdisjoint(operator_arguments(resources))
    rights = granted(resources, f"{RELEASE}-operator")
    assert rights == needed(settings)
    assert {resource for _, _, resource, _ in rights}.isdisjoint({"pods", "nodes", "statefulsets", "secrets"})


@pytest.mark.parametrize(
    ("clusters", "pods", "managed"),
    [([STOCK], None, False), ([STOCK | PODS], None, True), ([STOCK], True, True), ([STOCK | PODS], False, False)],
)
def test_pods_are_managed_where_a_cluster_declares_them_or_a_value_requires_it(
    chart: Chart, clusters: list[dict[str, Any]], pods: bool | None, managed: bool
) -> None:
    """A Cluster that is created later needs `operator.pods: true`."""
    resources = render(chart, *clusters, operator={"pods": pods})
    lease = f"{RELEASE}-operator"
    settings = OperatorSettings(
        namespaces=(NAMESPACE,), pods=managed, drain=managed, own_namespace=NAMESPACE, lease=lease
    )

    assert {"--pods", "--drain"}.intersection(operator_arguments(resources)) == (
        {"--pods", "--drain"} if managed else set()
    )
    assert granted(resources, lease) == needed(settings)


def test_the_operator_may_get_the_secrets_that_the_clusters_name(chart: Chart) -> None:
    """Only in the namespace of the Clusters, by name, and also if all namespaces are served."""
    resources = render(chart, STOCK, SECURED, operator={"allNamespaces": True})

    rules = [
        (item["metadata"].get("namespace"), rule["resourceNames"], rule["verbs"])
        for item in resources
        if item["kind"] in {"Role", "ClusterRole"}
        for rule in item["rules"]
        if "secrets" in rule["resources"]
    ]
    assert rules == [(NAMESPACE, ["kafka-ca", "kafka-user"], ["get"])]
    binding = one(resources, "RoleBinding", f"{RELEASE}-operator-clusters")
    assert binding["roleRef"]["name"] == f"{RELEASE}-operator-clusters"


def test_the_uninstall_stops_only_the_operator(chart: Chart) -> None:
    """It removes finalizers, and has no rights on brokers, which there are none of."""
    resources = render(chart, STOCK)
    command = one(resources, "Job", f"{RELEASE}-uninstall")["spec"]["template"]["spec"]["containers"][0]["command"]
    rules = one(resources, "Role", f"{RELEASE}-uninstall-operator")["rules"]

    assert [argument for argument in command if "component=" in argument] == [command[-1]]
    assert command[-1].endswith("component=operator")
    assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
        (["deployments/scale"], ["patch"]),
        (["pods"], ["list"]),
    ]
    assert set(one(resources, "ConfigMap", f"{RELEASE}-scripts")["data"]) == {
        "release_resources.py",
        "kubernetes_api.py",
    }


def test_the_dashboard_and_the_alerts_have_nothing_of_brokers_and_controllers(chart: Chart) -> None:
    """Their panels would stay empty, and an alert for a missing controller would fire."""
    monitoring = {
        "serviceMonitor": {"enabled": True},
        "dashboard": {"enabled": True},
        "prometheusRule": {"enabled": True},
    }
    resources = render(chart, STOCK, monitoring=monitoring)
    panels = json.loads(one(resources, "ConfigMap", f"{RELEASE}-dashboard")["data"]["steward.json"])["panels"]
    groups = one(resources, "PrometheusRule", RELEASE)["spec"]["groups"]
    complete = chart.render({"monitoring": monitoring})

    queries = json.dumps([panel.get("targets") for panel in panels])
    assert re.findall("_controller_|kafka_|jvm_", queries) == []
    titles = {panel["title"] for panel in panels}
    assert ("Reconciliations" in titles, "Brokers" in titles) == (True, False)
    assert [group["name"] for group in groups] == ["steward-operator"]
    assert [item["metadata"]["name"] for item in resources if item["kind"] == "ServiceMonitor"] == [
        f"{RELEASE}-operator"
    ]
    assert [group["name"] for group in one(complete, "PrometheusRule", RELEASE)["spec"]["groups"]] == [
        "steward-broker",
        "steward-controller",
        "steward-operator",
    ]


def test_controllers_serve_brokers_outside_the_release(chart: Chart) -> None:
    """Existing ZooKeeper and brokers: the controllers have the listeners of those brokers, in the order of the values."""
    listeners = [{"name": "REPLICATION", "port": 9093}, {"name": "CLIENT_TLS", "port": 9094}]
    values = {"enabled": True, "listeners": listeners}
    resources = render(chart, controllers=values, zookeeper={"enabled": False, "connect": "zk-1:2181,zk-2:2181/kafka"})
    stateful_set = one(resources, "StatefulSet", "steward-controller")
    container = stateful_set["spec"]["template"]["spec"]["containers"][0]
    host = "$(POD_NAME).steward-controllers.kafka.svc.cluster.local"
    (others, metrics) = one(resources, "NetworkPolicy", "steward-controller")["spec"]["ingress"]

    assert [argument for argument in container["args"] if argument.startswith("--listener=")] == [
        f"--listener=REPLICATION=0.0.0.0:9093,{host}:9093",
        f"--listener=CLIENT_TLS=0.0.0.0:9094,{host}:9094",
    ]
    assert {"name": "ZOOKEEPER_CONNECT", "value": "zk-1:2181,zk-2:2181/kafka"} in container["env"]
    assert [port["port"] for port in one(resources, "Service", "steward-controllers")["spec"]["ports"]] == [
        9093,
        9094,
        9404,
    ]
    # The operator replaces only pods of a Cluster that declares them.
    assert stateful_set["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    assert "steward.dev/cluster" not in stateful_set["metadata"]["labels"]
    assert others["ports"] == [{"port": "replication"}, {"port": "client-tls"}]
    assert metrics["ports"] == [{"port": "metrics"}]


def test_namespaces_that_may_use_the_aws_identity_are_an_option_of_the_operator(chart: Chart) -> None:
    """By default none; `*` means all."""
    by_default = operator_arguments(chart.render({}))
    resources = chart.render({"operator": {"awsIdentityNamespaces": ["orders", "*"], "namespaces": ["orders"]}})

    def options(arguments: list[str]) -> list[str]:
        return [argument for argument in arguments if argument.startswith("--aws-identity-namespace")]

    assert options(by_default) == []
    assert options(operator_arguments(resources)) == ["--aws-identity-namespace=orders", "--aws-identity-namespace=*"]
