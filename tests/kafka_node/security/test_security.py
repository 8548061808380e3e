"""Security settings: rejected where they cannot be used, and applied by listeners and connections."""

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_node.security.brokers import UNPROTECTED, broker_security
from kafka_node.security.contexts import client_context, listener_context
from kafka_node.security.listeners import demands_of
from kafka_node.security.renewal import Renewal
from kafka_node.security.settings import ClientAuth, SecuritySettings, TlsFiles
from kafka_wire.net.client import BearerCredentials, NodeSettings
from kafka_wire.net.distinguished_name import subject_of
from kafka_wire.net.peer import Peer
from kafka_wire.net.server import serve
from kafka_wire.sasl.steps import SaslFailed
from lab.peers.authority import Authority
from tests.kafka_node.security.samples import NoScramUsers, security_files


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> SecuritySettings:
    """Settings with files, for listeners and for connections to brokers."""
    return security_files(authority, tmp_path)


async def no_answer(_peer: Peer, _frame: bytes) -> None:
    """Answer nothing."""


def test_brokers_are_verified_by_the_given_ca(files: SecuritySettings) -> None:
    """At least TLS 1.2; certificate and host name are verified."""
    security = broker_security(files)
    settings = security.settings(NodeSettings(client_id="tests"), "SASL_SSL")
    assert settings.ssl is not None

    assert (settings.ssl.verify_mode, settings.ssl.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert settings.ssl.minimum_version == ssl.TLSVersion.TLSv1_2
    assert security.of("PLAINTEXT") == (None, None)
    assert "own-password" not in repr(security)


def test_missing_credentials_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Brokers require SASL, and no credentials are configured."""
    security = broker_security(SecuritySettings())
    assert [security.of("SASL_PLAINTEXT") for _ in range(2)] == [(None, None)] * 2
    assert len(caplog.records) == 1
    assert UNPROTECTED.of("PLAINTEXT") == (None, None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sasl_mechanisms": ("GSSAPI",)}, "GSSAPI is not one of PLAIN"),
        ({"sasl_mechanisms": ("PLAIN",)}, "need a users file"),
        ({"connections_max_reauth_ms": -1}, "0 or more is needed"),
        ({"broker_sasl_mechanism": "PLAIN"}, "user name and password file are all needed"),
        ({"broker_sasl_mechanism": "OAUTHBEARER"}, "OAUTHBEARER and a token file are needed, and no user"),
        ({"broker_sasl_token_file": Path("token")}, "OAUTHBEARER and a token file are needed, and no user"),
        ({"sasl_mechanisms": ("OAUTHBEARER",)}, "OAUTHBEARER is not one of PLAIN"),
        ({"tls_client_auth": ClientAuth.REQUIRED}, "need the CA certificates"),
    ],
)
def test_contradictory_settings_are_rejected(given: dict[str, Any], message: str) -> None:
    """Before any file or connection is opened."""
    with pytest.raises(ValueError, match=message):
        SecuritySettings(**given)


async def test_a_token_is_read_from_its_file_at_each_login(tmp_path: Path) -> None:
    """OAUTHBEARER: another program renews it. The file is also read at the start, so that a wrong path is an error."""
    path = tmp_path / "token"
    settings = SecuritySettings(broker_sasl_mechanism="OAUTHBEARER", broker_sasl_token_file=path)
    with pytest.raises(ValueError, match="token cannot be read"):
        broker_security(settings)

    path.touch(mode=0o600)
    path.write_text("first\n")
    login = broker_security(settings).sasl
    assert isinstance(login, BearerCredentials)
    found = [await login.token()]
    path.write_text("second\n")

    assert [*found, await login.token()] == ["first", "second"]
    path.unlink()
    with pytest.raises(SaslFailed, match="token cannot be read"):
        await login.token()


def test_invalid_certificate_files_are_errors_with_their_names(tmp_path: Path, authority: Authority) -> None:
    """Invalid PEM, a key of another certificate, invalid CA certificates."""
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    certificate, _ = authority.sign("one", "/CN=one")
    _, key = authority.sign("two", "/CN=two")
    for bad in (TlsFiles(certificate=broken), TlsFiles(certificate=certificate, key=key)):
        with pytest.raises(ValueError, match=r"with its key cannot be read"):
            listener_context(bad, ClientAuth.NONE)
    with pytest.raises(ValueError, match=r"broken.pem cannot be read"):
        client_context(TlsFiles(ca=broken))


async def test_new_connections_get_the_renewed_certificate(
    files: SecuritySettings, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a restart; a broken file changes nothing."""
    certificate, key = tmp_path / "current.pem", tmp_path / "current.key"

    def renew(name: str) -> None:
        new_certificate, new_key = authority.sign(name, f"/CN={name}")
        new_certificate.replace(certificate)
        new_key.replace(key)

    async def shown() -> str:
        tls = client_context(files.broker_tls)
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return subject_of(found)

    renew("first")
    settings = replace(files, tls=TlsFiles(certificate=certificate, key=key))
    demands = demands_of({"SSL"}, settings, NoScramUsers())["SSL"]
    renewal = Renewal([(demands.tls, settings.tls), (None, TlsFiles()), (demands.tls, None)])
    server = await serve(no_answer, "127.0.0.1", 0, ssl=demands.tls)
    try:
        assert await shown() == "CN=first"
        renew("second")
        renewal.check()
        assert await shown() == "CN=second"
        certificate.write_text("half a file")
        renewal.check()
        renewal.check()
        assert await shown() == "CN=second"
        assert sum("Failed to reload" in record.getMessage() for record in caplog.records) == 1
        key.unlink()
        renewal.check()
        assert await shown() == "CN=second"
    finally:
        await server.close(grace_ms=1)
