"""TLS and SASL of the Admin client, by kafka-python against a server of ours over real sockets: who is let in, and what is said."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_operator.admin import connection as connection_module
from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import BadCredentialsError, ClusterUnreachableError, ConnectionRejectedError
from kafka_operator.admin.tls import make_context
from kafka_operator.metrics import Metrics
from kafka_operator.resources.security import ClientCertificate, Login, Security
from kafka_wire.net.sasl_server import SaslServer
from kafka_wire.net.server import ServerLimits, serve
from tests.kafka_wire.net.authority import Authority
from tests.kafka_wire.net.sasl_peers import MECHANISMS, PrincipalHandler, Users

ALICE = "alice"
PASSWORD = "her secret, = and ü"
GUESS = "hunter2-guess"

StartServer = Callable[..., Awaitable[int]]


@pytest.fixture
async def start_server(authority: Authority) -> AsyncIterator[StartServer]:
    """Start servers that tell a client who it is; closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(
            *,
            tls: bool = True,
            sasl: tuple[str, ...] = (),
            client_auth: bool = False,
            host: str = "127.0.0.1",
            users: dict[str, str] | None = None,
        ) -> int:
            handler = PrincipalHandler()
            known = Users(users or {ALICE: PASSWORD})
            guard = SaslServer(
                mechanisms=sasl or MECHANISMS, credentials=known, session_lifetime_ms=0, failure_delay_ms=10
            )
            context = None
            if tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*authority.sign("broker", "/CN=broker"))
                if client_auth:
                    context.verify_mode = ssl.CERT_REQUIRED
                    context.load_verify_locations(authority.certificate)
            server = await serve(handler, host, 0, limits=ServerLimits(), ssl=context, sasl=guard if sasl else None)
            stack.push_async_callback(server.close, 1)
            handler.port = server.port
            return server.port

        yield start


@pytest.fixture(autouse=True)
def short_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on loopback answers at once, or never."""
    monkeypatch.setattr(connection_module, "BOOTSTRAP_TIMEOUT_MS", 1_500)


async def who(port: int, security: Security, host: str = "127.0.0.1") -> str:
    """Ask a server as whom it knows us."""
    admin = KafkaAdmin([f"{host}:{port}"], Metrics(), security)
    try:
        return (await admin.describe_cluster()).cluster_id
    finally:
        await admin.close()


async def refusal(port: int, security: Security, host: str = "127.0.0.1") -> ConnectionRejectedError:
    """Return why we are not let in."""
    with pytest.raises(ConnectionRejectedError) as caught:
        await who(port, security, host)
    return caught.value


def trusting(authority: Authority, **fields: object) -> Security:
    """TLS that trusts the tests' authority."""
    return replace(Security(tls=True, ca=authority.certificate.read_text(encoding="ascii")), **fields)  # type: ignore[arg-type]


