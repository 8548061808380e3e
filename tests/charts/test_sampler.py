"""The sampler in the chart: off by default, as restricted as every other pod, and refused in words where it could not work.

Source: docs/sampling.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from steward.options.security import BrokerSecurityOptions
from tests.charts.rendering import Chart, Resource, containers, one, pods

pytestmark = pytest.mark.helm

NAME = "steward-sampler"
SECURED: dict[str, Any] = {
    "enabled": True,
    "bootstrapServers": "kafka-1.example.org:9093,kafka-2.example.org:9093",
    "securityProtocol": "SASL_SSL",
    "sasl": {"mechanism": "SCRAM-SHA-512", "username": "sampler"},
    "credentials": {"secret": "kafka-user", "ca": "ca.crt", "password": "password"},
}


def sampler(**values: Any) -> dict[str, Any]:
    """The chart's values."""
    return {"analytics": {"sampler": {"enabled": True, **values}}}


def arguments(resources: list[Resource]) -> list[str]:
    """What the sampler is started with."""
    (container,) = one(resources, "Deployment", NAME)["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def test_it_is_off_by_default(rendered: list[Resource]) -> None:
    """Who does not study balance keeps no samples."""
    assert [item for item in rendered if item["metadata"]["name"] == NAME] == []


def test_it_looks_at_the_releases_own_cluster(chart: Chart) -> None:
    """One value switches it on."""
    found = arguments(chart.render(sampler()))

    assert found[0] == "sampler"
    assert "--bootstrap-server=steward-kafka.kafka.svc.cluster.local:9092" in found
    assert "--topic=__steward_samples" in found
    assert "--committed" in found


def test_it_is_as_restricted_as_every_other_pod(chart: Chart) -> None:
    """Pod Security `restricted`, limits, a root file system that nothing can be written to, and no token of Kubernetes'."""
    pod = pods(chart.render(sampler()))[f"Deployment {NAME}"]["spec"]
    (container,) = containers({"spec": pod})

    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert set(container["resources"]) == {"requests", "limits"}
    assert [container[probe]["timeoutSeconds"] for probe in ("readinessProbe", "livenessProbe")] == [5, 5]


def test_secrets_are_files_of_a_secret_that_others_may_not_read(chart: Chart) -> None:
    """Never options or environment; and the options are those that the command has."""
    resources = chart.render({"analytics": {"sampler": SECURED}})
    pod = one(resources, "Deployment", NAME)["spec"]["template"]["spec"]
    options = {one.partition("=")[0].removeprefix("--").replace("-", "_") for one in arguments(resources)}

    (volume,) = [one for one in pod["volumes"] if one["name"] == "brokers"]
    assert volume["secret"] == {"secretName": "kafka-user", "defaultMode": 0o440}
    assert "--broker-sasl-password-file=/etc/steward/brokers/password" in arguments(resources)
    assert "--broker-tls-ca=/etc/steward/brokers/ca.crt" in arguments(resources)
    assert {one for one in options if one.startswith("broker_")} <= set(BrokerSecurityOptions.__slots__)
    assert "env" not in pod["containers"][0]


def test_it_is_watched_and_reached_like_the_others(chart: Chart) -> None:
    """Metrics for those who may scrape, and the brokers' port for it, whatever clients are named."""
    peers = [{"namespaceSelector": {"matchLabels": {"clients": "yes"}}}]
    values = {
        **sampler(),
        "networkPolicy": {"clients": peers},
        "monitoring": {"serviceMonitor": {"enabled": True}},
    }
    resources = chart.render(values)

    assert one(resources, "Service", NAME)["spec"]["ports"][0]["port"] == 9407
    assert one(resources, "ServiceMonitor", NAME)["spec"]["endpoints"][0]["port"] == "metrics"
    assert one(resources, "NetworkPolicy", NAME)["spec"]["ingress"][0]["ports"] == [{"port": "metrics"}]
    rules = one(resources, "NetworkPolicy", "steward-broker")["spec"]["ingress"]
    assert {"podSelector": {}} in rules[1]["from"], "the sampler is in the release's namespace"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (sampler(intervalSeconds=4), "'/analytics/sampler/intervalSeconds': minimum: got 4, want 5"),
        (sampler(bootstrapServers="broker"), "'/analytics/sampler/bootstrapServers': 'broker' does not match pattern"),
        (sampler(topic={"name": "a b"}), "'/analytics/sampler/topic/name': 'a b' does not match pattern"),
        (sampler(securityProtocol="TLS"), "'/analytics/sampler/securityProtocol': value must be one of"),
        (sampler(password="x"), "'/analytics/sampler': additional properties 'password' not allowed"),
        (
            sampler(securityProtocol="SASL_SSL"),
            "analytics.sampler.securityProtocol is SASL_SSL: it needs sasl.mechanism, sasl.username, and credentials.secret",
        ),
        (sampler(credentials={"ca": "ca.crt"}), "analytics.sampler.credentials names keys of a Secret"),
    ],
)
def test_what_could_not_work_is_refused(chart: Chart, values: dict[str, Any], words: str) -> None:
    """Before anything is made."""
    assert words in chart.refusal(values)
