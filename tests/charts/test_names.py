"""Names of objects: long names of releases, and values that change names, images and pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.charts.rendering import NAMESPACE, Chart, Resource, containers, one, pods

pytestmark = pytest.mark.helm

LONGEST = "a-release-for-the-payments-team-in-the-eastern-region"
"""53 characters: helm's limit."""

LABEL_CHARACTERS = 63
REVISION_CHARACTERS = 11
"""A dash and a hash behind the name of a StatefulSet, in the label controller-revision-hash."""

DIGEST = f"sha256:{'0123456789abcdef' * 4}"

DEFAULT_ANNOTATIONS = {"checksum/config"}


def render_all(chart: Chart, release: str, **values: Any) -> list[Resource]:
    """Render every kind of object that the chart has."""
    analytics = {
        "enabled": True,
        "sampler": {"enabled": True},
        "schedule": {"enabled": True, "storage": {"size": "1Gi"}},
    }
    monitoring = {name: {"enabled": True} for name in ("serviceMonitor", "dashboard", "prometheusRule")}
    return chart.render({"analytics": analytics, "monitoring": monitoring, **values}, release=release)


def test_names_are_cut_to_what_kubernetes_accepts(chart: Chart) -> None:
    """Services and Jobs have at most 63 characters, StatefulSets 52."""
    assert len(LONGEST) == 53
    limits = {
        "Service": LABEL_CHARACTERS,
        "Job": LABEL_CHARACTERS,
        "Pod": LABEL_CHARACTERS,
        "Cluster": LABEL_CHARACTERS,
    }
    limits["StatefulSet"] = LABEL_CHARACTERS - REVISION_CHARACTERS
    names = [(item["kind"], item["metadata"]["name"]) for item in render_all(chart, LONGEST)]

    assert [(kind, name) for kind, name in names if len(name) > limits.get(kind, 253)] == []
    assert [name for kind, name in names if kind == "StatefulSet" and not name.startswith(LONGEST[:30])] == []


def test_cut_names_of_two_releases_differ(chart: Chart) -> None:
    """Both may be in one namespace."""
    other = LONGEST.replace("region", "places")
    names = [
        {
            (item["kind"], item["metadata"]["name"])
            for item in render_all(chart, release)
            if item["kind"] != "ServiceAccount"
        }
        for release in (LONGEST, other)
    ]

    assert {kind for kind, _ in names[0] & names[1]} <= {"Namespace", "Role", "RoleBinding"}  # those of the analytics


def test_a_dot_in_the_name_of_a_release_becomes_a_dash(chart: Chart) -> None:
    """Helm accepts dots; Services do not."""
    services = [item["metadata"]["name"] for item in chart.render(release="kafka.v1") if item["kind"] == "Service"]

    assert [name for name in services if not name.startswith("kafka-v1-")] == []


def test_the_prefix_of_names_can_be_set(chart: Chart) -> None:
    """Labels keep the name of the release: the selectors of existing objects cannot change."""
    resources = chart.render({"fullnameOverride": "orders"})

    named = {
        item["metadata"]["name"] for item in resources if item["kind"] not in {"ClusterRole", "ClusterRoleBinding"}
    }
    assert {name for name in named if not name.startswith(("orders", f"{NAMESPACE}-orders"))} == set()
    assert one(resources, "Service", "orders-kafka")["spec"]["selector"]["app.kubernetes.io/instance"] == "steward"
    assert one(resources, "StatefulSet", "orders-broker")["metadata"]["labels"]["steward.dev/cluster"] == "orders"


def test_images_come_from_one_registry_by_digest_or_tag(chart: Chart) -> None:
    """A digest replaces the tag, and the registry precedes every repository."""
    resources = render_all(
        chart,
        "steward",
        **{"global": {"imageRegistry": "registry.example.org:5000/kafka"}, "image": {"digest": DIGEST, "tag": "1.0"}},
    )
    images = {container["image"] for pod in pods(resources).values() for container in containers(pod)}
    run = one(resources, "ScheduledSparkApplication", "steward-balance")["spec"]["template"]

    version = one(resources, "Deployment", "steward-operator")["metadata"]["labels"]["app.kubernetes.io/version"]
    assert images == {
        f"registry.example.org:5000/kafka/steward@{DIGEST}",
        f"registry.example.org:5000/kafka/steward-kafka:{version}",
    }
    assert run["image"] == f"registry.example.org:5000/kafka/steward-spark:{version}"


