"""Connections to Kafka clusters."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kafka_node.security.aws_identity import AwsIdentity
from kafka_operator.admin.login import make_credentials
from kafka_operator.admin.port import (
    AdminError,
    CallRefusedError,
    ClusterUnreachableError,
    ConnectionRejectedError,
    ControllerUnavailableError,
)
from kafka_operator.admin.tls import make_context
from kafka_operator.decide.kafka.observed import Failure, ObservedCluster, Unavailable
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import BACKOFF_CAP_S, ClusterUnavailableError, ConnectionPool
from kafka_operator.engine.credentials import MAX_AGE_S, Credentials
from kafka_operator.resources.cluster import read_cluster
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.security import PLAINTEXT, BearerToken, ClientCredentials, Login, Security
from kafka_wire.net.cluster import parse_bootstrap
from lab.peers.authority import Authority
from reconciler.kube.port import KubeError, NotFoundError, RefusedError, UnavailableError
from tests.kafka_operator.makers import CREATED, DELETED, cluster, raw_cluster

MAIN = ClusterRef("shop", "main")


class FakeAdmin:
    """Responds, or fails as configured."""

    def __init__(self, servers: Sequence[str], security: Security = PLAINTEXT) -> None:
        self.servers = tuple(servers)
        self.security = security
        self.calls = 0
        self.failure: AdminError | None = None
        self.closed = False

    async def describe_cluster(self) -> ObservedCluster:
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        return ObservedCluster("abc", 1, (1,))

    async def close(self) -> None:
        self.closed = True


class Place:
    """A connection pool over fakes, and a clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.cache = Cache()
        self.admins: list[FakeAdmin] = []
        self.secrets: dict[tuple[str, str], dict[str, bytes]] = {}
        self.kube_failure: KubeError | None = None
        self.asked = 0
        credentials = Credentials(self, lambda: self.now_s)
        self.connections = ConnectionPool(self.cache, credentials, self._connect, lambda: self.now_s, random.Random(1))

    def _connect(self, servers: Sequence[str], security: Security) -> FakeAdmin:
        make_context(security)
        make_credentials(security)
        parse_bootstrap(servers)
        self.admins.append(FakeAdmin(servers, security))
        return self.admins[-1]

    async def get_secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        self.asked += 1
        if self.kube_failure is not None:
            raise self.kube_failure
        if (namespace, name) not in self.secrets:
            raise NotFoundError(name)
        return self.secrets[namespace, name]

    def learn(self, version: str = "6", *, deleted: bool = False, **spec: Any) -> None:
        """Change the connection of Cluster `main`."""
        raw = raw_cluster(**spec)
        raw["metadata"] |= {"uid": "uid-c", "resourceVersion": version, "creationTimestamp": CREATED}
        if deleted:
            raw["metadata"] |= {"deletionTimestamp": DELETED, "finalizers": ["foreign"]}
        self.cache.store(read_cluster(raw))

    async def poll(self) -> ObservedCluster:
        return await self.connections.use(MAIN, lambda admin: admin.describe_cluster())

    async def reason(self) -> tuple[str, bool]:
        with pytest.raises(ClusterUnavailableError) as caught:
            await self.poll()
        return caught.value.unavailable.reason, caught.value.unavailable.definite


async def test_a_missing_cluster_is_reported() -> None:
    """ClusterNotFound."""
    assert await Place().reason() == ("ClusterNotFound", True)


async def test_a_port_that_does_not_exist_is_reported() -> None:
    """The schema of a Cluster admits any number of five digits."""
    place = Place()
    place.learn(bootstrapServers=["kafka:99999"])

    with pytest.raises(ClusterUnavailableError) as caught:
        await place.poll()
    assert caught.value.unavailable == Unavailable(
        "ClusterUnreachable", "spec.bootstrapServers: the bootstrap server 'kafka:99999' is not HOST:PORT."
    )


async def test_one_connection_serves_all_calls() -> None:
    """Opened at the first one."""
    place = Place()
    place.cache.store(cluster())

    for _ in range(5):
        await place.poll()

    assert [admin.calls for admin in place.admins] == [5]


