"""TLS and SASL of the Admin client against a Steward server over real sockets: accepted logins and reported errors."""

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

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import BadCredentialsError, ClusterUnreachableError, ConnectionRejectedError
from kafka_operator.admin.tls import make_context
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.security import ClientCertificate, Login, Security
from kafka_wire.net.sasl_server import SaslServer
from kafka_wire.net.server import ServerLimits, serve
from lab.peers.authority import Authority
from tests.kafka_wire.net.sasl_peers import MECHANISMS, PrincipalHandler, Users

ALICE = "alice"
PASSWORD = "her secret, = and ü"
GUESS = "hunter2-guess"

StartServer = Callable[..., Awaitable[int]]


@pytest.fixture
async def start_server(authority: Authority) -> AsyncIterator[StartServer]:
    """Start servers that return the client's principal; closed after the test."""
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


async def principal_at(port: int, security: Security, host: str = "127.0.0.1") -> str:
    """Return the principal under which a server knows the client."""
    admin = KafkaAdmin([f"{host}:{port}"], KafkaMetrics(), security)
    try:
        return (await admin.describe_cluster()).cluster_id
    finally:
        await admin.close()


async def refusal(port: int, security: Security, host: str = "127.0.0.1") -> ConnectionRejectedError:
    """Return the error of a rejected connection."""
    with pytest.raises(ConnectionRejectedError) as caught:
        await principal_at(port, security, host)
    return caught.value


def trusting(authority: Authority, **fields: object) -> Security:
    """TLS that trusts the tests' authority."""
    return replace(Security(tls=True, ca=authority.certificate.read_text(encoding="ascii")), **fields)


def certificate_of(paths: tuple[Path, Path]) -> ClientCertificate:
    """A certificate and its key."""
    chain, key = paths
    return ClientCertificate(chain.read_text(encoding="ascii"), key.read_text(encoding="ascii"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_sasl_login_over_tls_is_accepted(
    mechanism: str, start_server: StartServer, authority: Authority
) -> None:
    """PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, with a password of any characters."""
    port = await start_server(sasl=MECHANISMS)

    assert await principal_at(port, trusting(authority, login=Login(mechanism, ALICE, PASSWORD))) == "User:alice"


async def test_a_user_name_may_contain_any_characters(start_server: StartServer, authority: Authority) -> None:
    """RFC 5802, saslname: for example a distinguished name, with `=` and `,`."""
    name = "CN=alice,O=Shop"
    port = await start_server(sasl=MECHANISMS, users={name: PASSWORD})

    assert await principal_at(port, trusting(authority, login=Login("SCRAM-SHA-512", name, PASSWORD))) == f"User:{name}"


async def test_a_client_certificate_is_presented(start_server: StartServer, authority: Authority) -> None:
    """With mutual TLS, the principal is the certificate's subject."""
    port = await start_server(client_auth=True)
    certificate = certificate_of(authority.sign("client", "/CN=steward"))

    assert await principal_at(port, trusting(authority, certificate=certificate)) == "User:CN=steward"


async def test_a_missing_client_certificate_is_reported(authority: Authority) -> None:
    """With TLS 1.3 a server reports it only after the handshake, by an alert."""
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
async def test_a_wrong_password_is_reported_without_the_password(
    mechanism: str, start_server: StartServer, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """No log, exception or repr contains a secret."""
    caplog.set_level(logging.DEBUG)
    port = await start_server(sasl=MECHANISMS)
    security = trusting(authority, login=Login(mechanism, ALICE, GUESS))

    error = await refusal(port, security)
    assert error.reason == "AuthenticationFailed"
    assert error.message.startswith("Kafka rejected the authentication: ")
    assert GUESS not in caplog.text + repr(error) + error.message + repr(security)


async def test_an_unsupported_mechanism_is_reported(start_server: StartServer, authority: Authority) -> None:
    """The mechanism must be one of the listener's."""
    port = await start_server(sasl=("SCRAM-SHA-512",))

    error = await refusal(port, trusting(authority, login=Login("PLAIN", ALICE, PASSWORD)))
    assert error.reason == "AuthenticationFailed"
    assert "rejected PLAIN: UNSUPPORTED_SASL_MECHANISM; it offers SCRAM-SHA-512" in error.message


async def test_another_authoritys_certificate_is_not_accepted(start_server: StartServer, tmp_path: Path) -> None:
    """The chain of certificates is verified."""
    port = await start_server()

    error = await refusal(port, trusting(Authority(tmp_path)))
    assert error.reason == "TlsFailed"
    assert "The brokers' certificate is not trusted: " in error.message


async def test_a_certificate_for_another_name_is_not_accepted(start_server: StartServer, authority: Authority) -> None:
    """Host names are verified: 127.0.0.2 is also loopback, but not in the certificate."""
    port = await start_server(host="127.0.0.2")

    error = await refusal(port, trusting(authority), host="127.0.0.2")
    assert error.reason == "TlsFailed"
    assert "mismatch" in error.message


async def test_tls_to_a_plaintext_port_is_reported(authority: Authority) -> None:
    """The most common mistake."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    error = await refusal(server.sockets[0].getsockname()[1], trusting(authority))
    server.close()

    assert error.reason == "TlsFailed"
    assert "does not use TLS" in error.message


async def test_an_unreachable_server_is_not_a_rejection(authority: Authority) -> None:
    """The error is ClusterUnreachableError."""
    with pytest.raises(ClusterUnreachableError):
        await principal_at(1, trusting(authority, login=Login("PLAIN", ALICE, PASSWORD)))


def test_unusable_pem_is_reported_by_its_part(authority: Authority, tmp_path: Path) -> None:
    """Invalid PEM, the key of another certificate, a passphrase. OpenSSL prompts for none, and no message quotes the PEM."""
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
    for (part, message), certificate in cases.items():
        with pytest.raises(BadCredentialsError, match=message) as caught:
            make_context(trusting(authority, certificate=certificate))
        assert part == caught.value.part
        assert "nonsense-value" not in str(caught.value)
    with pytest.raises(BadCredentialsError, match="not a certificate in PEM") as caught:
        make_context(Security(tls=True, ca="nonsense-value"))
    assert caught.value.part == "ca"


def test_no_key_remains_on_disk(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL reads keys only from files; they are deleted once the context exists."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make_context(trusting(authority, certificate=certificate_of(authority.sign("good", "/CN=good"))))

    assert list(tmp_path.iterdir()) == []