def certificate_of(paths: tuple[Path, Path]) -> ClientCertificate:
    """A certificate and its key."""
    chain, key = paths
    return ClientCertificate(chain.read_text(encoding="ascii"), key.read_text(encoding="ascii"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_login_by_sasl_over_tls_is_let_in(
    mechanism: str, start_server: StartServer, authority: Authority
) -> None:
    """PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, with a password of any characters."""
    port = await start_server(sasl=MECHANISMS)

    assert await who(port, trusting(authority, login=Login(mechanism, ALICE, PASSWORD))) == "User:alice"


async def test_a_users_name_may_have_any_characters(start_server: StartServer, authority: Authority) -> None:
    """RFC 5802's saslname, as a distinguished name is one."""
    name = "CN=alice,O=Shop"
    port = await start_server(sasl=MECHANISMS, users={name: PASSWORD})

    assert await who(port, trusting(authority, login=Login("SCRAM-SHA-512", name, PASSWORD))) == f"User:{name}"


async def test_a_certificate_of_ones_own_is_shown(start_server: StartServer, authority: Authority) -> None:
    """MTLS: the principal is the certificate's name; no file is left behind."""
    port = await start_server(client_auth=True)
    certificate = certificate_of(authority.sign("client", "/CN=steward"))

    assert await who(port, trusting(authority, certificate=certificate)) == "User:CN=steward"


async def test_who_shows_no_certificate_where_one_is_asked_for_is_told(authority: Authority) -> None:
    """TLS 1.3 tells only after the handshake, by an alert."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("broker", "/CN=broker"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve_strictly() -> None:
            while True:
                try:
                    accepted, _ = listener.accept()
                except OSError:  # the test has ended
                    return
                with context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as peer:
                    with contextlib.suppress(ssl.SSLError):
                        peer.do_handshake()
                    while socket.socket.recv(peer, 4096):  # closed with bytes unread, the alert might be lost
                        continue

        server = threading.Thread(target=serve_strictly, daemon=True)
        server.start()
        try:
            error = await refusal(listener.getsockname()[1], trusting(authority))
        finally:
            # Without it, `accept` waits on a closed descriptor, and fails during a later test that gets the same one.
            listener.shutdown(socket.SHUT_RDWR)
            server.join()

    assert error.reason == "TlsFailed"
    assert "reject the client certificate" in error.message


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_wrong_password_is_told_and_shown_nowhere(
    mechanism: str, start_server: StartServer, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """Never a secret in a log, an exception or a repr."""
    caplog.set_level(logging.DEBUG)
    port = await start_server(sasl=MECHANISMS)
    security = trusting(authority, login=Login(mechanism, ALICE, GUESS))

    error = await refusal(port, security)
    assert error.reason == "AuthenticationFailed"
    assert error.message.startswith("Kafka rejected the authentication: ")
    assert GUESS not in caplog.text + repr(error) + error.message + repr(security)


async def test_a_mechanism_that_is_not_offered_is_told(start_server: StartServer, authority: Authority) -> None:
    """The type has to be that of the listener."""
    port = await start_server(sasl=("SCRAM-SHA-512",))

    error = await refusal(port, trusting(authority, login=Login("PLAIN", ALICE, PASSWORD)))
    assert error.reason == "AuthenticationFailed"
    assert "does not support the SASL mechanism" in error.message


async def test_another_authoritys_certificate_is_not_accepted(start_server: StartServer, tmp_path: Path) -> None:
    """TLS is verified."""
    port = await start_server()

    error = await refusal(port, trusting(Authority(tmp_path)))
    assert error.reason == "TlsFailed"
    assert "The brokers' certificate is not trusted: " in error.message


async def test_a_certificate_for_another_name_is_not_accepted(start_server: StartServer, authority: Authority) -> None:
    """Host names are verified: 127.0.0.2 is loopback too, and not in the certificate."""
    port = await start_server(host="127.0.0.2")

    error = await refusal(port, trusting(authority), host="127.0.0.2")
    assert error.reason == "TlsFailed"
    assert "mismatch" in error.message


async def test_tls_to_a_port_that_speaks_none_is_told(authority: Authority) -> None:
    """The commonest mistake."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    error = await refusal(server.sockets[0].getsockname()[1], trusting(authority))
    server.close()

    assert error.reason == "TlsFailed"
    assert "does not use TLS" in error.message


async def test_nobody_there_is_not_a_refusal(authority: Authority) -> None:
    """Unreachable stays unreachable."""
    with pytest.raises(ClusterUnreachableError):
        await who(1, trusting(authority, login=Login("PLAIN", ALICE, PASSWORD)))


def test_pem_that_cannot_be_used_is_told_by_its_part(authority: Authority, tmp_path: Path) -> None:
    """Bad PEM, another certificate's key, a passphrase; OpenSSL asks no terminal, and no part is quoted."""
    good = certificate_of(authority.sign("good", "/CN=good"))
    other = certificate_of(authority.sign("other", "/CN=other"))
    locked = tmp_path / "locked"
    key = ("openssl", "pkey", "-aes256", "-passout", "pass:x", "-out", str(locked))
    subprocess.run(key, input=good.private_key.encode(), check=True, capture_output=True)
    cases = {
        ("key", "passphrase"): replace(good, private_key=locked.read_text(encoding="ascii")),
        ("key", "does not match the certificate"): replace(good, private_key=other.private_key),
        ("key", "not a private key"): replace(good, private_key="nonsense-value"),
        ("certificate", "not a certificate"): replace(good, chain="nonsense-value"),
        ("certificate", "not valid PEM"): replace(good, chain=good.chain.replace("M", "!")),
    }
    for (part, words), certificate in cases.items():
        with pytest.raises(BadCredentialsError, match=words) as caught:
            make_context(trusting(authority, certificate=certificate))
        assert part == caught.value.part
        assert "nonsense-value" not in str(caught.value)
    with pytest.raises(BadCredentialsError, match="not a certificate in PEM") as caught:
        make_context(Security(tls=True, ca="nonsense-value"))
    assert caught.value.part == "ca"


def test_a_key_is_on_no_disk_afterwards(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL reads files alone: ours are gone when the context is there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make_context(trusting(authority, certificate=certificate_of(authority.sign("good", "/CN=good"))))

    assert list(tmp_path.iterdir()) == []