async def test_a_dead_cluster_costs_one_attempt_for_all() -> None:
    """A thousand Topics do not knock a thousand times; the words name no passing detail."""
    place = Place()
    place.cache.store(cluster())
    await place.poll()
    (admin,) = place.admins
    admin.failure = ClusterUnreachableError("connection refused by broker 7")
    for _ in range(100):
        assert await place.reason() == ("ClusterUnreachable", True)
    assert admin.calls == 2
    place.now_s += 1
    await place.reason()
    assert admin.calls == 3
    admin.failure = None
    place.now_s += 2 * BACKOFF_CAP_S
    assert await place.poll() == ObservedCluster("abc", 1, (1,))
    assert await place.poll() == ObservedCluster("abc", 1, (1,))


async def test_a_missing_controller_is_a_transient_problem() -> None:
    """A failover; the connection stays open."""
    place = Place()
    place.cache.store(cluster())
    await place.poll()
    place.admins[0].failure = ControllerUnavailableError("connection refused")

    assert await place.reason() == ("ControllerUnavailable", False)
    assert await place.reason() == ("ControllerUnavailable", False)
    assert place.admins[0].calls == 3


async def test_a_refused_call_keeps_the_brokers_message() -> None:
    """CLUSTER_AUTHORIZATION_FAILED."""
    place = Place()
    place.cache.store(cluster())
    await place.poll()
    place.admins[0].failure = CallRefusedError(Failure(31, "CLUSTER_AUTHORIZATION_FAILED", "Not allowed."))

    with pytest.raises(ClusterUnavailableError) as caught:
        await place.poll()

    assert (caught.value.unavailable.reason, caught.value.unavailable.message) == ("NotAuthorized", "Not allowed.")


async def test_a_changed_address_makes_a_new_connection_and_closes_the_old_one() -> None:
    """No restart is needed."""
    place = Place()
    place.cache.store(cluster())
    await place.poll()
    raw = raw_cluster("main", "new:9092")
    raw["metadata"] |= {"uid": "uid-c", "resourceVersion": "99", "creationTimestamp": "2026-01-01T00:00:00Z"}
    place.cache.store(read_cluster(raw))
    await place.poll()

    assert [admin.closed for admin in place.admins] == [True, False]
    assert place.admins[1].servers == ("new:9092",)
    await place.connections.close()
    assert place.admins[1].closed


SCRAM = {"type": "ScramSHA512", "secretRef": {"name": "user"}}
USER = ("shop", "user")


async def test_a_login_is_read_from_its_secret_and_rotated_with_no_restart() -> None:
    """Features: SCRAM from Secrets; the connection is renewed when the Secret's content changes, and at no other time."""
    place = Place()
    place.learn(authentication=SCRAM)
    place.secrets[USER] = {"username": b"steward\n", "password": b"first"}
    await place.poll()
    place.now_s += MAX_AGE_S
    await place.poll()
    assert [admin.security for admin in place.admins] == [Security(login=Login("SCRAM-SHA-512", "steward", "first"))]

    place.secrets[USER] = {"username": b"steward", "password": b"second"}
    await place.poll()
    assert len(place.admins) == 1  # it is not read again at each call
    place.now_s += MAX_AGE_S
    await place.poll()

    assert place.admins[1].security == Security(login=Login("SCRAM-SHA-512", "steward", "second"))
    assert [admin.closed for admin in place.admins] == [True, False]
    assert place.asked == 3


async def test_a_cluster_without_secrets_asks_for_none() -> None:
    """Least privilege: no right on Secrets is needed then."""
    place = Place()
    place.learn(tls={})
    await place.poll()

    assert place.asked == 0
    assert [admin.security for admin in place.admins] == [Security(tls=True)]


