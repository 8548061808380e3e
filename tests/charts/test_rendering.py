"""Rendered manifests of the chart, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from lab.release.chart import CHART, KUBE_VERSION
from tests.charts.rendering import Chart, Resource, containers, one, pods

pytestmark = pytest.mark.helm


def test_lint_finds_nothing(chart: Chart) -> None:
    """Helm lint."""
    done = chart.run("lint", str(CHART), "--strict", f"--kube-version={KUBE_VERSION}")

    assert not done.returncode, done.stdout + done.stderr


def test_the_names_that_people_and_tools_rely_on(rendered: list[Resource]) -> None:
    """They are in docs/install.md and in everybody's bootstrap.servers."""
    names = {(item["kind"], item["metadata"]["name"]) for item in rendered}

    assert names >= {
        ("Deployment", "steward-operator"),
        ("StatefulSet", "steward-controller"),
        ("StatefulSet", "steward-zookeeper"),
        ("StatefulSet", "steward-broker"),
        ("Service", "steward-kafka"),
        ("Service", "steward-brokers"),
        ("Cluster", "steward"),
    }
    assert [port["port"] for port in one(rendered, "Service", "steward-kafka")["spec"]["ports"]] == [9092]


@pytest.mark.parametrize("name", ["steward-brokers", "steward-controllers", "steward-zookeeper"])
def test_names_of_pods_are_published_before_they_are_ready(rendered: list[Resource], name: str) -> None:
    """The headless Services set publishNotReadyAddresses."""
    spec = one(rendered, "Service", name)["spec"]

    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)


@pytest.mark.parametrize("name", ["steward-broker", "steward-controller"])
def test_only_the_operator_replaces_brokers_and_controllers(rendered: list[Resource], name: str) -> None:
    """OnDelete updates rolled by the operator; a drain's eviction is refused and the operator moves leaders first."""
    assert one(rendered, "StatefulSet", name)["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert one(rendered, "PodDisruptionBudget", "steward-broker")["spec"]["maxUnavailable"] == 0
    cluster = one(rendered, "Cluster", "steward")["spec"]
    assert cluster["brokers"] == {"statefulSet": "steward-broker", "firstId": 0, "replicas": 3}
    assert cluster["controllers"] == {"statefulSet": "steward-controller", "firstId": 990}


@pytest.mark.parametrize("name", ["steward-broker", "steward-controller"])
def test_stateful_sets_are_labelled_with_the_cluster_that_may_change_them(rendered: list[Resource], name: str) -> None:
    """Without the label the operator touches no pod; on pods it would replace all of them at the upgrade."""
    made = one(rendered, "StatefulSet", name)

    assert made["metadata"]["labels"]["steward.dev/cluster"] == one(rendered, "Cluster", "steward")["metadata"]["name"]
    assert "steward.dev/cluster" not in made["spec"]["template"]["metadata"]["labels"]


def test_a_pod_changes_with_what_it_runs_and_not_with_the_charts_version(rendered: list[Resource]) -> None:
    """Otherwise every upgrade of the chart would replace every broker."""
    for where, pod in pods(rendered).items():
        if not where.startswith(("Pod", "Job")):
            assert {f"app.kubernetes.io/{name}" for name in ("name", "instance", "component")} == set(
                pod["metadata"]["labels"]
            ), where


def test_a_brokers_pod_changes_with_its_settings(chart: Chart, rendered: list[Resource]) -> None:
    """A setting that took effect at the next accident alone would be a trap."""
    changed = chart.render({"kafka": {"config": {"log.retention.hours": 24}}})

    before, after = (one(items, "StatefulSet", "steward-broker")["spec"]["template"] for items in (rendered, changed))
    assert before != after
    properties = one(changed, "ConfigMap", "steward-broker")["data"]["server.properties"].splitlines()
    assert "log.retention.hours=24" in properties


def test_a_brokers_settings_are_written_as_they_are_meant(chart: Chart) -> None:
    """YAML's large numbers, fractions and truths as Kafka reads them."""
    config = {
        "log.retention.ms": 604800000,
        "log.segment.bytes": 1073741824,
        "log.cleaner.min.cleanable.ratio": 0.5,
        "auto.create.topics.enable": False,
        "compression.type": "zstd",
    }
    written = one(chart.render({"kafka": {"config": config}}), "ConfigMap", "steward-broker")["data"][
        "server.properties"
    ]

    expected = {f"{name}={str(value).lower()}" for name, value in config.items()}
    assert expected <= set(written.splitlines())


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        (1, ("default.replication.factor=1", "min.insync.replicas=1")),
        (2, ("default.replication.factor=2", "min.insync.replicas=1")),
        (3, ("default.replication.factor=3", "min.insync.replicas=2")),
        (5, ("default.replication.factor=3", "min.insync.replicas=2")),
    ],
)
def test_topics_are_replicated_as_far_as_there_are_brokers(
    chart: Chart, replicas: int, expected: tuple[str, str]
) -> None:
    """A small cluster works without another value, and a larger one survives a broker."""
    config = one(chart.render({"brokers": {"replicas": replicas}}), "ConfigMap", "steward-broker")

    assert set(expected) <= set(config["data"]["server.properties"].splitlines())


