"""What is said of security at the start: refused where it cannot be, and kept to by listeners and connections."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller_core.shell.front.context import RequestContext
from controller_core.shell.front.front import Front, open_front
from controller_core.shell.security.brokers import UNPROTECTED, broker_security
from controller_core.shell.security.contexts import client_context, listener_context
from controller_core.shell.security.listeners import demands_of
from controller_core.shell.security.renewal import Renewal
from controller_core.shell.security.settings import ClientAuth, SecuritySettings, TlsFiles
from controller_core.shell.security.zookeeper import zookeeper_settings
from controller_core.shell.settings import ControllerSettings, parse_listener
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.net.client import AuthenticationFailed, Connection, ConnectionFailed, NodeSettings, SaslCredentials
from kafka_wire.net.distinguished_name import subject_of
from kafka_zookeeper.settings import ZooKeeperSettings
from tests.kafka_wire_net.authority import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """One for all."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> SecuritySettings:
    """Everything in files, for the listeners and for the way to brokers."""
    certificate, key = authority.sign("server", "/CN=controller")
    users, password = tmp_path / "users", tmp_path / "password"
    users.write_text("controller:ours\nalice:hers\n")
    password.write_text("ours\n")
    for path in (users, password):
        path.chmod(0o600)
    return SecuritySettings(
        tls=TlsFiles(certificate=certificate, key=key, ca=authority.certificate),
        sasl_mechanisms=("PLAIN",),
        sasl_users_file=users,
        broker_tls=TlsFiles(ca=authority.certificate),
        broker_sasl_mechanism="PLAIN",
        broker_sasl_username="controller",
        broker_sasl_password_file=password,
    )


async def tell_principal(context: RequestContext, _body: Body) -> Body:
    """Answer DescribeCluster with who asks."""
    return {"cluster_id": context.principal}


@pytest.fixture
async def listen(files: SecuritySettings) -> AsyncIterator[Callable[..., Any]]:
    """Open fronts by security protocol; closed after the test."""
    fronts: list[Front] = []

    async def start(protocol: str) -> Front:
        demands = demands_of({protocol}, files, lambda: None)[protocol]
        handlers = {ApiKey.DESCRIBE_CLUSTER: tell_principal}
        front = await open_front("CLIENT", "127.0.0.1", 0, handlers, lambda: (), demands=demands)
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
async def test_we_reach_by_each_protocol_what_listens_by_it(
    protocol: str, principal: str, files: SecuritySettings, listen: Callable[..., Any]
) -> None:
    """Both sides from the same settings; handlers hear who asks."""
    front = await listen(protocol)
    tls, sasl = broker_security(files).of(protocol)
    connection = await Connection.open("127.0.0.1", front.port, client_id="us", ssl=tls, sasl=sasl)
    try:
        assert principal == (await connection.call(ApiKey.DESCRIBE_CLUSTER, {}))["cluster_id"]
        offered = await connection.api_versions()
        assert protocol.startswith("SASL") == (ApiKey.SASL_HANDSHAKE in offered)
    finally:
        await connection.close()


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
async def test_a_protected_listener_answers_no_stranger(protocol: str, listen: Callable[..., Any]) -> None:
    """A request without TLS or without SASL never reaches a handler."""
    connection = await Connection.open("127.0.0.1", (await listen(protocol)).port, client_id="stranger")
    with pytest.raises(ConnectionFailed):
        await connection.call(ApiKey.DESCRIBE_CLUSTER, {}, version=1)
    await connection.close()


async def test_a_wrong_password_is_refused_by_the_front(listen: Callable[..., Any]) -> None:
    """The users' file decides."""
    wrong = SaslCredentials("PLAIN", "alice", "not hers")
    front = await listen("SASL_PLAINTEXT")
    with pytest.raises(AuthenticationFailed):
        await Connection.open("127.0.0.1", front.port, client_id="alice", sasl=wrong)


def test_brokers_are_verified_by_the_given_authorities(files: SecuritySettings) -> None:
    """TLS 1.2 at least, the certificate and the name in it."""
    security = broker_security(files)
    settings = security.settings(NodeSettings(client_id="us"), "SASL_SSL")
    assert settings.ssl is not None

    assert (ssl.CERT_REQUIRED, True) == (settings.ssl.verify_mode, settings.ssl.check_hostname)
    assert ssl.TLSVersion.TLSv1_2 == settings.ssl.minimum_version
    assert (None, None) == security.of("PLAINTEXT")
    assert "ours" not in repr(security)