@pytest.mark.parametrize(
    ("secret", "failure", "reason", "message"),
    [
        (None, None, "SecretNotFound", "Namespace shop has no Secret user, which Cluster main refers to."),
        ({"username": b"u"}, None, "BadSecret", "Secret shop/user has no key password; it has username."),
        ({"username": b"u", "password": b""}, None, "BadSecret", "Key password of Secret shop/user is empty."),
        ({"username": b"u", "password": b"\xff\xfe"}, None, "BadSecret", "is not valid UTF-8."),
        (
            None,
            RefusedError("forbidden"),
            "SecretNotAllowed",
            "The operator is not allowed to get Secret shop/user (RBAC).",
        ),
        (
            None,
            UnavailableError("timeout"),
            "SecretNotRead",
            "The Kubernetes API does not respond to requests for Secret shop/user.",
        ),
    ],
)
async def test_a_problem_of_a_secret_is_reported(
    secret: dict[str, bytes] | None, failure: KubeError | None, reason: str, message: str
) -> None:
    """A Secret without its key. What happened, to what, and what to do."""
    place = Place()
    place.learn(authentication=SCRAM)
    if secret is not None:
        place.secrets[USER] = secret
    place.kube_failure = failure

    with pytest.raises(ClusterUnavailableError) as caught:
        await place.poll()

    assert reason == caught.value.unavailable.reason
    assert message in caught.value.unavailable.message
    assert place.admins == []


async def test_a_token_is_read_from_its_secret_and_replaced_with_it() -> None:
    """OAUTHBEARER: a new token in the Secret opens a new connection."""
    place = Place()
    place.learn(tls={}, authentication={"type": "OAuthBearer", "secretRef": {"name": "steward"}})
    place.secrets[USER[0], "steward"] = {"token": b"first\n"}
    await place.poll()
    place.secrets[USER[0], "steward"] = {"token": b"second\n"}
    place.now_s += MAX_AGE_S
    await place.poll()

    assert [admin.security.login for admin in place.admins] == [BearerToken("first"), BearerToken("second")]
    assert "first" not in repr(place.admins[0].security)


async def test_a_client_of_a_token_endpoint_is_read_from_its_secrets(authority: Authority) -> None:
    """Id and secret of the client, and the certificate authorities of the endpoint."""
    place = Place()
    endpoint = {"url": "https://login.example.org/token", "scope": "kafka", "caSecretRef": {"name": "ca", "key": "pem"}}
    secret = {"name": "steward", "clientIdKey": "id"}
    place.learn(tls={}, authentication={"type": "OAuthBearer", "secretRef": secret, "tokenEndpoint": endpoint})
    place.secrets[USER[0], "steward"] = {"id": b"me", "client-secret": b"hunter2\n"}
    assert await place.reason() == ("SecretNotFound", True)

    place.secrets[USER[0], "ca"] = {"pem": authority.certificate.read_bytes()}
    place.now_s += MAX_AGE_S
    await place.poll()

    ca = authority.certificate.read_text(encoding="ascii")
    expected = ClientCredentials("https://login.example.org/token", "me", "hunter2", "kafka", ca)
    assert place.admins[0].security.login == expected
    assert "hunter2" not in repr(expected)


MSK = {"region": "eu-central-1", "roleArn": "arn:aws:iam::123456789012:role/steward"}


@pytest.mark.shows("F74")
async def test_an_access_key_of_aws_is_read_from_its_secret() -> None:
    """Without its secret in any text."""
    place = Place()
    place.learn(tls={}, authentication={"type": "AwsMskIam", "awsMskIam": MSK, "secretRef": {"name": "aws"}})
    place.secrets[USER[0], "aws"] = {"access-key-id": b"AKID\n", "secret-access-key": b"hunter2\n"}

    await place.poll()

    expected = AwsIdentity("eu-central-1", "AKID", "hunter2", MSK["roleArn"])
    assert place.admins[0].security == Security(tls=True, login=expected)
    assert "hunter2" not in repr(expected)


@pytest.mark.shows("F74")
async def test_the_operators_aws_identity_is_only_for_namespaces_that_its_option_names() -> None:
    """The author of a Cluster chooses where the operator's tokens are sent to."""
    place = Place()
    place.learn(tls={}, authentication={"type": "AwsMskIam", "awsMskIam": MSK})

    with pytest.raises(ClusterUnavailableError) as caught:
        await place.poll()
    assert caught.value.unavailable == Unavailable(
        "AwsIdentityNotAllowed",
        "Clusters of namespace shop may not use the operator's own AWS identity. Name the namespace in "
        "operator.awsIdentityNamespaces of the operator's chart (--aws-identity-namespace), or set "
        "spec.authentication.secretRef to a Secret with an access key.",
    )
    assert (place.admins, place.asked) == ([], 0)

    found_cluster = place.cache.cluster(MAIN)
    assert found_cluster is not None
    for allowed in (["shop"], ["*"]):
        found = await Credentials(place, lambda: 0.0, allowed).of(found_cluster)
        assert found == Security(tls=True, login=AwsIdentity("eu-central-1", role_arn=MSK["roleArn"]))


