"""SparkApplications in the chart: switched off by default; the operator's rights, and those of drivers."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator.settings import OperatorSettings
from spark_operator.resources.application import DEFAULT_SERVICE_ACCOUNT
from tests.charts.rendering import JOBS, NAMESPACE, NAMESPACED, RELEASE, Chart, one, operator_arguments
from tests.charts.rights import granted, needed

pytestmark = pytest.mark.helm

LEASE = f"{RELEASE}-operator"


def test_nothing_of_spark_is_there_by_default(chart: Chart) -> None:
    """Least privilege: no right to create pods."""
    resources = chart.render()

    assert [argument for argument in operator_arguments(resources) if argument.startswith("--spark")] == []
    assert not [item for item in resources if item["metadata"]["name"] == DEFAULT_SERVICE_ACCOUNT]
    assert ("create", "", "pods", NAMESPACE) not in granted(resources, LEASE)


@pytest.mark.parametrize("spark_operator", [False, True])
@pytest.mark.parametrize(
    ("values", "namespaces"), [({"namespaces": ["orders"]}, (NAMESPACE, "orders", JOBS)), ({"allNamespaces": True}, ())]
)
def test_the_operator_may_do_what_it_needs_for_spark_and_nothing_else(
    chart: Chart, values: dict[str, Any], namespaces: tuple[str, ...], spark_operator: bool
) -> None:
    """What it needs is what it checks at its start."""
    resources = chart.render({"operator": values, "analytics": {"enabled": True, "sparkOperator": spark_operator}})
    settings = OperatorSettings(
        namespaces=namespaces,
        pods=True,
        drain=True,
        spark=True,
        spark_namespaces=(JOBS,),
        spark_operator=spark_operator,
        own_namespace=NAMESPACE,
        lease=LEASE,
    )

    wanted = {"--spark", f"--spark-namespace={JOBS}"} | ({"--spark-operator"} if spark_operator else set())
    assert {argument for argument in operator_arguments(resources) if argument.startswith("--spark")} == wanted
    served = [argument for argument in operator_arguments(resources) if argument.startswith("--namespace=")]
    assert served == [f"--namespace={name}" for name in namespaces]
    assert granted(resources, LEASE) == needed(settings)
    assert {place for verb, _, name, place in granted(resources, LEASE) if (verb, name) == ("create", "pods")} == {JOBS}


def test_the_operator_leaves_the_kinds_of_spark_out_where_a_value_excludes_them(chart: Chart) -> None:
    """Another operator runs the jobs: the namespace and the account of drivers remain, and no right of Steward's operator on them."""
    resources = chart.render({"analytics": {"enabled": True}, "operator": {"spark": {"enabled": False}}})
    settings = OperatorSettings(namespaces=(NAMESPACE,), pods=True, drain=True, own_namespace=NAMESPACE, lease=LEASE)

    assert [argument for argument in operator_arguments(resources) if argument.startswith("--spark")] == []
    assert granted(resources, LEASE) == needed(settings)
    assert one(resources, "ServiceAccount", DEFAULT_SERVICE_ACCOUNT)["metadata"]["namespace"] == JOBS
    roles = [rule for item in resources if item["kind"] == "ClusterRole" for rule in item["rules"]]
    assert not [rule for rule in roles if "sparkapplications" in rule["resources"]]


def test_the_operator_serves_spark_without_a_namespace_of_the_chart(chart: Chart) -> None:
    """Jobs run in existing namespaces, with accounts that others created."""
    analytics = {"enabled": False, "otherNamespaces": ["team-a"]}
    resources = chart.render({"analytics": analytics, "operator": {"spark": {"enabled": True}}})
    settings = OperatorSettings(
        namespaces=(NAMESPACE, "team-a"),
        pods=True,
        drain=True,
        spark=True,
        spark_namespaces=("team-a",),
        own_namespace=NAMESPACE,
        lease=LEASE,
    )

    assert [argument for argument in operator_arguments(resources) if argument.startswith("--spark")] == [
        "--spark",
        "--spark-namespace=team-a",
    ]
    assert granted(resources, LEASE) == needed(settings)
    assert not [item for item in resources if item["metadata"]["name"] in {DEFAULT_SERVICE_ACCOUNT, JOBS}]


