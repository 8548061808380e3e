"""Create the Secrets of a secured release that do not exist yet: its own certificate authority, the servers' certificate, its own user.

    python3 create_secrets.py NAMESPACE NAME HOST,HOST USER

NAME is the prefix of the names of the chart's objects. The certificate is valid for the hosts; without hosts none is created, and without
USER no password. helm runs the program before each install and upgrade, and it changes nothing that is valid:

    NAME-ca-key  tls.crt, tls.key          the authority with its key, which no pod mounts
    NAME-ca      ca.crt                    the authority, for clients
    NAME-tls     tls.crt, tls.key, ca.crt  certificate and key of brokers, controllers and ZooKeeper
    NAME-user    username, password, users the user that brokers, controllers and the operator authenticate as

Uninstalling keeps them, as it keeps the volumes of the brokers. The output and the release contain no secret.
"""

import base64
import datetime as dt
import secrets
import sys
import urllib.error
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from kubernetes_api import NOT_FOUND, Api, own_api

AUTHORITY_LIFETIME = dt.timedelta(days=3650)
"""Clients would have to trust another authority: longer than a cluster of Kafka 3.9 is expected to run."""

LIFETIME = dt.timedelta(days=1095)

RENEW_BEFORE = dt.timedelta(days=365)
"""A release that is upgraded once a year never has an expired certificate."""

CLOCK_SKEW = dt.timedelta(hours=1)

PASSWORD_BYTES = 32
"""Beyond any guess, so that the number of iterations of SCRAM does not matter."""

Files = dict[str, str]
"""Content of a Secret."""


class SecretError(Exception):
    """An existing Secret cannot be used; the message names it and what to do, and contains nothing of it."""


class Authority:
    """A certificate authority with its key."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._key = key

    @classmethod
    def create(cls, name: str, now: dt.datetime) -> "Authority":
        """Make an authority that signs itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, name, key.public_key(), now, AUTHORITY_LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def read(cls, files: Files) -> "Authority":
        """Take the authority of a Secret. Raises KeyError, TypeError, ValueError."""
        key = serialization.load_pem_private_key(files["tls.key"].encode(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the key is not one of an elliptic curve")
        return cls(x509.load_pem_x509_certificate(files["tls.crt"].encode()), key)

    def files(self) -> Files:
        """Return the content of its Secret."""
        return {"tls.crt": _pem(self.certificate), "tls.key": _key_pem(self._key)}

    def sign(self, name: str, hosts: list[str], now: dt.datetime) -> Files:
        """Return certificate, key and authority, for servers and clients. The subject is their identity in ZooKeeper: it never changes."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        builder = _builder(name, str(issuer), key.public_key(), now, LIFETIME)
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return {"tls.crt": _pem(certificate), "tls.key": _key_pem(key), "ca.crt": _pem(self.certificate)}

    def is_current(self, files: Files, hosts: list[str], now: dt.datetime) -> bool:
        """Whether a certificate is signed by this authority, for at least these hosts, and does not expire soon. Raises ValueError."""
        certificate = x509.load_pem_x509_certificate(files["tls.crt"].encode())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return (
            files["ca.crt"] == _pem(self.certificate)
            and set(hosts) <= set(names.get_values_for_type(x509.DNSName))
            and certificate.not_valid_after_utc - now > RENEW_BEFORE
        )


def _builder(
    name: str, issuer: str, key: ec.EllipticCurvePublicKey, now: dt.datetime, lifetime: dt.timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """Return a key in PKCS#8, the form that Kafka reads."""
    kind, protection = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, kind, protection).decode("ascii")


class Vault:
    """The Secrets of one release."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/secrets"
        self._name = name

    def read(self, suffix: str) -> Files | None:
        """Return the content of a Secret; None if it does not exist. Raises SecretError."""
        try:
            found = self._api.get(f"{self._path}/{self._name}-{suffix}")
        except urllib.error.HTTPError as error:
            if error.code != NOT_FOUND:
                raise
            return None
        try:
            return {key: base64.b64decode(value).decode() for key, value in found.get("data", {}).items()}
        except ValueError:
            raise SecretError(f"the Secret {self._name}-{suffix} is not text") from None

    def create(self, suffix: str, files: Files) -> None:
        """Create a Secret."""
        metadata = {"name": f"{self._name}-{suffix}", "labels": {"app.kubernetes.io/name": "steward"}}
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": _encoded(files)}
        self._api.create(self._path, body)
        sys.stdout.write(f"created the Secret {self._name}-{suffix}\n")

    def replace(self, suffix: str, files: Files) -> None:
        """Change the content of a Secret."""
        self._api.patch(f"{self._path}/{self._name}-{suffix}", {"data": _encoded(files)})
        sys.stdout.write(f"renewed the Secret {self._name}-{suffix}\n")

    def fail(self, suffix: str) -> SecretError:
        """Return the error for a Secret with missing or invalid content."""
        return SecretError(
            f"the Secret {self._name}-{suffix} is incomplete or invalid: restore it from a backup, or delete it to have another one created"
        )


def _encoded(files: Files) -> Files:
    return {key: base64.b64encode(value.encode()).decode("ascii") for key, value in files.items()}


def provide_certificates(vault: Vault, name: str, hosts: list[str], now: dt.datetime) -> None:
    """Create the authority once, and a certificate where there is none that is current. Raises SecretError."""
    kept = vault.read("ca-key")
    try:
        authority = Authority.create(f"{name}-ca", now) if kept is None else Authority.read(kept)
    except (KeyError, TypeError, ValueError):
        raise vault.fail("ca-key") from None
    if kept is None:
        vault.create("ca-key", authority.files())
    public = {"ca.crt": authority.files()["tls.crt"]}
    shown = vault.read("ca")
    if shown is None:
        vault.create("ca", public)
    elif shown.get("ca.crt") != public["ca.crt"]:
        vault.replace("ca", public)
    certificate = vault.read("tls")
    if certificate is None:
        vault.create("tls", authority.sign(name, hosts, now))
        return
    try:
        current = authority.is_current(certificate, hosts, now)
    except (KeyError, ValueError, x509.ExtensionNotFound):
        current = False
    if not current:
        vault.replace("tls", authority.sign(name, hosts, now))


def provide_user(vault: Vault, user: str) -> None:
    """Create the release's own user with a random password; an existing password is kept. Raises SecretError."""
    kept = vault.read("user")
    if kept is None:
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        vault.create("user", {"username": user, "password": password, "users": f"{user}:{password}\n"})
    elif not kept.get("password") or kept.get("users", "").strip() != f"{user}:{kept['password']}":
        raise vault.fail("user")


def main(namespace: str, name: str, hosts: str, user: str) -> int:
    """Create what is missing and return the exit code."""
    vault = Vault(own_api(), namespace, name)
    try:
        if hosts:
            provide_certificates(vault, name, hosts.split(","), dt.datetime.now(dt.UTC))
        if user:
            provide_user(vault, user)
    except (OSError, SecretError) as error:
        sys.stderr.write(f"failed to create the Secrets of the release: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
