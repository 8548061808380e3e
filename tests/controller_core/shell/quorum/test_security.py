"""TLS and SASL from the settings: a controller's listener lets another controller in, and no stranger."""

import pytest

from controller_core.shell.quorum.process import listener_demands, member_settings
from controller_core.shell.quorum.settings import QuorumSettings
from controller_core.shell.quorum.settings_reading import read_settings
from kafka_node.security.settings import SecurityProtocol
from kafka_wire import ApiKey
from kafka_wire.net.failures import ConnectionFailed
from kafka_wire.net.node import Node, NodeSettings
from kafka_wire.net.server import serve
from lab.peers.authority import Authority
from lab.peers.quorum_security import QuorumSecurity, mutual_tls, sasl_plaintext
from tests.controller_core.shell.quorum.properties import DYNAMIC
from tests.kafka_node.security.samples import NoScramUsers
from tests.kafka_wire.net.sasl_peers import PrincipalHandler

BASE = NodeSettings(client_id="tests")
TIMEOUT_MS = 10_000


def settings_with(security: QuorumSecurity) -> QuorumSettings:
    """Return the settings of a controller with a security of the lab's quorums."""
    protocols = {"listener.security.protocol.map": f"CONTROLLER:{security.protocol}"}
    return read_settings(DYNAMIC | protocols | security.settings).settings


async def principals(server_settings: QuorumSettings, client: NodeSettings) -> list[str]:
    """Return the principals whose Metadata request reaches the listener."""
    handler = PrincipalHandler()
    demands = listener_demands(server_settings, NoScramUsers())["CONTROLLER"]
    server = await serve(
        handler, "127.0.0.1", 0, ssl=demands.tls, sasl=demands.sasl, principal_rules=demands.principal_rules
    )
    node = Node("127.0.0.1", server.port, client)
    try:
        await node.call(ApiKey.METADATA, {"topics": []}, timeout_ms=TIMEOUT_MS)
    finally:
        await node.close()
        await server.close(grace_ms=1)
    return [principal for principal, key in handler.requests if key == ApiKey.METADATA]


async def test_a_controller_with_the_same_login_is_let_in() -> None:
    """SASL/PLAIN: the principal is the user."""
    settings = settings_with(sasl_plaintext())

    assert await principals(settings, member_settings(settings, BASE)) == ["User:member"]


async def test_a_controller_with_a_certificate_of_the_authority_is_let_in(authority: Authority) -> None:
    """TLS with ssl.client.auth=required: the principal is the certificate's subject."""
    settings = settings_with(mutual_tls(authority.store("one", "/CN=one"), authority.certificate))

    assert await principals(settings, member_settings(settings, BASE)) == ["User:CN=one"]


async def test_another_password_and_a_missing_certificate_are_refused(authority: Authority) -> None:
    """No request of a stranger reaches the handler."""
    sasl = settings_with(sasl_plaintext())
    tls = settings_with(mutual_tls(authority.store("two", "/CN=two"), authority.certificate))
    for settings, stranger in (
        (sasl, settings_with(sasl_plaintext("another"))),
        (tls, settings_with(QuorumSecurity())),
    ):
        with pytest.raises(ConnectionFailed):
            await principals(settings, member_settings(stranger, BASE))


def test_host_names_are_verified_unless_the_settings_turn_it_off(authority: Authority) -> None:
    """Certificates are verified in both cases."""
    security = mutual_tls(authority.store("three", "/CN=three"), authority.certificate)
    unchecked = QuorumSecurity("SSL", security.settings | {"ssl.endpoint.identification.algorithm": ""})
    contexts = [member_settings(settings_with(some_security), BASE).ssl for some_security in (security, unchecked)]

    assert [context.check_hostname for context in contexts if context is not None] == [True, False]
    assert [context.verify_mode.name for context in contexts if context is not None] == ["CERT_REQUIRED"] * 2


def test_a_listener_without_security_demands_nothing() -> None:
    """PLAINTEXT."""
    settings = settings_with(QuorumSecurity())
    demands = listener_demands(settings, NoScramUsers())["CONTROLLER"]

    assert settings.listeners[0].security_protocol is SecurityProtocol.PLAINTEXT
    assert (demands.tls, demands.sasl) == (None, None)
    assert member_settings(settings, BASE) == BASE