def test_every_container_is_as_the_restricted_standard_wants_it_and_has_limits(rendered: list[Resource]) -> None:
    """Restricted Pod Security, resource limits; and a root file system that nothing can be written to."""
    for where, pod in pods(rendered).items():
        assert pod["spec"]["securityContext"]["runAsNonRoot"], where
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, where
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, where
            assert set(container["resources"]) == {"requests", "limits"}, where
            assert set(container["resources"]["limits"]) == {"cpu", "memory"}, where


def test_every_server_has_probes_of_itself_alone(rendered: list[Resource]) -> None:
    """Ready = registered and serving; never a health of the whole cluster. Kubernetes' own limit, a second, is short under load."""
    for where, pod in pods(rendered).items():
        if where.startswith(("StatefulSet", "Deployment")):
            for container in pod["spec"]["containers"]:
                for probe in ("readinessProbe", "livenessProbe"):
                    assert container[probe]["timeoutSeconds"] == 5, where


def test_no_secret_is_rendered(chart: Chart) -> None:
    """What is in a rendered manifest is in helm's release and in people's repositories."""
    for item in chart.render({"monitoring": {"dashboard": {"enabled": True}}}):
        assert item["kind"] != "Secret"
    for where, pod in pods(chart.render()).items():
        for container in containers(pod):
            names = {variable["name"] for variable in container.get("env", []) if "value" in variable}
            assert not {name for name in names if "PASSWORD" in name or "TOKEN" in name or "SECRET" in name}, where


def test_zookeeper_and_the_brokers_own_listener_are_for_the_chart_alone(rendered: list[Resource]) -> None:
    """Neither asks who one is."""
    for name in ("steward-zookeeper", "steward-broker", "steward-controller"):
        for rule in one(rendered, "NetworkPolicy", name)["spec"]["ingress"]:
            if not {"client", "metrics"} >= {port["port"] for port in rule["ports"]} or name == "steward-zookeeper":
                assert rule["from"], name


OWN_NAMESPACE = {"podSelector": {}}
TEAM = {"namespaceSelector": {"matchLabels": {"team": "orders"}}}


@pytest.mark.parametrize(
    ("clients", "admitted"), [([], [OWN_NAMESPACE]), ([TEAM], [OWN_NAMESPACE, TEAM]), (["*"], None)]
)
def test_the_releases_namespace_and_named_ones_are_admitted(
    chart: Chart, clients: list[Any], admitted: list[Any] | None
) -> None:
    """A client of a plain listener may do everything by Kafka's protocol: all peers are admitted only where values declare it."""
    resources = chart.render({"networkPolicy": {"clients": clients}})

    for name in ("steward-broker", "steward-controller"):
        own, others = one(resources, "NetworkPolicy", name)["spec"]["ingress"][:2]
        assert [port["port"] for port in own["ports"]] == ["internal", "client"]
        assert others["ports"] == [{"port": "client"}]
        assert others.get("from") == admitted
    assert "'/networkPolicy/clients" in chart.refusal({"networkPolicy": {"clients": ["*", TEAM]}})


@pytest.mark.parametrize(("servers", "lines"), [(1, 0), (3, 3), (5, 5)])
def test_servers_of_an_ensemble_know_each_other(chart: Chart, servers: int, lines: int) -> None:
    """One alone is no ensemble."""
    resources = chart.render({"zookeeper": {"replicas": servers}})

    properties = one(resources, "ConfigMap", "steward-zookeeper")["data"]["zookeeper.properties"].splitlines()
    assert lines == len([line for line in properties if line.startswith("server.")])
    broker = one(resources, "StatefulSet", "steward-broker")["spec"]["template"]["spec"]["containers"][0]
    connect = next(item["value"] for item in broker["env"] if item["name"] == "ZOOKEEPER_CONNECT")
    assert servers == len(connect.split(","))
