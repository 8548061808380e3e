"""Listeners of the controller with TLS and SASL, configured from files."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from controller_core.shell.front.front import Front, open_front
from controller_core.zookeeper_mode.apis import SERVED
from kafka_node.context import RequestContext
from kafka_node.security.brokers import broker_security
from kafka_node.security.listeners import demands_of
from kafka_node.security.settings import SecuritySettings
from kafka_wire import ApiKey, Body
from kafka_wire.net.client import AuthenticationFailed, Connection, ConnectionFailed, SaslCredentials
from lab.peers.authority import Authority
from tests.kafka_node.security.samples import NoScramUsers, security_files


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> SecuritySettings:
    """Settings in files, for listeners and for connections to brokers."""
    return security_files(authority, tmp_path)


async def return_principal(context: RequestContext, _body: Body) -> Body:
    """Answer DescribeCluster with the principal as cluster id."""
    return {"cluster_id": context.principal}


@pytest.fixture
async def listen(files: SecuritySettings) -> AsyncIterator[Callable[..., Any]]:
    """Open fronts with a security protocol; closed after the test."""
    fronts: list[Front] = []

    async def start(protocol: str) -> Front:
        demands = demands_of({protocol}, files, NoScramUsers())[protocol]
        handlers = {ApiKey.DESCRIBE_CLUSTER: return_principal}
        front = await open_front("CLIENT", "127.0.0.1", 0, handlers, lambda: (), served=SERVED, demands=demands)
        fronts.append(front)
        return front

    yield start
    for front in fronts:
        await front.close(grace_ms=1)


@pytest.mark.parametrize(
    ("protocol", "principal"),
    [
        ("PLAINTEXT", "User:ANONYMOUS"),
        ("SSL", "User:ANONYMOUS"),
        ("SASL_PLAINTEXT", "User:controller"),
        ("SASL_SSL", "User:controller"),
    ],
)
async def test_controller_connects_to_its_listeners_by_each_protocol(
    protocol: str, principal: str, files: SecuritySettings, listen: Callable[..., Any]
) -> None:
    """Both sides have the same settings; handlers get the principal."""
    front = await listen(protocol)
    tls, sasl = broker_security(files).of(protocol)
    connection = await Connection.open("127.0.0.1", front.port, client_id="steward", ssl=tls, sasl=sasl)
    try:
        assert principal == (await connection.call(ApiKey.DESCRIBE_CLUSTER, {}))["cluster_id"]
        offered = await connection.api_versions()
        assert protocol.startswith("SASL") == (ApiKey.SASL_HANDSHAKE in offered)
    finally:
        await connection.close()


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
async def test_protected_listener_answers_no_unauthenticated_client(protocol: str, listen: Callable[..., Any]) -> None:
    """A request without TLS or SASL never reaches a handler."""
    connection = await Connection.open("127.0.0.1", (await listen(protocol)).port, client_id="unauthenticated")
    with pytest.raises(ConnectionFailed):
        await connection.call(ApiKey.DESCRIBE_CLUSTER, {}, version=1)
    await connection.close()


async def test_wrong_password_is_refused(listen: Callable[..., Any]) -> None:
    """By the file of users."""
    wrong = SaslCredentials("PLAIN", "alice", "wrong")
    front = await listen("SASL_PLAINTEXT")
    with pytest.raises(AuthenticationFailed):
        await Connection.open("127.0.0.1", front.port, client_id="alice", sasl=wrong)
