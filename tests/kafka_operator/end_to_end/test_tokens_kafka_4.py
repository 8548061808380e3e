"""Logins with tokens (OAUTHBEARER) at a stock Kafka 4.3 over TLS, whose own validator checks unsigned tokens (KIP-255).

Its authorizer gives a user no right without an ACL: what the operator reports then, and the rights that the sampler needs (docs/sampling.md).
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from balance_analytics.sampling.sample import take_sample
from balance_analytics.sampling.settings import NODE_SETTINGS
from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.login import make_credentials
from kafka_operator.admin.port import ConnectionRejectedError
from kafka_operator.admin.tls import make_context
from kafka_operator.decide.kafka.observed import Failure, Unavailable
from kafka_operator.importing.client_config import security_of
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.security import BearerToken, ClientCredentials, Login, Security
from kafka_wire.net.cluster import ClusterClient, parse_bootstrap
from lab.peers.authority import Authority
from lab.peers.kraft import KraftNode, kraft_cluster
from lab.peers.steward import ROOT
from tests.kafka_operator.stock import PATIENCE_S, Stock

pytestmark = pytest.mark.kafka

TOKENS = "TOKENS"
"""Name of the listener."""
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="module")
def node(authority: Authority) -> Iterator[KraftNode]:
    """A broker that accepts unsigned tokens on a listener with TLS; only the other listeners have rights."""
    store = authority.store("token-broker", "/CN=broker")
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


def token(*, lifetime_s: int = 3_600, user: str = "steward") -> str:
    """Return an unsigned JWT (RFC 7519, section 6)."""
    now_s = int(time.time())
    parts = ({"alg": "none"}, {"sub": user, "iat": now_s, "exp": now_s + lifetime_s})
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


POLL_S = 0.05
SAMPLED, SAMPLES, GROUP = "sampled", "__samples_of_a_user", "readers"

RIGHTS = {
    "topics": (ResourceType.TOPIC, "*", AclOperation.DESCRIBE),
    "sizes": (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
    "committed": (ResourceType.GROUP, "*", AclOperation.DESCRIBE),
    "create": (ResourceType.TOPIC, SAMPLES, AclOperation.CREATE),
    "write": (ResourceType.TOPIC, SAMPLES, AclOperation.WRITE),
}
"""All rights of the sampler, by what is missing without them; confluent_kafka's BROKER is Kafka's resource type CLUSTER."""


def acl(right: str) -> AclBinding:
    """Return the ACL that allows one right to the user `sampler`."""
    kind, name, operation = RIGHTS[right]
    pattern = ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, "User:sampler", "*", operation, AclPermissionType.ALLOW)


def revoke(admin: AdminClient, right: str) -> None:
    """Delete the ACL of one right."""
    kind, name, operation = RIGHTS[right]
    found = AclBindingFilter(
        kind, name, ResourcePatternType.LITERAL, "User:sampler", "*", operation, AclPermissionType.ALLOW
    )
    for done in admin.delete_acls([found]).values():
        done.result(PATIENCE_S)


@pytest.fixture(scope="module")
def owner(node: KraftNode) -> AdminClient:
    """The owner of the cluster, which has a topic with data, and a group with a committed offset."""
    servers = {"bootstrap.servers": f"127.0.0.1:{node.port}"}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(SAMPLED, 1, 1)])[SAMPLED].result(PATIENCE_S)
    stock = Stock(servers["bootstrap.servers"])
    stock.fill(SAMPLED, 1)
    stock.commit(GROUP, SAMPLED, 1)
    return admin


async def wait_for_missing(client: ClusterClient, expected: set[str]) -> None:
    """Take samples until exactly this is missing: brokers apply ACLs a moment after the controller."""
    async with asyncio.timeout(PATIENCE_S):
        found = await missing_data(client)
        while found != expected:
            await asyncio.sleep(POLL_S)
            found = await missing_data(client)


async def missing_data(client: ClusterClient) -> set[str]:
    """Return what is missing in a sample of the topic."""
    loop = asyncio.get_running_loop()
    sample = await take_sample(client, 0, deadline=loop.time() + PATIENCE_S, now_ms=lambda: 0, with_committed=True)
    if SAMPLED not in sample.samples.topics:
        return {"topics"}
    return {f"{kind}/{reason}" for kind, reason in sample.missing_data.counts}


@pytest.mark.shows("F23")
async def test_the_sampler_needs_the_rights_of_the_page_and_no_others(
    node: KraftNode, owner: AdminClient, authority: Authority, tmp_path: Path
) -> None:
    """The command stores a complete sample with them; without any one of them something is missing (Kafka's ACLs, KIP-11)."""
    for done in owner.create_acls([acl(right) for right in RIGHTS]).values():
        done.result(PATIENCE_S)
    path = tmp_path / "token"
    path.write_text(token(user="sampler"))
    path.chmod(0o600)
    server = f"127.0.0.1:{node.ports[TOKENS]}"

    def sampled(topic: str) -> tuple[int, str]:
        options = [f"--bootstrap-server={server}", "--once", f"--topic={topic}", "--security-protocol=SASL_SSL"]
        login = [f"--broker-tls-ca={authority.certificate}", "--broker-sasl-mechanism=OAUTHBEARER"]
        command = [sys.executable, "-m", "steward", "sampler", *options, *login, f"--broker-sasl-token-file={path}"]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env={"PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}", "PATH": ""},
        )
        return done.returncode, done.stderr

    code, log = await asyncio.to_thread(sampled, SAMPLES)
    assert (code, "Sample is incomplete" in log) == (0, False), log
    refused, message = await asyncio.to_thread(sampled, "__other_samples")
    assert (refused, "TOPIC_AUTHORIZATION_FAILED" in message) == (1, True), message

    login = security(authority, BearerToken(token(user="sampler")))
    settings = replace(NODE_SETTINGS, ssl=make_context(login), sasl=make_credentials(login))
    client = ClusterClient(parse_bootstrap([server]), settings)
    missing = {"topics": "topics", "sizes": "sizes/not_allowed", "committed": "committed/not_allowed"}
    try:
        for right, expected in missing.items():
            revoke(owner, right)
            await wait_for_missing(client, {expected})
            for done in owner.create_acls([acl(right)]).values():
                done.result(PATIENCE_S)
            await wait_for_missing(client, set())
    finally:
        await client.close()