def test_drivers_have_an_account_that_creates_executors_in_the_namespace_of_jobs(chart: Chart) -> None:
    """By the name that is the default of spec.driver.serviceAccount; no pod is given its token unasked."""
    resources = chart.render({"analytics": {"enabled": True}, "operator": {"namespaces": ["orders"]}})

    account = one(resources, "ServiceAccount", DEFAULT_SERVICE_ACCOUNT)
    assert account["automountServiceAccountToken"] is False
    assert account["metadata"]["namespace"] == JOBS
    may = granted(resources, DEFAULT_SERVICE_ACCOUNT)
    assert {(group, namespace) for _, group, _, namespace in may} == {("", JOBS)}
    pods = {"get", "list", "watch", "create", "patch", "delete", "deletecollection"}
    assert {verb for verb, _, name, _ in may if name == "pods"} == pods
    assert {verb for verb, _, name, _ in may if name == "configmaps"} == {"create", "deletecollection"}
    assert {name for _, _, name, _ in may} == {"pods", "configmaps"}


def test_a_driver_of_kubeflows_operator_deletes_its_service_at_its_end(chart: Chart) -> None:
    """In cluster mode spark-submit creates one (DriverServiceFeatureStep), and the driver deletes it by its labels."""
    resources = chart.render({"analytics": {"enabled": True, "sparkOperator": True}})

    assert {right for right in granted(resources, DEFAULT_SERVICE_ACCOUNT) if right[2] == "services"} == {
        ("deletecollection", "", "services", JOBS)
    }


def test_no_account_of_jobs_reaches_what_is_next_to_the_brokers(chart: Chart) -> None:
    """A driver that may delete pods and claims in the release's namespace may destroy the cluster."""
    analytics = {"enabled": True, "volumeClaims": True, "sampler": {"enabled": True}}
    analytics["schedule"] = {"enabled": True, "storage": {"size": "5Gi"}}
    resources = chart.render({"analytics": analytics, "operator": {"allNamespaces": True}})

    accounts = [
        item["metadata"]["name"]
        for item in resources
        if (item["kind"], item["metadata"].get("namespace")) == ("ServiceAccount", JOBS)
    ]
    assert sorted(accounts) == [DEFAULT_SERVICE_ACCOUNT, "steward-balance"]
    reached = {right for account in accounts for right in granted(resources, account) if right[3] != JOBS}
    assert {(verb, name) for verb, _, name, _ in reached} == {
        ("list", "reassignments"),
        ("create", "reassignments"),
        ("delete", "reassignments"),
        ("create", "configmaps"),
    }
    assert ("create", "", "persistentvolumeclaims", JOBS) in granted(resources, DEFAULT_SERVICE_ACCOUNT)


def test_the_namespace_of_jobs_is_restricted_and_outlives_the_release(chart: Chart) -> None:
    """With the volumes in it; one that exists already is left to its owner, and then nothing of the whole cluster is rendered."""
    made = one(chart.render({"analytics": {"enabled": True}}), "Namespace", JOBS)["metadata"]
    analytics = {"enabled": True, "namespace": "jobs", "createNamespace": False}
    resources = chart.render({**NAMESPACED, "analytics": analytics})

    assert made["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert made["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert {item["metadata"].get("namespace") for item in resources} == {NAMESPACE, "jobs"}


def test_further_namespaces_of_jobs_are_served_and_the_releases_own_is_refused(chart: Chart) -> None:
    """The operator creates pods in those that are named, and nowhere else."""
    resources = chart.render({"analytics": {"enabled": True, "otherNamespaces": ["team-a"]}})

    found = {place for verb, _, name, place in granted(resources, LEASE) if (verb, name) == ("create", "pods")}
    assert found == {JOBS, "team-a"}
    assert {"--spark-namespace=team-a", "--namespace=team-a"} <= set(operator_arguments(resources))
    for values in ({"namespace": NAMESPACE}, {"otherNamespaces": [NAMESPACE]}):
        assert f"cannot name {NAMESPACE}, the release's namespace" in chart.refusal(
            {"analytics": {"enabled": True, **values}}
        )


def test_another_account_can_be_named_and_kubeflow_needs_the_runner(chart: Chart) -> None:
    """Values that cannot work together are refused."""
    resources = chart.render({"analytics": {"enabled": True, "serviceAccount": "jobs"}})

    assert one(resources, "Role", "jobs")
    assert "enabled" in chart.refusal({"analytics": {"enabled": False, "sparkOperator": True}})
    assert "serviceAccount" in chart.refusal({"analytics": {"serviceAccount": "../x"}})