COMPONENTS = {
    "brokers": ("StatefulSet", "steward-broker"),
    "zookeeper": ("StatefulSet", "steward-zookeeper"),
    "controllers": ("StatefulSet", "steward-controller"),
    "operator": ("Deployment", "steward-operator"),
    "sampler": ("Deployment", "steward-sampler"),
}

POD: dict[str, Any] = {
    "podLabels": {"team": "platform"},
    "podAnnotations": {"example.org/mesh": "off"},
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "proxy:3128"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    ],
}


def test_pods_of_every_component_take_labels_annotations_environment_and_spread(chart: Chart) -> None:
    """A spread constraint without a labelSelector counts the pods of its component."""
    analytics = {"sampler": {"enabled": True, **POD}}
    values = {name: POD for name in COMPONENTS if name != "sampler"}
    resources = chart.render({**values, "analytics": analytics})

    for kind, name in COMPONENTS.values():
        spec = one(resources, kind, name)["spec"]
        template = spec["template"]
        own = spec["selector"]["matchLabels"]
        assert template["metadata"]["labels"] == own | POD["podLabels"], name
        assert set(template["metadata"]["annotations"]) - DEFAULT_ANNOTATIONS == set(POD["podAnnotations"]), name
        assert POD["extraEnv"][0] in template["spec"]["containers"][0]["env"], name
        (constraint,) = template["spec"]["topologySpreadConstraints"]
        assert constraint == {**POD["topologySpreadConstraints"][0], "labelSelector": {"matchLabels": own}}, name


def test_a_spread_constraint_keeps_its_own_selector(chart: Chart) -> None:
    """Such as one that counts the pods of several components."""
    own = {
        **POD["topologySpreadConstraints"][0],
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "steward"}},
    }
    resources = chart.render({"brokers": {"topologySpreadConstraints": [own]}})

    spec = one(resources, "StatefulSet", "steward-broker")["spec"]["template"]["spec"]
    assert spec["topologySpreadConstraints"] == [own]


ACCOUNT = {"create": True, "name": "cloud", "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/kafka"}}


@pytest.mark.parametrize("create", [True, False])
def test_service_accounts_have_names_and_annotations_of_the_values(chart: Chart, create: bool) -> None:
    """Clouds bind rights to an annotation of the account. An existing account gets the rights, and is not created."""
    account = {**ACCOUNT, "create": create}
    accounts = {name: {**account, "name": f"cloud-{name}"} for name in ("operator", "brokers", "sampler", "schedule")}
    analytics = {
        "enabled": True,
        "serviceAccountAnnotations": ACCOUNT["annotations"],
        "sampler": {"enabled": True, "serviceAccount": accounts["sampler"]},
        "schedule": {"enabled": True, "storage": {"size": "1Gi"}, "serviceAccount": accounts["schedule"]},
    }
    values = {name: {"serviceAccount": accounts[name]} for name in ("operator", "brokers")}
    resources = chart.render({**values, "analytics": analytics})

    created = {
        item["metadata"]["name"]: item["metadata"].get("annotations")
        for item in resources
        if item["kind"] == "ServiceAccount" and "uninstall" not in item["metadata"]["name"]
    }
    names = {account["name"] for account in accounts.values()} if create else set()
    assert created == dict.fromkeys({*names, "spark"}, ACCOUNT["annotations"])
    using = {
        pod["spec"]["serviceAccountName"]
        for where, pod in pods(resources).items()
        if "serviceAccountName" in pod["spec"] and "uninstall" not in where
    }
    assert using == {"cloud-operator", "cloud-brokers", "cloud-sampler"}
    run = one(resources, "ScheduledSparkApplication", "steward-balance")["spec"]["template"]
    assert run["driver"]["serviceAccount"] == "cloud-schedule"
    bound = json.dumps([item["subjects"] for item in resources if "subjects" in item])
    assert {name for name in ("operator", "brokers", "schedule") if f'"cloud-{name}"' in bound} == {
        "operator", "brokers", "schedule",
    }  # fmt: skip


@pytest.mark.parametrize(("replicas", "budgets"), [(1, []), (2, [1])])
def test_the_operator_has_a_budget_if_it_has_standbys(chart: Chart, replicas: int, budgets: list[int]) -> None:
    """With one replica a budget would only block drains of its node."""
    resources = chart.render({"operator": {"replicas": replicas}})

    assert budgets == [
        item["spec"]["maxUnavailable"]
        for item in resources
        if (item["kind"], item["metadata"]["name"]) == ("PodDisruptionBudget", "steward-operator")
    ]
