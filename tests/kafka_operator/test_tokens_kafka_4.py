"""Logins with tokens (OAUTHBEARER) at a stock Kafka 4.3 over TLS, whose own validator checks unsigned tokens (KIP-255)."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp import web

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import ConnectionRejectedError
from kafka_operator.decide.observed import Failure, Unavailable
from kafka_operator.importing.client_config import security_of
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.security import BearerToken, ClientCredentials, Login, Security
from lab.kraft import KraftNode, kraft_cluster
from tests.kafka_wire.net.authority import Authority

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

TOKENS = "TOKENS"
"""Name of the listener."""
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="module")
def node(authority: Authority) -> Iterator[KraftNode]:
    """A broker that accepts unsigned tokens on a listener with TLS; only the other listeners have rights."""
    certificate, key = authority.sign("token-broker", "/CN=broker")
    store = authority.folder / "token-broker-store.pem"
    store.write_text(key.read_text() + certificate.read_text())
    prefix = f"listener.name.{TOKENS.lower()}"
    settings = {
        f"{prefix}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}.oauthbearer.sasl.jaas.config": f'{MODULE} required unsecuredLoginStringClaim_sub="broker";',
        f"{prefix}.ssl.keystore.type": "PEM",
        f"{prefix}.ssl.keystore.location": str(store),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with kraft_cluster((1,), settings=settings, listeners={TOKENS: "SASL_SSL"}) as cluster:
        yield cluster.broker(1)


def token(*, lifetime_s: int = 3_600) -> str:
    """Return an unsigned JWT (RFC 7519, section 6)."""
    now_s = int(time.time())
    parts = ({"alg": "none"}, {"sub": "steward", "iat": now_s, "exp": now_s + lifetime_s})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."


def security(authority: Authority, login: BearerToken | ClientCredentials | Login) -> Security:
    """TLS with the tests' authority, and a login."""
    return Security(tls=True, ca=authority.certificate.read_text(encoding="ascii"), login=login)


@pytest.mark.shows("F45")
async def test_a_user_without_rights_sees_neither_the_quorum_nor_log_directories(
    node: KraftNode, authority: Authority
) -> None:
    """DescribeQuorum and DescribeLogDirs need Describe on the cluster, Metadata needs no right; the message names the missing right."""
    admin = KafkaAdmin([f"127.0.0.1:{node.ports[TOKENS]}"], KafkaMetrics(), security(authority, BearerToken(token())))
    try:
        seen = await admin.describe_cluster()
        log_dirs = await admin.describe_log_dir_states(seen.broker_ids)
    finally:
        await admin.close()

    assert (seen.broker_ids, seen.controller_id) == ((1,), -1)
    assert isinstance(seen.quorum, Unavailable)
    assert seen.quorum.reason == "QuorumNotVisible"
    assert seen.quorum.message.endswith("Grant the operator's user the operation Describe on the cluster.")
    refused = log_dirs[1]
    assert isinstance(refused, Failure)
    assert refused.name == "CLUSTER_AUTHORIZATION_FAILED"


async def brokers_seen(node: KraftNode, security: Security) -> tuple[int, ...]:
    """Return the brokers that the operator sees."""
    admin = KafkaAdmin([f"127.0.0.1:{node.ports[TOKENS]}"], KafkaMetrics(), security)
    try:
        return (await admin.describe_cluster()).broker_ids
    finally:
        await admin.close()


@pytest.fixture
async def endpoint(authority: Authority) -> AsyncIterator[str]:
    """A token endpoint that knows the client `steward` with the secret `right`; its address."""

    async def answer(request: web.Request) -> web.Response:
        if request.headers["Authorization"] != "Basic " + base64.b64encode(b"steward:right").decode():
            return web.json_response({"error": "invalid_client"}, status=401)
        return web.json_response({"access_token": token(), "expires_in": 3_600})

    application = web.Application()
    application.router.add_post("/token", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("token-endpoint", "/CN=endpoint"))
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}/token"
    await runner.cleanup()


async def test_a_token_of_a_secret_is_accepted(node: KraftNode, authority: Authority) -> None:
    """KIP-255."""
    assert await brokers_seen(node, security(authority, BearerToken(token()))) == (1,)


async def test_a_token_of_an_endpoint_is_accepted(node: KraftNode, authority: Authority, endpoint: str) -> None:
    """The client credentials grant of KIP-768, over TLS with the authorities of the Cluster."""
    ca = authority.certificate.read_text(encoding="ascii")

    assert await brokers_seen(node, security(authority, ClientCredentials(endpoint, "steward", "right", None, ca))) == (
        1,
    )


async def test_the_properties_of_kafkas_tools_request_a_token(
    node: KraftNode, authority: Authority, endpoint: str
) -> None:
    """The file for --command-config of `steward import` and `steward what-if`, with the names of KIP-768 and KIP-1139."""
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.certificate)}
    options = " ".join(f'{name}="{value}"' for name, value in trust.items())
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULE} required {options};",
        "sasl.oauthbearer.token.endpoint.url": endpoint,
        "sasl.oauthbearer.client.credentials.client.id": "steward",
        "sasl.oauthbearer.client.credentials.client.secret": "right",
    }

    assert await brokers_seen(node, security_of(properties | trust)) == (1,)


async def test_an_expired_token_is_reported(node: KraftNode, authority: Authority) -> None:
    """With the error of the broker's validator, and without the token."""
    expired = token(lifetime_s=-60)
    with pytest.raises(ConnectionRejectedError) as caught:
        await brokers_seen(node, security(authority, BearerToken(expired)))

    assert caught.value.reason == "AuthenticationFailed"
    assert caught.value.message.startswith(
        "Kafka rejected the authentication: OAUTHBEARER authentication of a token with "
    )
    assert "invalid_token" in caught.value.message
    assert expired not in caught.value.message


async def test_an_endpoint_that_refuses_the_client_is_reported(
    node: KraftNode, authority: Authority, endpoint: str
) -> None:
    """Kafka is not asked; the message names the endpoint and its error."""
    ca = authority.certificate.read_text(encoding="ascii")
    with pytest.raises(ConnectionRejectedError) as caught:
        await brokers_seen(node, security(authority, ClientCredentials(endpoint, "steward", "hunter2", None, ca)))

    assert caught.value.message == (
        f"There is no token: the token endpoint {endpoint} returned status 401: invalid_client. "
        "Check spec.authentication and its Secret."
    )


async def test_a_password_where_tokens_are_required_is_reported(node: KraftNode, authority: Authority) -> None:
    """The message names the mechanisms of the listener."""
    with pytest.raises(ConnectionRejectedError, match="it offers OAUTHBEARER"):
        await brokers_seen(node, security(authority, Login("PLAIN", "steward", "password")))
