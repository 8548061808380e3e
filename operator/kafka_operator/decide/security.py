"""Credentials from Secrets: settings of a connection, or the missing part for the Ready condition.

The words name the Secret and the key, never a value.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_operator.decide.observed import Unavailable
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.security import (
    MECHANISMS,
    MUTUAL_TLS,
    Authentication,
    BearerToken,
    ClientCertificate,
    ClientCredentials,
    Login,
    SecretKey,
    Security,
)

BAD_SECRET = "BadSecret"  # noqa: S105  (a reason)
NOT_FOUND, NOT_ALLOWED, NOT_READ = "SecretNotFound", "SecretNotAllowed", "SecretNotRead"

Secrets = Mapping[str, Mapping[str, bytes]]


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
            words = f"Secret {namespace}/{place.secret} has no key {place.key}; it has {there}."
            raise _BadSecretError(words) from None
        except UnicodeDecodeError:  # its own words quote the value
            words = f"Key {place.key} of Secret {namespace}/{place.secret} is not valid UTF-8."
            raise _BadSecretError(words) from None
        if not found.strip():
            raise _BadSecretError(f"Key {place.key} of Secret {namespace}/{place.secret} is empty.")
        return found

    try:
        ca = None if cluster.tls is None or cluster.tls.ca is None else text(cluster.tls.ca)
        certificate: ClientCertificate | None = None
        login: Login | BearerToken | ClientCredentials | None = None
        authentication = cluster.authentication
        if authentication is not None and authentication.type == MUTUAL_TLS:
            assert authentication.certificate is not None, cluster.key
            assert authentication.private_key is not None, cluster.key
            certificate = ClientCertificate(text(authentication.certificate), text(authentication.private_key))
        elif authentication is not None and authentication.token is not None:
            login = BearerToken(text(authentication.token).strip())
        elif authentication is not None and authentication.token_endpoint is not None:
            assert authentication.client_id is not None, cluster.key
            assert authentication.client_secret is not None, cluster.key
            endpoint = authentication.token_endpoint
            login = ClientCredentials(
                endpoint.url,
                _line(text(authentication.client_id)),
                _line(text(authentication.client_secret)),
                endpoint.scope,
                None if endpoint.ca is None else text(endpoint.ca),
            )
        elif authentication is not None:
            assert authentication.password is not None, cluster.key
            assert authentication.user is not None, cluster.key
            user = authentication.user
            login = Login(
                MECHANISMS[authentication.type],
                user if isinstance(user, str) else _line(text(user)),
                _line(text(authentication.password)),
            )
    except _BadSecretError as error:
        return Unavailable(BAD_SECRET, str(error))
    return Security(tls=cluster.tls is not None, ca=ca, certificate=certificate, login=login)


def secret_not_found(cluster: Cluster, name: str) -> Unavailable:
    """Return the words for a Secret that is not there."""
    message = (
        f"Namespace {cluster.key.namespace} has no Secret {name}, which Cluster {cluster.key.name} refers to. Create it: "
        "the operator checks for it every few seconds."
    )
    return Unavailable(NOT_FOUND, message, leaving=cluster.metadata.deleted is not None)


def secret_not_allowed(cluster: Cluster, name: str) -> Unavailable:
    """Return the words for a Secret that the operator may not get."""
    message = (
        f"The operator is not allowed to get Secret {cluster.key.namespace}/{name} (RBAC). Name it in operator.secrets of the operator's "
        "chart, or grant the operator's account the verb get on it."
    )
    return Unavailable(NOT_ALLOWED, message, leaving=cluster.metadata.deleted is not None)


def secret_not_read(cluster: Cluster, name: str) -> Unavailable:
    """Return the words for a Secret that the API server did not give; that passes by itself."""
    message = f"The Kubernetes API does not respond to requests for Secret {cluster.key.namespace}/{name}."
    return Unavailable(NOT_READ, message, definite=False)


def bad_part(cluster: Cluster, part: str, words: str) -> Unavailable:
    """Return the words for PEM that cannot be used: authorities (`ca`, `endpoint_ca`), the `certificate`, or its `key`."""
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
    return Unavailable(BAD_SECRET, f"{where}{words}")


def _line(text: str) -> str:
    """Drop the line's end that editors and `echo` leave behind; spaces may belong to a password."""
    return text.rstrip("\r\n")
