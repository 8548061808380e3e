"""Clusters behind TLS, SCRAM and client certificates, their Secrets on a real API server, on a stock broker of version 3.9."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from lab.peers.authority import Authority
from lab.peers.cluster import KafkaCluster
from lab.peers.cluster import kafka_cluster as start_kafka_cluster
from lab.peers.kafka import CLIENT, INTERNAL
from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.steward import StewardOperator
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.integration.test_secured import MECHANISM, PASSWORDS, broker_settings, write_users
from tests.kafka_operator.live import PATIENCE_S, Namespace
from tests.kafka_operator.makers import raw_cluster, raw_topic

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka]

GUESS, ROTATED = "guessed-hunter2", "rotated-hunter2"
SCRAM = {"type": "ScramSHA512", "username": "controller", "secretRef": {"name": "user"}}
TLS = {"caSecretRef": {"name": "ca"}}

READ_SECRETS = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: operator-secrets}}
rules:
  - {{apiGroups: [""], resources: [secrets], resourceNames: [ca, other-ca, user, certificate], verbs: [get]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: operator-secrets}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator-secrets}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {OPERATOR}}}]
"""


@pytest.fixture(scope="module")
def guarded(authority: Authority) -> Iterator[KafkaCluster]:
    """One stock broker: SCRAM over TLS on one listener, client certificates on the other."""
    settings = broker_settings(authority) | {
        "listener.security.protocol.map": f"{INTERNAL}:SASL_SSL,{CLIENT}:SSL",
        f"listener.name.{CLIENT.lower()}.ssl.client.auth": "required",
    }
    with contextlib.ExitStack() as stack:
        folder: Path = stack.enter_context(lab_folder(None))
        cluster = stack.enter_context(start_kafka_cluster((1,), start=False, folder=folder, settings=settings))
        write_users(cluster)
        cluster.start_brokers()
        yield cluster


@pytest.fixture
def vault(api: KubernetesApi, operator: StewardOperator) -> Iterator[Namespace]:
    """A namespace of its own; the operator may get no Secret in it yet."""
    assert operator.ready
    made = Namespace(api, "vault")
    yield made
    made.empty()


def keep(namespace: Namespace, name: str, **values: str) -> None:
    """Have a Secret with these values, `_` for `.` in their keys."""
    data = {key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in values.items()}
    raw = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace.name}, "data": data}
    namespace.api.kubectl("apply", "-f", "-", stdin=json.dumps(raw), check=True)


def test_secrets_are_read_rotated_and_shown_nowhere(
    vault: Namespace, guarded: KafkaCluster, authority: Authority, operator: StewardOperator
) -> None:
    """Features 27: TLS and SASL from Secrets, rotated without a restart; each problem by its name; least privilege."""
    scram = guarded.broker(1).address(INTERNAL)
    vault.apply(raw_cluster("main", scram, tls=TLS, authentication=SCRAM))
    vault.until("Cluster", "main", "Unknown", "SecretNotAllowed")
    vault.api.kubectl(f"--namespace={vault.name}", "apply", "-f", "-", stdin=READ_SECRETS, check=True)
    vault.until("Cluster", "main", "Unknown", "SecretNotFound")
    keep(vault, "ca", ca_crt=authority.certificate.read_text(encoding="ascii"))
    keep(vault, "user", user="controller")
    vault.until("Cluster", "main", "Unknown", "BadSecret", "Secret vault/user has no key password; it has user.")
    keep(vault, "user", password=GUESS)
    vault.until("Cluster", "main", "Unknown", "AuthenticationFailed")
    keep(vault, "user", password=PASSWORDS["controller"])
    vault.until("Cluster", "main", "True")

    vault.apply(raw_topic("guarded", partitions=1, replicationFactor=1))
    vault.until("Topic", "guarded", "True")

    admin = AdminClient(
        {
            "bootstrap.servers": scram,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(authority.certificate),
            "sasl.mechanism": MECHANISM,
            "sasl.username": "broker",
            "sasl.password": PASSWORDS["broker"],
        }
    )
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    rotated = UserScramCredentialUpsertion("controller", info, ROTATED.encode())
    admin.alter_user_scram_credentials([rotated])["controller"].result(PATIENCE_S)
    vault.until("Cluster", "main", "Unknown", "AuthenticationFailed")  # connections.max.reauth.ms
    keep(vault, "user", password=ROTATED)
    vault.until("Cluster", "main", "True")
    vault.apply(raw_topic("guarded", partitions=2, replicationFactor=1))
    wait_until(
        lambda: vault.status("Topic", "guarded").get("partitions") == 2, timeout_s=PATIENCE_S, what="the Topic grew"
    )

    shown = operator.process.log_text() + vault.kubectl(
        "get", "clusters.steward.dev,topics.steward.dev,events", "-o", "yaml"
    )
    assert [secret for secret in (GUESS, ROTATED, *PASSWORDS.values(), "PRIVATE KEY") if secret in shown] == []


def test_a_client_certificate_authenticates_the_operator(
    api: KubernetesApi, operator: StewardOperator, guarded: KafkaCluster, authority: Authority, tmp_path: Path
) -> None:
    """Mutual TLS; the brokers' certificate is verified, and errors of it are reported."""
    assert operator.ready
    namespace = Namespace(api, "certificates")
    api.kubectl(f"--namespace={namespace.name}", "apply", "-f", "-", stdin=READ_SECRETS, check=True)
    certificate, key = authority.sign("steward", "/CN=steward")
    keep(namespace, "certificate", tls_crt=certificate.read_text("ascii"), tls_key=key.read_text("ascii"))
    keep(namespace, "ca", ca_crt=authority.certificate.read_text(encoding="ascii"))
    keep(namespace, "other-ca", ca_crt=Authority(tmp_path).certificate.read_text(encoding="ascii"))
    mtls = {"type": "MutualTLS", "secretRef": {"name": "certificate"}}
    server = guarded.broker(1).address(CLIENT)

    namespace.apply(raw_cluster("main", server, tls=TLS, authentication=mtls))
    namespace.until("Cluster", "main", "True")
    assert namespace.status("Cluster", "main")["versions"]["software"] == "3.9"
    namespace.apply(raw_cluster("main", server, tls={"caSecretRef": {"name": "other-ca"}}, authentication=mtls))
    namespace.until("Cluster", "main", "Unknown", "TlsFailed")
    namespace.apply(raw_cluster("main", server, tls=TLS, authentication=mtls))
    namespace.until("Cluster", "main", "True")
    namespace.apply(raw_cluster("main", server, tls=TLS))
    wait_until(
        lambda: namespace.ready("Cluster", "main")[1] in {"TlsFailed", "ClusterUnreachable"},
        timeout_s=PATIENCE_S,
        what="a connection without a certificate is rejected",
    )
    namespace.empty()
