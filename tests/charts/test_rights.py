"""Accounts with a token, and what it allows: only what is needed."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator.settings import OperatorSettings
from reconciler.decide.shards import lease_names
from tests.charts.rendering import NAMESPACE, NAMESPACED, RELEASE, Chart, Resource, containers, one, pods
from tests.charts.rights import granted, needed

pytestmark = pytest.mark.helm


def test_only_pods_that_call_the_api_have_a_token(rendered: list[Resource]) -> None:
    """The operator and the uninstall job by their accounts; in a broker's pod only the container that reads the rack."""
    with_token = {
        where for where, pod in pods(rendered).items() if pod["spec"].get("automountServiceAccountToken", True)
    }
    assert with_token == {"Deployment steward-operator", "Job steward-uninstall"}

    pod = one(rendered, "StatefulSet", "steward-broker")["spec"]["template"]
    mounting = {
        item["name"] for item in containers(pod) if any(mount["name"] == "api" for mount in item["volumeMounts"])
    }
    assert mounting == {"rack"}


@pytest.mark.parametrize(
    ("values", "namespaces"),
    [({}, (NAMESPACE,)), ({"namespaces": ["orders"]}, (NAMESPACE, "orders")), ({"allNamespaces": True}, ())],
)
def test_the_operator_may_do_what_it_needs_and_nothing_else(
    chart: Chart, values: dict[str, Any], namespaces: tuple[str, ...]
) -> None:
    """RBAC least privilege. What it needs is what it checks at its start."""
    resources = chart.render({"operator": values})
    lease = f"{RELEASE}-operator"
    settings = OperatorSettings(namespaces=namespaces, pods=True, drain=True, own_namespace=NAMESPACE, lease=lease)

    arguments = one(resources, "Deployment", "steward-operator")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [f"--namespace={name}" for name in namespaces] == [
        argument for argument in arguments if argument.startswith("--namespace=")
    ]
    assert {"--pods", "--drain", f"--own-namespace={NAMESPACE}", f"--lease={lease}"} <= set(arguments)
    assert needed(settings) == granted(resources, "steward-operator")


@pytest.mark.parametrize(("replicas", "shards"), [(1, 1), (2, 1), (4, 3)])
def test_the_operator_may_read_and_change_its_own_leases_alone(chart: Chart, replicas: int, shards: int) -> None:
    """In the release's namespace, by name: the names that the process itself asks for."""
    resources = chart.render({"operator": {"replicas": replicas, "shards": shards, "namespaces": ["orders"]}})

    rules = [
        (item["metadata"]["namespace"], rule)
        for item in resources
        if item["kind"] in {"Role", "ClusterRole"}
        for rule in item["rules"]
        if "leases" in rule["resources"]
    ]
    assert [(place, rule["verbs"]) for place, rule in rules] == [(NAMESPACE, ["create"]), (NAMESPACE, ["get", "patch"])]
    names = list(lease_names(f"{RELEASE}-operator", shards))
    assert names == rules[1][1]["resourceNames"]
    assert names == [
        item["metadata"]["name"] for item in resources if item["kind"] == "Lease"
    ]  # so they go with the release
    deployment = one(resources, "Deployment", f"{RELEASE}-operator")["spec"]
    arguments = deployment["template"]["spec"]["containers"][0]["args"]
    assert (f"--shards={shards}" in arguments) == (shards > 1)
    assert replicas == deployment["replicas"]
    assert ("RollingUpdate" if (replicas, shards) == (2, 1) else "Recreate") == deployment["strategy"]["type"]


@pytest.mark.parametrize(
    ("secrets", "rule"),
    [
        ([], None),
        (["kafka-user", "kafka-ca"], {"resourceNames": ["kafka-user", "kafka-ca"], "verbs": ["get"]}),
        (["*"], {"verbs": ["get"]}),
    ],
)
def test_the_operator_may_get_the_secrets_that_are_named_and_no_others(
    chart: Chart, secrets: list[str], rule: dict[str, Any] | None
) -> None:
    """None by default; never may they be listed or watched."""
    resources = chart.render({"operator": {"secrets": secrets, "namespaces": ["orders"]}})

    found = [
        {key: rule[key] for key in ("resourceNames", "verbs") if key in rule}
        for item in resources
        if item["kind"] in {"Role", "ClusterRole"}
        for rule in item["rules"]
        if "secrets" in rule["resources"]
    ]
    assert ([] if rule is None else [rule, rule]) == found


def test_nothing_is_granted_by_a_wildcard(rendered: list[Resource]) -> None:
    """Nor to anybody but the operator, the brokers' search for the rack and the uninstall."""
    for item in rendered:
        if item["kind"] in {"Role", "ClusterRole"}:
            for rule in item["rules"]:
                assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], item["metadata"]["name"]
    assert granted(rendered, "steward-broker") == {("get", "", "nodes", None)}


def test_a_tenant_without_rights_of_the_whole_cluster_can_install(chart: Chart) -> None:
    """A ClusterRole only for what must be one, and that can be done without."""
    resources = chart.render(NAMESPACED)

    assert {item["metadata"].get("namespace") for item in resources} == {NAMESPACE}
    arguments = one(resources, "Deployment", "steward-operator")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--drain" not in arguments


def test_without_racks_no_broker_asks_kubernetes(chart: Chart) -> None:
    """A cluster of one rack needs no right on nodes for its brokers."""
    resources = chart.render({"brokers": {"rackLabel": ""}})

    assert granted(resources, "steward-broker") == set()
    assert "initContainers" not in one(resources, "StatefulSet", "steward-broker")["spec"]["template"]["spec"]


VIEW, EDIT = (f"rbac.authorization.k8s.io/aggregate-to-{role}" for role in ("view", "edit"))


@pytest.mark.parametrize("analytics", [False, True])
def test_the_roles_of_kubernetes_include_steward_s_resources(chart: Chart, analytics: bool) -> None:
    """Users with edit declare Topics; Clusters are administered by others, since they give access to Secrets and pods."""
    resources = chart.render({"analytics": {"enabled": analytics}})
    kinds = ["topics", "reassignments", "elections"]
    kinds += ["sparkapplications", "scheduledsparkapplications"] if analytics else []

    roles = {
        label: item["rules"]
        for item in resources
        for label in (VIEW, EDIT)
        if item["kind"] == "ClusterRole" and item["metadata"]["labels"].get(label) == "true"
    }
    changing = ["create", "update", "patch", "delete", "deletecollection"]
    assert roles == {
        VIEW: [{"apiGroups": ["steward.dev"], "resources": ["clusters", *kinds], "verbs": ["get", "list", "watch"]}],
        EDIT: [{"apiGroups": ["steward.dev"], "resources": kinds, "verbs": changing}],
    }
