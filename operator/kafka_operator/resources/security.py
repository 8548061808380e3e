"""Connection security of a cluster: TLS, a login, a client certificate.

Both the references in a Cluster (names of Secrets and of keys in them), and the values read there. The values are never shown: they
are left out of every `repr`, and nothing here turns them into text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafka_node.security.aws_identity import AwsIdentity

CA_KEY = "ca.crt"
USERNAME_KEY, PASSWORD_KEY = "username", "password"
"""The keys of a Secret of type kubernetes.io/basic-auth."""

CERTIFICATE_KEY, PRIVATE_KEY_KEY = "tls.crt", "tls.key"
"""The keys of a Secret of type kubernetes.io/tls, which cert-manager and `kubectl create secret tls` write."""

TOKEN_KEY = "token"  # noqa: S105 - the name of a key
CLIENT_ID_KEY, CLIENT_SECRET_KEY = "client-id", "client-secret"
ACCESS_KEY_ID_KEY, SECRET_ACCESS_KEY_KEY = "access-key-id", "secret-access-key"

MUTUAL_TLS, OAUTHBEARER, AWS_MSK_IAM = "MutualTLS", "OAuthBearer", "AwsMskIam"
MECHANISMS = {"Plain": "PLAIN", "ScramSHA256": "SCRAM-SHA-256", "ScramSHA512": "SCRAM-SHA-512"}
"""Types of authentication that are SASL with a password, and Kafka's names of them."""

FORMER_TYPES = {
    "plain": "Plain",
    "scram-sha-256": "ScramSHA256",
    "scram-sha-512": "ScramSHA512",
    "oauthbearer": OAUTHBEARER,
    "mtls": MUTUAL_TLS,
}
"""Values of `authentication.type` that are still accepted, and the current ones."""


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One key of a Secret in the Cluster's namespace."""

    secret: str
    key: str


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS; without `ca` the authorities of the operator's own machine are trusted."""

    ca: SecretKey | None = None


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Where tokens are requested by the client credentials grant; without `ca` the authorities of the operator's own machine are trusted."""

    url: str
    scope: str | None = None
    ca: SecretKey | None = None


@dataclass(frozen=True, slots=True)
class AwsMskIam:
    """Where AWS signs tokens, and the role that is assumed for it."""

    region: str
    role_arn: str | None = None


@dataclass(frozen=True, slots=True)
class Authentication:
    """Credentials of the operator: user and password or a token (SASL), or a certificate and its key."""

    type: str
    user: SecretKey | str | None = None
    """A name as it is, or where it is kept."""
    password: SecretKey | None = None
    certificate: SecretKey | None = None
    private_key: SecretKey | None = None
    token: SecretKey | None = None
    """Without `token_endpoint`."""
    token_endpoint: TokenEndpoint | None = None
    client_id: SecretKey | None = None
    client_secret: SecretKey | None = None
    aws: AwsMskIam | None = None
    access_key_id: SecretKey | None = None
    """None with `aws`: the AWS identity of the operator itself."""
    secret_access_key: SecretKey | None = None

    @property
    def places(self) -> tuple[SecretKey, ...]:
        """Return all keys of Secrets that it refers to."""
        endpoint_ca = None if self.token_endpoint is None else self.token_endpoint.ca
        given = (
            self.user,
            self.password,
            self.certificate,
            self.private_key,
            self.token,
            self.client_id,
            self.client_secret,
            self.access_key_id,
            self.secret_access_key,
        )
        return tuple(place for place in (*given, endpoint_ca) if isinstance(place, SecretKey))


@dataclass(frozen=True, slots=True)
class PrometheusRef:
    """A Prometheus server, and where its authorities and the bearer token are kept."""

    url: str
    ca: SecretKey | None = None
    token: SecretKey | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """A user and its password, for a SASL mechanism as Kafka names it."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token for OAUTHBEARER."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """A client that requests tokens for OAUTHBEARER; `ca` is PEM."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    ca: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate with its chain, and its key, both PEM."""

    chain: str = field(repr=False)
    private_key: str = field(repr=False)


SaslLogin = Login | BearerToken | ClientCredentials | AwsIdentity


@dataclass(frozen=True, slots=True)
class Security:
    """All that a connection needs; `ca` is PEM."""

    tls: bool = False
    ca: str | None = field(default=None, repr=False)
    certificate: ClientCertificate | None = None
    login: SaslLogin | None = None


PLAINTEXT = Security()


def read_tls(raw: Any) -> Tls | None:
    """Read `spec.tls`."""
    if raw is None:
        return None
    return Tls(_ca(raw))


def read_authentication(raw: Any) -> Authentication | None:
    """Read `spec.authentication`."""
    if raw is None:
        return None
    secret = raw.get("secretRef")
    kind = FORMER_TYPES.get(raw["type"], raw["type"])
    if kind == AWS_MSK_IAM and secret is None:
        return Authentication(AWS_MSK_IAM, aws=_aws(raw))

    def at(field_name: str, default: str) -> SecretKey:
        return SecretKey(secret["name"], secret.get(field_name, default))

    if kind == AWS_MSK_IAM:
        access_key_id = at("accessKeyIdKey", ACCESS_KEY_ID_KEY)
        secret_access_key = at("secretAccessKeyKey", SECRET_ACCESS_KEY_KEY)
        return Authentication(
            AWS_MSK_IAM, aws=_aws(raw), access_key_id=access_key_id, secret_access_key=secret_access_key
        )
    if kind == MUTUAL_TLS:
        certificate, private_key = at("certificateKey", CERTIFICATE_KEY), at("privateKeyKey", PRIVATE_KEY_KEY)
        return Authentication(MUTUAL_TLS, certificate=certificate, private_key=private_key)
    if kind == OAUTHBEARER:
        endpoint = raw.get("tokenEndpoint")
        if endpoint is None:
            return Authentication(OAUTHBEARER, token=at("tokenKey", TOKEN_KEY))
        return Authentication(
            OAUTHBEARER,
            token_endpoint=TokenEndpoint(endpoint["url"], endpoint.get("scope"), _ca(endpoint)),
            client_id=at("clientIdKey", CLIENT_ID_KEY),
            client_secret=at("clientSecretKey", CLIENT_SECRET_KEY),
        )
    user = raw.get("username") or at("usernameKey", USERNAME_KEY)
    return Authentication(kind, user=user, password=at("passwordKey", PASSWORD_KEY))


def read_prometheus(raw: Any) -> PrometheusRef | None:
    """Read `spec.prometheus`."""
    if raw is None:
        return None
    token = raw.get("tokenSecretRef")
    return PrometheusRef(
        raw["url"], _ca(raw), None if token is None else SecretKey(token["name"], token.get("key", TOKEN_KEY))
    )


def _aws(raw: Any) -> AwsMskIam:
    given = raw["awsMskIam"]
    return AwsMskIam(given["region"], given.get("roleArn"))


def _ca(raw: Any) -> SecretKey | None:
    """Read a `caSecretRef`."""
    ca = raw.get("caSecretRef")
    return None if ca is None else SecretKey(ca["name"], ca.get("key", CA_KEY))