async def test_bad_pem_of_a_token_endpoint_names_the_secret_and_the_key() -> None:
    """Before anything is sent to it."""
    place = Place()
    endpoint = {"url": "https://login.example.org/token", "caSecretRef": {"name": "ca"}}
    secret = {"name": "steward"}
    place.learn(tls={}, authentication={"type": "OAuthBearer", "secretRef": secret, "tokenEndpoint": endpoint})
    place.secrets[USER[0], "steward"] = {"client-id": b"me", "client-secret": b"hunter2"}
    place.secrets[USER[0], "ca"] = {"ca.crt": b"authorities"}

    with pytest.raises(ClusterUnavailableError) as caught:
        await place.poll()
    assert caught.value.unavailable == Unavailable(
        "BadSecret",
        "Key ca.crt of Secret shop/ca: not a certificate in PEM. Expected -----BEGIN CERTIFICATE----- blocks, one after another.",
    )


async def test_bad_pem_names_the_secret_and_the_key() -> None:
    """The value is not quoted."""
    place = Place()
    place.learn(tls={"caSecretRef": {"name": "ca"}})
    place.secrets["shop", "ca"] = {"ca.crt": b"hunter2"}

    with pytest.raises(ClusterUnavailableError) as caught:
        await place.poll()

    assert caught.value.unavailable.reason == "BadSecret"
    assert caught.value.unavailable.message.startswith("Key ca.crt of Secret shop/ca: not a certificate in PEM.")
    assert "hunter2" not in caught.value.unavailable.message


async def test_while_kubernetes_is_silent_the_last_secret_is_used() -> None:
    """Kafka is managed even if the API server is unavailable for a moment."""
    place = Place()
    place.learn(authentication=SCRAM)
    place.secrets[USER] = {"username": b"u", "password": b"p"}
    await place.poll()
    place.kube_failure = UnavailableError("timeout")
    place.now_s += MAX_AGE_S

    await place.poll()
    assert len(place.admins) == 1


async def test_a_secret_that_goes_with_its_namespace_lets_the_topics_go() -> None:
    """A namespace is deleted kind by kind: what was read last serves a Cluster that is being deleted, until it is gone."""
    place = Place()
    place.learn(authentication=SCRAM)
    place.secrets[USER] = {"username": b"u", "password": b"p"}
    await place.poll()
    place.secrets.clear()
    place.now_s += MAX_AGE_S
    assert await place.reason() == ("SecretNotFound", True)
    place.learn("7", deleted=True, authentication=SCRAM)

    await place.poll()
    assert len(place.admins) == 1

    other = Place()
    other.learn(deleted=True, authentication=SCRAM)
    with pytest.raises(ClusterUnavailableError) as caught:
        await other.poll()
    assert caught.value.unavailable.leaving


async def test_a_refused_login_is_tried_seldom_and_with_the_secret_of_now() -> None:
    """Wrong password: one attempt for all, and the right one is taken up at the next."""
    place = Place()
    place.learn(authentication=SCRAM)
    place.secrets[USER] = {"username": b"u", "password": b"wrong"}
    place.secrets[USER] = {"username": b"u", "password": b"wrong"}
    await place.poll()
    place.admins[0].failure = ConnectionRejectedError(
        "AuthenticationFailed", "Kafka rejected the authentication: by broker 1."
    )
    assert await place.reason() == ("AuthenticationFailed", True)
    place.admins[0].failure = ConnectionRejectedError(
        "AuthenticationFailed", "Kafka rejected the authentication: by broker 2."
    )
    for _ in range(10):
        assert await place.reason() == ("AuthenticationFailed", True)
    place.now_s += 1
    with pytest.raises(ClusterUnavailableError) as caught:
        await place.poll()
    assert caught.value.unavailable.message == "Kafka rejected the authentication: by broker 1."
    assert place.admins[0].calls == 3

    place.secrets[USER] = {"username": b"u", "password": b"right"}
    await place.poll()
    assert (place.admins[1].security.login or Login("", "", "")).password == "right"
