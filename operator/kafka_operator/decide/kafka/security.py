"""Credentials from Secrets: settings of a connection, or the missing part for the Ready condition.

The messages name the Secret and the key, never a value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kafka_node.security.aws_identity import AwsIdentity
from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.security import (
    MECHANISMS,
    MUTUAL_TLS,
    Authentication,
    BearerToken,
    ClientCertificate,
    ClientCredentials,
    Login,
    SaslLogin,
    SecretKey,
    Security,
)

BAD_SECRET = "BadSecret"  # noqa: S105  (a reason)
NO_AWS_IDENTITY = "AwsIdentityNotAllowed"
NOT_FOUND, NOT_ALLOWED, NOT_READ = "SecretNotFound", "SecretNotAllowed", "SecretNotRead"

EVERY_NAMESPACE = "*"

Secrets = Mapping[str, Mapping[str, bytes]]

Text = Callable[[SecretKey], str]
"""Returns the text of a key of a Secret. Raises _BadSecretError."""


class _BadSecretError(Exception):
    """A key is missing or not text."""


def read_security(cluster: Cluster, secrets: Secrets) -> Security | Unavailable:
    """Return what the Secrets hold; `secrets` has all that the Cluster names."""
    namespace = cluster.key.namespace

    def text(place: SecretKey) -> str:
        try:
            found = secrets[place.secret][place.key].decode()
        except KeyError:
            there = ", ".join(sorted(secrets[place.secret])) or "none at all"
            message = f"Secret {namespace}/{place.secret} has no key {place.key}; it has {there}."
            raise _BadSecretError(message) from None
        except UnicodeDecodeError:  # its message quotes the value
            message = f"Key {place.key} of Secret {namespace}/{place.secret} is not valid UTF-8."
            raise _BadSecretError(message) from None
        if not found.strip():
            raise _BadSecretError(f"Key {place.key} of Secret {namespace}/{place.secret} is empty.")
        return found

    try:
        ca = None if cluster.tls is None or cluster.tls.ca is None else text(cluster.tls.ca)
        authentication = cluster.authentication
        certificate: ClientCertificate | None = None
        login: SaslLogin | None = None
        if authentication is not None and authentication.type == MUTUAL_TLS:
            certificate = _certificate(authentication, text)
        elif authentication is not None:
            login = _login(authentication, text)
    except _BadSecretError as error:
        return Unavailable(BAD_SECRET, str(error))
    return Security(tls=cluster.tls is not None, ca=ca, certificate=certificate, login=login)


def _certificate(authentication: Authentication, text: Text) -> ClientCertificate:
    assert authentication.certificate is not None, "type MutualTLS"
    assert authentication.private_key is not None, "type MutualTLS"
    return ClientCertificate(text(authentication.certificate), text(authentication.private_key))


def _login(authentication: Authentication, text: Text) -> SaslLogin:
    """Return what a mechanism of SASL needs; each type of authentication has the places that are read here."""

    def line(place: SecretKey | str | None) -> str:
        """Drop the line's end that editors and `echo` leave behind; spaces may belong to a password."""
        assert place is not None, authentication.type
        return place if isinstance(place, str) else text(place).rstrip("\r\n")

    if authentication.token is not None:
        return BearerToken(text(authentication.token).strip())
    if authentication.token_endpoint is not None:
        endpoint = authentication.token_endpoint
        ca = None if endpoint.ca is None else text(endpoint.ca)
        client_id, client_secret = line(authentication.client_id), line(authentication.client_secret)
        return ClientCredentials(endpoint.url, client_id, client_secret, endpoint.scope, ca)
    if authentication.aws is not None:
        region, role_arn = authentication.aws.region, authentication.aws.role_arn
        if authentication.access_key_id is None:
            return AwsIdentity(region, role_arn=role_arn)
        key_id, secret_key = line(authentication.access_key_id), line(authentication.secret_access_key)
        return AwsIdentity(region, key_id, secret_key, role_arn)
    user, password = line(authentication.user), line(authentication.password)
    return Login(MECHANISMS[authentication.type], user, password)


def aws_identity_refused(cluster: Cluster, allowed: Collection[str]) -> Unavailable | None:
    """Return the message for a Cluster that may not use the operator's own AWS identity, None if it may or does not ask for it.

    `allowed` are namespaces, or `*`. The author of a Cluster chooses the address that its tokens are sent to.
    """
    authentication = cluster.authentication
    if authentication is None or authentication.aws is None or authentication.access_key_id is not None:
        return None
    if {cluster.key.namespace, EVERY_NAMESPACE} & set(allowed):
        return None
    message = (
        f"Clusters of namespace {cluster.key.namespace} may not use the operator's own AWS identity. Name the namespace in "
        "operator.awsIdentityNamespaces of the operator's chart (--aws-identity-namespace), or set "
        "spec.authentication.secretRef to a Secret with an access key."
    )
    return Unavailable(NO_AWS_IDENTITY, message, leaving=cluster.metadata.deleted is not None)


def secret_not_found(cluster: Cluster, name: str) -> Unavailable:
    """Return the message for a Secret that is not there."""
    message = (
        f"Namespace {cluster.key.namespace} has no Secret {name}, which Cluster {cluster.key.name} refers to. Create it: "
        "the operator checks for it every few seconds."
    )
    return Unavailable(NOT_FOUND, message, leaving=cluster.metadata.deleted is not None)


def secret_not_allowed(cluster: Cluster, name: str) -> Unavailable:
    """Return the message for a Secret that the operator may not get."""
    message = (
        f"The operator is not allowed to get Secret {cluster.key.namespace}/{name} (RBAC). Name it in operator.secrets of the operator's "
        "chart, or grant the operator's account the verb get on it."
    )
    return Unavailable(NOT_ALLOWED, message, leaving=cluster.metadata.deleted is not None)


def secret_not_read(cluster: Cluster, name: str) -> Unavailable:
    """Return the message for a Secret that the API server did not give; that passes by itself."""
    message = f"The Kubernetes API does not respond to requests for Secret {cluster.key.namespace}/{name}."
    return Unavailable(NOT_READ, message, definite=False)


def bad_part(cluster: Cluster, part: str, message: str) -> Unavailable:
    """Return the message for PEM that cannot be used: authorities (`ca`, `endpoint_ca`), the `certificate`, or its `key`."""
    authentication = cluster.authentication or Authentication("")
    ca = None if cluster.tls is None else cluster.tls.ca
    endpoint = authentication.token_endpoint
    places = {
        "ca": ca,
        "endpoint_ca": None if endpoint is None else endpoint.ca,
        "certificate": authentication.certificate,
        "key": authentication.private_key,
    }
    place = places[part]
    where = "" if place is None else f"Key {place.key} of Secret {cluster.key.namespace}/{place.secret}: "
    return Unavailable(BAD_SECRET, f"{where}{message}")
