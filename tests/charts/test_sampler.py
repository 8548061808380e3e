"""The sampler in the chart: disabled by default, as restricted as all other pods; invalid values are rejected with the reason.

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
    """Arguments of the sampler's container."""
    (container,) = one(resources, "Deployment", NAME)["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def test_the_sampler_is_disabled_by_default(rendered: list[Resource]) -> None:
    """Without it there is no object of its name."""
    assert [item for item in rendered if item["metadata"]["name"] == NAME] == []


def test_the_sampler_samples_the_cluster_of_the_release(chart: Chart) -> None:
    """`enabled` is the only value that must be set."""
    found = arguments(chart.render(sampler()))

    assert found[0] == "sampler"
    assert "--bootstrap-server=steward-kafka.kafka.svc.cluster.local:9092" in found
    assert "--topic=__steward_samples" in found
    assert "--committed" in found


def test_the_pod_of_the_sampler_is_restricted(chart: Chart) -> None:
    """Pod Security `restricted`, limits, a read-only root file system, and no token of the Kubernetes API."""
    pod = pods(chart.render(sampler()))[f"Deployment {NAME}"]["spec"]
    (container,) = containers({"spec": pod})

    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert set(container["resources"]) == {"requests", "limits"}
    assert [container[probe]["timeoutSeconds"] for probe in ("readinessProbe", "livenessProbe")] == [5, 5]


def test_secrets_are_mounted_as_files_that_others_cannot_read(chart: Chart) -> None:
    """They are not in options or the environment. All options exist in the command."""
    resources = chart.render({"analytics": {"sampler": SECURED}})
    pod = one(resources, "Deployment", NAME)["spec"]["template"]["spec"]
    options = {argument.partition("=")[0].removeprefix("--").replace("-", "_") for argument in arguments(resources)}

    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "brokers"]
    assert volume["secret"] == {"secretName": "kafka-user", "defaultMode": 0o440}
    assert "--broker-sasl-password-file=/etc/steward/brokers/password" in arguments(resources)
    assert "--broker-tls-ca=/etc/steward/brokers/ca.crt" in arguments(resources)
    assert {option for option in options if option.startswith("broker_")} <= set(BrokerSecurityOptions.__slots__)
    assert "env" not in pod["containers"][0]


def test_the_sampler_logs_in_at_msk_with_the_identity_of_its_pod(chart: Chart) -> None:
    """No Secret: the ServiceAccount's annotation names the AWS role (IRSA)."""
    role = "arn:aws:iam::123456789012:role/sampler"
    values = sampler(
        bootstrapServers="b-1.shop.c2.kafka.eu-central-1.amazonaws.com:9098",
        securityProtocol="SASL_SSL",
        msk={"region": "eu-central-1", "roleArn": role},
        serviceAccount={"annotations": {"eks.amazonaws.com/role-arn": role}},
    )
    resources = chart.render(values)
    options = arguments(resources)

    assert {"--security-protocol=SASL_SSL", "--msk-region=eu-central-1", f"--msk-role-arn={role}"} <= set(options)
    assert not [option for option in options if option.startswith("--broker-sasl")]
    account = one(resources, "ServiceAccount", NAME)
    assert account["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": role}


def test_metrics_and_brokers_are_reachable(chart: Chart) -> None:
    """Metrics for Prometheus, and the brokers' port for the sampler, also if clients are limited."""
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
    ("values", "message"),
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
        (
            sampler(msk={"region": "eu-central-1"}),
            "msk.region is set: it needs bootstrapServers and securityProtocol SASL_SSL",
        ),
        (sampler(msk={"roleArn": "arn:aws:iam::123456789012:role/s"}), "roleArn is set: set msk.region as well"),
        (sampler(msk={"region": "Frankfurt"}), "'/analytics/sampler/msk/region': 'Frankfurt' does not match pattern"),
        (sampler(credentials={"ca": "ca.crt"}), "analytics.sampler.credentials has keys of a Secret"),
    ],
)
def test_invalid_values_are_rejected(chart: Chart, values: dict[str, Any], message: str) -> None:
    """Before objects are created."""
    assert message in chart.refusal(values)
