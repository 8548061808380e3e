"""SparkApplications in the chart: switched off by default; the operator's rights, and those of drivers."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator.resources.spark_application import DEFAULT_SERVICE_ACCOUNT
from kafka_operator.settings import OperatorSettings
from tests.charts.rendering import NAMESPACE, RELEASE, Chart, Resource, one
from tests.charts.rights import granted, needed

pytestmark = pytest.mark.helm

LEASE = f"{RELEASE}-operator"


def arguments(resources: list[Resource]) -> list[str]:
    """The operator's command line."""
    pod = one(resources, "Deployment", f"{RELEASE}-operator")["spec"]["template"]["spec"]
    found: list[str] = pod["containers"][0]["args"]
    return found


def test_nothing_of_spark_is_there_by_default(chart: Chart) -> None:
    """Least privilege: no right to create pods."""
    resources = chart.render()

    assert [] == [argument for argument in arguments(resources) if argument.startswith("--spark")]
    assert not [item for item in resources if item["metadata"]["name"] == DEFAULT_SERVICE_ACCOUNT]
    assert ("create", "", "pods", NAMESPACE) not in granted(resources, LEASE)


@pytest.mark.parametrize("spark_operator", [False, True])
@pytest.mark.parametrize(
    ("values", "namespaces"), [({"namespaces": ["orders"]}, (NAMESPACE, "orders")), ({"allNamespaces": True}, ())]
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
        spark_operator=spark_operator,
        own_namespace=NAMESPACE,
        lease=LEASE,
    )

    wanted = {"--spark", "--spark-operator"} if spark_operator else {"--spark"}
    assert wanted == {argument for argument in arguments(resources) if argument.startswith("--spark")}
    assert needed(settings) == granted(resources, LEASE)


def test_drivers_have_an_account_that_may_make_executors_in_its_own_namespace(chart: Chart) -> None:
    """By the name that is the default of spec.driver.serviceAccount; no pod is given its token unasked."""
    resources = chart.render({"analytics": {"enabled": True}, "operator": {"namespaces": ["orders"]}})

    account = one(resources, "ServiceAccount", DEFAULT_SERVICE_ACCOUNT)
    assert account["automountServiceAccountToken"] is False
    may = granted(resources, DEFAULT_SERVICE_ACCOUNT)
    assert {("", NAMESPACE)} == {(group, namespace) for _, group, _, namespace in may}
    assert {"pods", "configmaps", "services", "persistentvolumeclaims"} == {name for _, _, name, _ in may}
    assert {"get", "list", "watch", "create", "patch", "delete", "deletecollection"} == {verb for verb, *_ in may}


def test_another_account_can_be_named_and_kubeflow_needs_the_runner(chart: Chart) -> None:
    """Values that cannot work together are refused."""
    resources = chart.render({"analytics": {"enabled": True, "serviceAccount": "jobs"}})

    assert one(resources, "Role", "jobs")
    assert "enabled" in chart.refusal({"analytics": {"enabled": False, "sparkOperator": True}})
    assert "serviceAccount" in chart.refusal({"analytics": {"serviceAccount": "../x"}})
