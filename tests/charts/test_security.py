"""TLS, SASL and the authorizer in the chart: both ends of each connection get the same protocol, and no manifest has a secret.

Source: docs/security.md.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from lab.release.chart import CHART
from lab.release.commands import ROOT
from tests.charts.rendering import ALL_SECURITY, SASL, TLS, Chart, Resource, containers, one, pods

pytestmark = pytest.mark.helm

EXISTING: dict[str, Any] = {"tls": {"enabled": True, "secret": "kafka-tls"}}


def secured(**values: Any) -> dict[str, Any]:
    """Values with all of the security."""
    return {"security": ALL_SECURITY, **values}


def environment(resources: list[Resource], workload: str) -> dict[str, str]:
    """Return the plain environment of the first container of a StatefulSet."""
    (container,) = one(resources, "StatefulSet", workload)["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"] if "value" in variable}


def arguments(resources: list[Resource], kind: str, workload: str) -> list[str]:
    """Return the arguments of the first container of a workload."""
    (container,) = one(resources, kind, workload)["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def mounted_secrets(pod: Resource) -> set[str]:
    """Return the names of the Secrets that a pod mounts."""
    names = set()
    for volume in pod["spec"]["volumes"]:
        sources = [volume, *volume.get("projected", {}).get("sources", [])]
        names |= {
            source["secret"].get("secretName") or source["secret"]["name"] for source in sources if "secret" in source
        }
    return names


@pytest.mark.parametrize(
    ("security", "protocol"), [({}, "PLAINTEXT"), (TLS, "SSL"), (SASL, "SASL_SSL"), (ALL_SECURITY, "SASL_SSL")]
)
def test_brokers_and_controllers_have_the_same_protocol(chart: Chart, security: dict[str, Any], protocol: str) -> None:
    """A listener of a controller is the counterpart of that of the brokers."""
    resources = chart.render({"security": security})

    assert environment(resources, "steward-broker").get("SECURITY_PROTOCOL", "PLAINTEXT") == protocol
    listeners = [
        argument for argument in arguments(resources, "StatefulSet", "steward-controller") if "--listener=" in argument
    ]
    prefix = f"{protocol}://" if security else ""
    assert [listener.partition("=")[2].split("0.0.0.0")[0] for listener in listeners] == [
        f"INTERNAL={prefix}",
        f"CLIENT={prefix}",
    ]


def test_the_authorizer_has_the_same_super_users_on_both(chart: Chart) -> None:
    """super.users of brokers and --super-user of controllers: the release's own user, and those of the values."""
    resources = chart.render(secured())

    properties = one(resources, "ConfigMap", "steward-broker")["data"]["server.properties"].splitlines()
    assert "super.users=User:steward;User:admin" in properties
    assert "authorizer.class.name=kafka.security.authorizer.AclAuthorizer" in properties
    options = arguments(resources, "StatefulSet", "steward-controller")
    assert [option for option in options if "super-user" in option] == [
        "--super-user=User:steward",
        "--super-user=User:admin",
    ]
    assert "--authorizer" in options


def test_a_controller_with_a_login_and_without_the_authorizer_is_reported(chart: Chart) -> None:
    """It exits where neither --authorizer nor --no-authorizer is given."""
    assert "--no-authorizer" in arguments(chart.render({"security": SASL}), "StatefulSet", "steward-controller")


def test_the_releases_cluster_names_the_secrets_and_the_operator_may_get_them(chart: Chart) -> None:
    """The operator never gets the Secrets with private keys."""
    resources = chart.render(secured())

    spec = one(resources, "Cluster", "steward")["spec"]
    assert spec["tls"] == {"caSecretRef": {"name": "steward-ca"}}
    assert spec["authentication"] == {
        "type": "ScramSHA512",
        "username": "steward",
        "secretRef": {"name": "steward-user"},
    }
    rules = one(resources, "Role", "steward-operator-clusters")["rules"]
    assert [(rule["resourceNames"], rule["verbs"]) for rule in rules] == [(["steward-ca", "steward-user"], ["get"])]


