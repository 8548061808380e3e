"""The program that creates the Secrets of a secured release: once, and renewed before a certificate expires."""

from __future__ import annotations

import base64
import datetime as dt
import json
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from lab.peers.kubernetes import KubernetesApi
from tests.charts.rendering import NAMESPACE, program
from tests.charts.test_programs import client_of

pytestmark = pytest.mark.kubernetes

HOSTS = ["*.steward-brokers.kafka.svc.cluster.local", "steward-kafka.kafka"]

NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)

SUFFIXES = ("ca-key", "ca", "tls", "user")


class Run:
    """Runs of the program for one release on a real API server."""

    def __init__(self, api: KubernetesApi, name: str) -> None:
        self._api = api
        self._name = name
        self.program: Any = program("create_secrets")
        self.vault = self.program.Vault(client_of(api), NAMESPACE, name)

    def __call__(self, hosts: list[str] = HOSTS, now: dt.datetime = NOW) -> dict[str, dict[str, str] | None]:
        """Create what is missing, and return the content of all Secrets."""
        self.program.provide_certificates(self.vault, self._name, hosts, now)
        self.program.provide_user(self.vault, "steward")
        return {suffix: self.vault.read(suffix) for suffix in SUFFIXES}

    def write(self, suffix: str, **data: str) -> None:
        """Change a Secret as a person would."""
        encoded = {key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in data.items()}
        name = f"secret/{self._name}-{suffix}"
        patch = json.dumps({"data": encoded})
        self._api.kubectl(f"--namespace={NAMESPACE}", "patch", name, f"--patch={patch}", check=True)


def certificate(files: dict[str, str] | None) -> x509.Certificate:
    """Read the certificate of a Secret."""
    assert files is not None
    return x509.load_pem_x509_certificate(files["tls.crt"].encode())


@pytest.mark.shows("F46")
def test_secrets_are_created_once(api: KubernetesApi) -> None:
    """An upgrade changes nothing that is valid: clients trust the authority, and brokers have the password."""
    run = Run(api, "once")
    created = run()

    assert [suffix for suffix, files in created.items() if not files] == []
    assert run(now=NOW + dt.timedelta(days=700)) == created


def test_a_certificate_is_for_servers_and_clients_and_its_key_is_what_kafka_reads(api: KubernetesApi) -> None:
    """PKCS#8; brokers and controllers are clients of each other and of ZooKeeper with it."""
    files = Run(api, "usable")()

    tls, authority = files["tls"], files["ca"]
    assert tls is not None
    assert authority is not None
    assert tls["tls.key"].startswith("-----BEGIN PRIVATE KEY-----")
    found = certificate(tls)
    purposes = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert {purpose._name for purpose in purposes} == {"serverAuth", "clientAuth"}
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == HOSTS
    found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority["ca.crt"].encode()))
    key = serialization.load_pem_private_key(tls["tls.key"].encode(), password=None)
    assert key.public_key() == found.public_key()


@pytest.mark.parametrize(
    ("hosts", "later"), [(HOSTS, dt.timedelta(days=731)), ([*HOSTS, "steward-kafka"], dt.timedelta())]
)
def test_a_certificate_is_renewed_by_the_same_authority(
    api: KubernetesApi, hosts: list[str], later: dt.timedelta
) -> None:
    """A year before it expires, or for other names. Its subject, by which ZooKeeper knows brokers, stays."""
    run = Run(api, f"renewed-{later.days}")
    before = run()
    after = run(hosts, NOW + later)

    assert {suffix for suffix in SUFFIXES if before[suffix] != after[suffix]} == {"tls"}
    assert certificate(before["tls"]).subject == certificate(after["tls"]).subject
    assert certificate(after["tls"]).not_valid_after_utc - (NOW + later) == dt.timedelta(days=1095)


@pytest.mark.parametrize(
    ("suffix", "broken"),
    [("ca-key", {"tls_key": "no key"}), ("user", {"password": "hunter2"}), ("user", {"users": ""})],
)
def test_a_broken_secret_is_named_and_never_replaced(api: KubernetesApi, suffix: str, broken: dict[str, str]) -> None:
    """Another authority or password would lock out everything that has the old one."""
    run = Run(api, f"broken-{suffix}-{'-'.join(broken).replace('_', '-')}")
    run()
    run.write(suffix, **broken)
    kept = run.vault.read(suffix)

    with pytest.raises(run.program.SecretError, match=f"-{suffix} is incomplete or invalid") as raised:
        run()
    assert run.vault.read(suffix) == kept
    assert [value for value in kept.values() if value and value in str(raised.value)] == []


def test_the_output_names_secrets_and_shows_nothing_of_them(
    api: KubernetesApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is in the log of the Job's pod."""
    Run(api, "shown")()

    assert capsys.readouterr().out.splitlines() == [f"created the Secret shown-{suffix}" for suffix in SUFFIXES]
