"""A whole cluster with TLS, SCRAM and Kafka's authorizer on every listener, as docs/security.md describes it."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from e2e import release as chart
from e2e.kind.programs import clients as programs
from e2e.kube import Kube
from e2e.release import Release
from e2e.resources import CLUSTERS, ELECTIONS, REASSIGNMENTS, TOPICS, election, move, namespace, topic
from e2e.stock_kafka import secret
from lab.processes.waiting import wait_until

DONE_WITHIN_S = 60.0

ROLLED_WITHIN_S = 300.0
"""Three brokers and two controllers, one after the other."""

GONE_WITHIN_S = 120.0

NAME = "orders"

USERS_SECRET = "kafka-users"

USER = "alice"

SECURITY: dict[str, Any] = {
    "tls": {"enabled": True},
    "sasl": {"enabled": True, "usersSecret": USERS_SECRET},
    "authorizer": {"enabled": True},
}

CREATED = ("ca-key", "ca", "tls", "user")
"""The Secrets that the chart creates, without the prefix."""

BOOTSTRAP = f"{chart.NAME}-kafka.{chart.SECURED_NAMESPACE}.svc.cluster.local:9092"

TOPICS_TOOL, ACLS_TOOL = "org.apache.kafka.tools.TopicCommand", "kafka.admin.AclCommand"

CLIENT = """security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location=/etc/kafka/tls/ca.crt
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="USER" password="PASSWORD";
"""


class SecuredRelease(Release):
    """The release in a namespace of its own, with further users in a Secret."""

    def __init__(self, kube: Kube) -> None:
        super().__init__(kube.within(chart.SECURED_NAMESPACE), programs().helm)
        self.passwords = {USER: secrets.token_urlsafe(16)}

    def install_secured(self, **config: Any) -> float:
        """Install or upgrade it with settings of the brokers, and return the seconds until every pod is ready."""
        return self.install(operator={}, kafka=chart.kafka_values(config=config), security=SECURITY)

    def content(self, name: str) -> dict[str, str]:
        """Return the content of a Secret."""
        data = (self.kube.get("secret", name) or {}).get("data", {})
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    def tool(self, user: str, password: str, tool: str, *options: str) -> str:
        """Run a tool of Kafka in a broker's pod, and return its standard output and standard error."""
        written = CLIENT.replace("USER", user).replace("PASSWORD", password)
        self.kube.run("exec", f"{chart.NAME}-broker-0", "--stdin", "--", "sh", "-c", "cat >/tmp/client", stdin=written)
        command = ("steward-kafka", "tool", tool, "--bootstrap-server", BOOTSTRAP, "--command-config", "/tmp/client")
        done = self.kube.attempt("exec", f"{chart.NAME}-broker-0", "--", *command, *options)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def secured(kube: Kube) -> Iterator[SecuredRelease]:
    """The chart with all of its security. The usual release serves all namespaces: it is uninstalled first where it is left."""
    Release(kube, programs().helm).uninstall_if_present()
    release = SecuredRelease(kube)
    kube.apply(namespace(chart.SECURED_NAMESPACE))
    release.kube.apply(secret(USERS_SECRET, {"users": f"{USER}:{release.passwords[USER]}\n"}))
    print(f"helm install of the secured chart to all Ready: {release.install_secured():.0f} s")
    release.passwords[chart.NAME] = release.content(f"{chart.NAME}-user")["password"]
    yield release
    release.uninstall_if_present()
    kube.delete("namespace", chart.SECURED_NAMESPACE, "--wait=false")


@pytest.mark.shows("F46")
def test_the_operator_logs_in_with_what_the_chart_created(secured: SecuredRelease) -> None:
    """Topic, move and election by the user that the chart created, with SCRAM over TLS."""
    secured.kube.wait_condition(CLUSTERS, chart.CLUSTER, timeout_s=DONE_WITHIN_S)
    secured.kube.apply(topic(NAME, partitions=2, replication_factor=3))
    secured.kube.wait_condition(TOPICS, NAME, timeout_s=DONE_WITHIN_S)
    secured.kube.apply(move("orders-move", {(NAME, 0): [2, 1, 0], (NAME, 1): [1, 0, 2]}))
    secured.kube.wait_condition(REASSIGNMENTS, "orders-move", timeout_s=DONE_WITHIN_S)
    secured.kube.apply(election("orders-preferred", [NAME]))
    secured.kube.wait_condition(ELECTIONS, "orders-preferred", timeout_s=DONE_WITHIN_S)

    described = secured.tool(chart.NAME, secured.passwords[chart.NAME], TOPICS_TOOL, "--describe", "--topic", NAME)
    assert [line.split("\t")[3:5] for line in described.splitlines() if "Partition: " in line] == [
        ["Leader: 2", "Replicas: 2,1,0"],
        ["Leader: 1", "Replicas: 1,0,2"],
    ]