def test_a_missing_login_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Brokers ask for SASL, and there is nothing to say."""
    security = broker_security(SecuritySettings())
    assert [(None, None)] * 2 == [security.of("SASL_PLAINTEXT") for _ in range(2)]
    assert 1 == len(caplog.records)
    assert UNPROTECTED.of("PLAINTEXT") == (None, None)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"sasl_mechanisms": ("GSSAPI",)}, "GSSAPI is none of PLAIN"),
        ({"sasl_mechanisms": ("PLAIN",)}, "need a file of users"),
        ({"connections_max_reauth_ms": -1}, "0 or more is needed"),
        ({"broker_sasl_mechanism": "PLAIN"}, "user name and password file are all needed"),
        ({"tls_client_auth": ClientAuth.REQUIRED}, "need the authorities"),
        ({"zookeeper_set_acl": True}, "needs a digest for ZooKeeper"),
        ({"zookeeper_set_acl": True, "zookeeper_tls": TlsFiles()}, "needs a digest for ZooKeeper"),
    ],
)
def test_settings_that_cannot_be_are_refused(given: dict[str, Any], why: str) -> None:
    """Before anything is opened."""
    with pytest.raises(ValueError, match=why):
        SecuritySettings(**given)


@pytest.mark.parametrize(
    ("listener", "why"),
    [
        ("A=SSL://h:1", "speaks SSL: it needs a TLS certificate"),
        ("A=SASL_PLAINTEXT://h:1", "speaks SASL_PLAINTEXT: it needs a SASL mechanism"),
    ],
)
def test_a_listener_without_what_its_protocol_needs_is_refused(listener: str, why: str) -> None:
    """No listener falls back to less."""
    with pytest.raises(ValueError, match=why):
        ControllerSettings("zk:1", 1000, (parse_listener(listener),), "A")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_listeners_protocol_stands_before_its_host(protocol: str) -> None:
    """As in Kafka's own listeners."""
    assert protocol == parse_listener(f"A={protocol}://h:1,k:2").security_protocol
    with pytest.raises(ValueError, match="is not NAME=HOST:PORT"):
        parse_listener("A=HTTP://h:1")


def test_files_that_are_no_certificates_are_told_by_name(tmp_path: Path, authority: Authority) -> None:
    """Also a key with a passphrase: nobody is there to be asked for it."""
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    certificate, _ = authority.sign("one", "/CN=one")
    _, key = authority.sign("two", "/CN=two")
    for bad in (TlsFiles(certificate=broken), TlsFiles(certificate=certificate, key=key)):
        with pytest.raises(ValueError, match=r"with its key cannot be read"):
            listener_context(bad, ClientAuth.NONE)
    with pytest.raises(ValueError, match=r"broken.pem cannot be read"):
        client_context(TlsFiles(ca=broken))


def test_zookeeper_is_reached_as_the_settings_say(tmp_path: Path, authority: Authority) -> None:
    """By TLS that verifies, under a certificate and a digest; without a word of it, as ever."""
    digest = tmp_path / "digest"
    digest.write_text("us:hunter2\n")
    digest.chmod(0o600)
    certificate, key = authority.sign("us", "/CN=us")
    security = SecuritySettings(
        zookeeper_tls=TlsFiles(certificate=certificate, key=key, ca=authority.certificate),
        zookeeper_digest_file=digest,
        zookeeper_set_acl=True,
    )
    found = zookeeper_settings("zk:1", 6_000, security)
    assert found.tls is not None

    assert ("us:hunter2", True, ssl.CERT_REQUIRED) == (found.digest, found.set_acl, found.tls.verify_mode)
    assert ZooKeeperSettings("zk:1", 6_000) == zookeeper_settings("zk:1", 6_000, SecuritySettings())


async def test_a_renewed_certificate_is_shown_to_new_connections(
    files: SecuritySettings, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a restart; a broken one changes nothing."""
    certificate, key = tmp_path / "current.pem", tmp_path / "current.key"

    def renew(name: str) -> None:
        new_certificate, new_key = authority.sign(name, f"/CN={name}")
        new_certificate.replace(certificate)
        new_key.replace(key)

    async def shown() -> str:
        tls = client_context(files.broker_tls)
        _, writer = await asyncio.open_connection("127.0.0.1", front.port, ssl=tls)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return subject_of(found)

    renew("first")
    settings = replace(files, tls=TlsFiles(certificate=certificate, key=key))
    demands = demands_of({"SSL"}, settings, lambda: None)["SSL"]
    renewal = Renewal([(demands.tls, settings.tls), (None, TlsFiles()), (demands.tls, None)])
    front = await open_front("CLIENT", "127.0.0.1", 0, {}, lambda: (), demands=demands)
    try:
        assert "CN=first" == await shown()
        renew("second")
        renewal.look()
        assert "CN=second" == await shown()
        certificate.write_text("half a file")
        renewal.look()
        renewal.look()
        assert "CN=second" == await shown()
        assert 1 == sum("cannot be used" in record.getMessage() for record in caplog.records)
        key.unlink()
        renewal.look()
        assert "CN=second" == await shown()
    finally:
        await front.close(grace_ms=1)