def test_sampler_and_test_use_the_releases_own_login(chart: Chart) -> None:
    """No further value is needed; another login can be declared."""
    resources = chart.render(secured(analytics={"sampler": {"enabled": True}}))
    options = arguments(resources, "Deployment", "steward-sampler")
    other = {"enabled": True, "securityProtocol": "SASL_SSL", "sasl": {"mechanism": "PLAIN", "username": "sampler"}}
    other["credentials"] = {"secret": "sampler", "password": "password", "ca": "ca.crt"}
    declared = chart.render(secured(analytics={"sampler": other}))

    assert "--security-protocol=SASL_SSL" in options
    assert "--broker-sasl-username=steward" in options
    assert "--broker-tls-ca=/etc/steward/brokers/ca.crt" in options
    made = pods(resources)
    assert mounted_secrets(made["Deployment steward-sampler"]) == {"steward-ca", "steward-user"}
    assert mounted_secrets(made["Pod steward-test"]) == {"steward-ca", "steward-user"}
    (test,) = containers(made["Pod steward-test"])
    assert test["command"][-3:] == ["SASL_SSL", "SCRAM-SHA-512", "steward"]
    assert "--broker-sasl-username=sampler" in arguments(declared, "Deployment", "steward-sampler")
    assert mounted_secrets(pods(declared)["Deployment steward-sampler"]) == {"sampler"}


def test_a_pod_mounts_only_the_secrets_that_it_needs(chart: Chart) -> None:
    """The key of the certificate authority is in no pod."""
    found = {where: mounted_secrets(pod) for where, pod in pods(chart.render(secured())).items()}

    assert found == {
        "StatefulSet steward-broker": {"steward-tls", "steward-user", "kafka-users"},
        "StatefulSet steward-controller": {"steward-tls", "steward-user", "kafka-users"},
        "StatefulSet steward-zookeeper": {"steward-tls"},
        "Deployment steward-operator": set(),
        "Job steward-secrets": set(),
        "Job steward-uninstall": set(),
        "Pod steward-test": {"steward-ca", "steward-user"},
    }


def test_no_secret_is_rendered_and_files_with_secrets_are_written_to_memory(chart: Chart) -> None:
    """A Job creates the Secrets. Brokers and ZooKeeper write keys and passwords to /tmp, in the form that Java reads."""
    resources = chart.render(secured())

    assert [item for item in resources if item["kind"] == "Secret"] == []
    for name in ("steward-broker", "steward-zookeeper"):
        volumes = one(resources, "StatefulSet", name)["spec"]["template"]["spec"]["volumes"]
        (tmp,) = (volume for volume in volumes if volume["name"] == "tmp")
        assert tmp["emptyDir"]["medium"] == "Memory"


def test_zookeeper_is_reached_over_tls(chart: Chart) -> None:
    """Brokers and controllers present their certificate, and new znodes can only be changed with it (zookeeper.set.acl)."""
    resources = chart.render({"security": TLS})

    for name in ("steward-broker", "steward-controller"):
        assert environment(resources, name)["ZOOKEEPER_CONNECT"].endswith(":2281")
    assert environment(resources, "steward-broker")["ZOOKEEPER_TLS"] == "true"
    assert environment(resources, "steward-zookeeper")["ZOOKEEPER_TLS"] == "true"
    assert "--zookeeper-set-acl" in arguments(resources, "StatefulSet", "steward-controller")
    ports = one(resources, "Service", "steward-zookeeper")["spec"]["ports"]
    assert next(port["port"] for port in ports if port["name"] == "client") == 2281


def test_an_existing_zookeeper_is_reached_without_tls(chart: Chart) -> None:
    """The chart does not know its certificates."""
    resources = chart.render(secured(zookeeper={"enabled": False, "connect": "zk:2181"}))

    assert "ZOOKEEPER_TLS" not in environment(resources, "steward-broker")
    options = arguments(resources, "StatefulSet", "steward-controller")
    assert [option for option in options if option.startswith("--zookeeper-")] == []