def test_a_user_may_do_what_acls_allow(secured: SecuredRelease) -> None:
    """The user of the Secret can authenticate, and has no rights before one is granted; a wrong password cannot authenticate."""
    create = (TOPICS_TOOL, "--create", "--topic", "of-alice", "--partitions", "1", "--replication-factor", "3")
    grant = (ACLS_TOOL, "--add", "--allow-principal", f"User:{USER}", "--producer", "--topic", "of-alice")
    refused = secured.tool(USER, secured.passwords[USER], *create)
    secured.tool(chart.NAME, secured.passwords[chart.NAME], *grant)

    assert "AuthorizationException" in refused
    assert "Created topic of-alice" in secured.tool(USER, secured.passwords[USER], *create)
    assert "SaslAuthenticationException" in secured.tool(USER, "guessed", TOPICS_TOOL, "--list")


def test_zookeeper_has_no_plain_port_for_other_pods(secured: SecuredRelease) -> None:
    """Its clients present certificates on another port; the plain one is for the probe in its own pod."""
    server = f"{chart.NAME}-zookeeper-0.{chart.NAME}-zookeeper"

    def connects(port: int) -> bool:
        command = ("bash", "-c", f"exec 3<>/dev/tcp/{server}/{port}")
        return secured.kube.attempt("exec", f"{chart.NAME}-broker-0", "--", *command).returncode == 0

    assert (connects(2281), connects(2181)) == (True, False)


@pytest.mark.shows("F47")
def test_brokers_have_metrics_for_prometheus(secured: SecuredRelease) -> None:
    """With the names that dashboard and alerts use."""
    path = f"/api/v1/namespaces/{secured.kube.namespace}/pods/{chart.NAME}-broker-1:9404/proxy/metrics"

    scraped = secured.kube.run("get", "--raw", path).splitlines()
    assert "kafka_server_kafkaserver_brokerstate 3.0" in scraped
    assert "kafka_server_replicamanager_underminisrpartitioncount 0.0" in scraped


def test_helm_test_produces_and_consumes_over_tls(secured: SecuredRelease) -> None:
    """The chart's own test authenticates as the release's own user."""
    assert "Succeeded" in secured.test()


@pytest.mark.shows("F46")
def test_an_upgrade_replaces_all_brokers_and_keeps_the_secrets(secured: SecuredRelease) -> None:
    """The authority is created once: clients trust it from then on."""
    before, brokers = _contents(secured), _uids(secured)
    secured.install_secured(**{"log.retention.hours": 24})
    wait_until(
        lambda: not brokers & _uids(secured),
        timeout_s=ROLLED_WITHIN_S,
        what="every broker replaced",
        context=lambda: json.dumps((secured.kube.get(CLUSTERS, chart.CLUSTER) or {}).get("status")),
        interval_s=1.0,
    )
    secured.wait_ready()
    secured.kube.wait_condition(CLUSTERS, chart.CLUSTER, "Settled", timeout_s=DONE_WITHIN_S)

    assert [suffix for suffix in CREATED if not before[suffix]] == []
    assert _contents(secured) == before


def test_the_listeners_cannot_be_changed_in_an_upgrade(secured: SecuredRelease) -> None:
    """Brokers with different listeners could not connect to each other."""
    refused = secured.upgrade_refusal(
        operator={}, security={**SECURITY, "sasl": {"enabled": True, "mechanism": "PLAIN"}}
    )

    assert "the installed brokers have the listeners SASL_SSL SCRAM-SHA-512" in refused


def test_no_secret_is_in_the_release_or_in_logs(secured: SecuredRelease) -> None:
    """What helm keeps, prints and shows, and what the pods log."""
    pods = [pod["metadata"]["name"] for pod in secured.kube.items("pods", f"app.kubernetes.io/instance={chart.NAME}")]
    shown = secured.run("get", "all", chart.NAME)
    shown += "".join(secured.kube.run("logs", pod, "--all-containers") for pod in pods)

    hidden = [*secured.passwords.values(), "PRIVATE KEY"]
    assert [secret for secret in hidden if secret in shown] == []


def test_an_uninstall_keeps_the_secrets_and_blocks_no_deletion(secured: SecuredRelease) -> None:
    """The volumes stay too, and a new installation with the same name needs both."""
    before = _contents(secured)
    secured.uninstall()
    kept = _contents(secured)
    secured.kube.run(
        "delete", "namespace", chart.SECURED_NAMESPACE, f"--timeout={GONE_WITHIN_S:.0f}s", timeout_s=GONE_WITHIN_S + 30
    )

    assert kept == before
    assert secured.kube.get("namespace", chart.SECURED_NAMESPACE) is None


def _contents(release: SecuredRelease) -> dict[str, dict[str, str]]:
    return {suffix: release.content(f"{chart.NAME}-{suffix}") for suffix in CREATED}


def _uids(release: Release) -> set[str]:
    return {pod["metadata"]["uid"] for pod in release.pods(chart.BROKERS)}