@pytest.mark.parametrize(
    ("security", "hosts", "user"),
    [(TLS, True, False), (ALL_SECURITY, True, True), ({**EXISTING, "sasl": {"enabled": True}}, False, True)],
)
def test_a_job_creates_what_is_not_given(chart: Chart, security: dict[str, Any], hosts: bool, user: bool) -> None:
    """Before each install and upgrade. An existing certificate is used as it is."""
    job = one(chart.render({"security": security}), "Job", "steward-secrets")

    command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert ("*.steward-brokers.kafka.svc.cluster.local" in command[4].split(","), command[5]) == (
        hosts,
        "steward" if user else "",
    )
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"


def test_the_documented_certificate_has_the_names_of_the_created_one(chart: Chart) -> None:
    """The wildcard names of brokers, controllers and ZooKeeper, and the bootstrap address; the others are its short forms."""
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    (block,) = re.findall(r"\n(    apiVersion: cert-manager\.io/v1\n(?:    .*\n)+)", page)
    job = one(chart.render(secured()), "Job", "steward-secrets")
    created = job["spec"]["template"]["spec"]["containers"][0]["command"][4].split(",")

    assert yaml.safe_load(block)["spec"]["dnsNames"] == created[:4]
    assert all(created[3].startswith(f"{short}.") for short in created[4:])


def test_without_secrets_to_create_there_is_no_job(chart: Chart, rendered: list[Resource]) -> None:
    """Neither by default nor with an existing certificate."""
    existing = chart.render({"security": EXISTING})

    for resources in (rendered, existing):
        assert [item for item in resources if item["metadata"]["name"] == "steward-secrets"] == []
    assert one(existing, "Cluster", "steward")["spec"]["tls"] == {"caSecretRef": {"name": "kafka-tls"}}


def test_the_job_can_read_only_its_own_secrets(chart: Chart) -> None:
    """RBAC cannot restrict the creation by name."""
    rules = one(chart.render(secured()), "Role", "steward-secrets")["rules"]

    names = ["steward-ca-key", "steward-ca", "steward-tls", "steward-user"]
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        (None, ["create"]),
        (names, ["get", "patch"]),
    ]


def test_plain_users_of_a_controller_are_those_of_both_secrets(chart: Chart) -> None:
    """SCRAM users are in ZooKeeper, those of PLAIN in files."""
    sasl = {"enabled": True, "mechanism": "PLAIN", "usersSecret": "kafka-users"}
    options = arguments(chart.render({"security": {**TLS, "sasl": sasl}}), "StatefulSet", "steward-controller")

    assert [option for option in options if "users-file" in option] == [
        "--sasl-users-file=/etc/kafka/user/users",
        "--sasl-users-file=/etc/kafka/users/users",
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"security": {"sasl": {"enabled": True}}}, "security.sasl.enabled is true and security.tls.enabled is false"),
        (
            {"security": {**TLS, "authorizer": {"enabled": True}}},
            "security.authorizer.enabled is true and security.sasl.enabled is false",
        ),
        (
            {
                "security": TLS,
                "brokers": {"enabled": False},
                "zookeeper": {"enabled": False},
                "controllers": {"enabled": False},
            },
            "security.tls.enabled is true and brokers.enabled is false",
        ),
        (
            {"security": {"tls": {"enabled": True, "caSecret": "kafka-ca"}}},
            "security.tls.caSecret is set and security.tls.secret is empty",
        ),
        (
            {
                "security": TLS,
                "analytics": {
                    "enabled": True,
                    "sampler": {"enabled": True},
                    "schedule": {"enabled": True, "storage": {"size": "1Gi"}},
                },
            },
            "analytics.schedule.kafkaProperties.secret is empty",
        ),
        ({"security": SASL, "kafka": {"config": {"super.users": "User:eve"}}}, "kafka.config.super.users is set by"),
    ],
)
def test_security_that_cannot_work_is_refused_by_name(chart: Chart, values: dict[str, Any], message: str) -> None:
    """Before anything is created."""
    assert message in chart.refusal(values)


def test_security_is_off_by_default() -> None:
    """Existing releases keep their listeners in an upgrade: both ends of a connection between brokers have to agree."""
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))["security"]

    assert [values[part]["enabled"] for part in ("tls", "sasl", "authorizer")] == [False, False, False]
