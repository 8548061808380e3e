"""SASL on both sides: authentication, principals, and failures (KIP-43, KIP-84, KIP-152, KIP-368)."""

import asyncio
import contextlib
import logging
import struct
from collections.abc import AsyncIterator, Callable

import pytest

from kafka_wire import ApiKey, ErrorCode, codec
from kafka_wire.net.client import (
    AuthenticationFailed,
    Connection,
    ConnectionFailed,
    Node,
    NodeSettings,
    SaslCredentials,
)
from kafka_wire.net.sasl_server import MAX_RECEIVE_BYTES, SaslServer
from kafka_wire.net.server import CloseConnection, Server, ServerLimits, serve
from tests.kafka_wire.net.peers import RawPeer
from tests.kafka_wire.net.sasl_peers import MECHANISMS, PrincipalHandler, Users

ALICE = "alice"
PASSWORD = "alice's secret, = and ü"
METADATA = {"topics": []}


class SaslListener:
    """A SASL server and its handler."""

    def __init__(self, server: Server, handler: PrincipalHandler, users: Users) -> None:
        self.port = server.port
        self.server = server
        self.handler = handler
        self.users = users


@pytest.fixture
async def start_listener() -> AsyncIterator[Callable[..., object]]:
    """Start SASL servers; closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(
            *, mechanisms: tuple[str, ...] = MECHANISMS, ssl: object = None, lifetime_ms: int = 0, **limits: int
        ) -> SaslListener:
            users, handler = Users({ALICE: PASSWORD, "bob": "bob's"}), PrincipalHandler()
            sasl = SaslServer(
                mechanisms=mechanisms, credentials=users, session_lifetime_ms=lifetime_ms, failure_delay_ms=20
            )
            server = await serve(handler, "127.0.0.1", 0, limits=ServerLimits(**limits), ssl=ssl, sasl=sasl)
            stack.push_async_callback(server.close, 1)
            handler.port = server.port
            return SaslListener(server, handler, users)

        yield start


async def principal_of(
    port: int, mechanism: str, user: str = ALICE, password: str = PASSWORD, **settings: object
) -> str:
    """Return the principal that a SASL server sees."""
    sasl = SaslCredentials(mechanism, user, password)
    connection = await Connection.open("127.0.0.1", port, client_id="tests", sasl=sasl, **settings)
    try:
        principal: str = (await connection.call(ApiKey.METADATA, METADATA))["cluster_id"]
        return principal
    finally:
        await connection.close()


def sasl_frame(key: ApiKey, version: int, body: dict[str, object]) -> bytes:
    """Encode a SaslHandshake or SaslAuthenticate request."""
    return codec.encode_request(key, version, 7, "raw", body)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("encrypted", [True, False])
async def test_the_principal_of_an_authenticated_peer_is_its_user(
    mechanism: str, encrypted: bool, start_listener, server_tls, client_tls
) -> None:
    """DefaultKafkaPrincipalBuilder: the type User and the authorization id."""
    server = await start_listener(ssl=server_tls if encrypted else None)

    assert await principal_of(server.port, mechanism, ssl=client_tls if encrypted else None) == "User:alice"
    assert server.handler.requests == [("User:ANONYMOUS", ApiKey.API_VERSIONS), ("User:alice", ApiKey.METADATA)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [(ALICE, "hunter2"), ("nobody", PASSWORD)])
async def test_a_wrong_password_is_rejected_and_never_logged(
    mechanism: str, user: str, password: str, start_listener, caplog: pytest.LogCaptureFixture
) -> None:
    """The error names the failure; neither side logs the secret."""
    caplog.set_level(logging.DEBUG)
    server = await start_listener()
    with pytest.raises(AuthenticationFailed, match="SASL_AUTHENTICATION_FAILED") as failed:
        await principal_of(server.port, mechanism, user, password)

    assert not failed.value.sent
    assert repr(user) in failed.value.reason
    assert password not in failed.value.reason + caplog.text
    assert password not in repr(SaslCredentials(mechanism, user, password))


async def test_failures_of_one_host_are_logged_once(start_listener, caplog: pytest.LogCaptureFixture) -> None:
    """Password guessing does not flood the log."""
    server = await start_listener()
    for _ in range(3):
        with pytest.raises(AuthenticationFailed):
            await principal_of(server.port, "PLAIN", ALICE, "guess")

    assert sum("Authentication failed" in record.getMessage() for record in caplog.records) == 1


async def test_a_disabled_mechanism_is_rejected_with_the_enabled_ones(start_listener) -> None:
    """KIP-43: UNSUPPORTED_SASL_MECHANISM and the enabled ones."""
    server = await start_listener(mechanisms=("SCRAM-SHA-512",))
    with pytest.raises(AuthenticationFailed, match="UNSUPPORTED_SASL_MECHANISM; it offers SCRAM-SHA-512"):
        await principal_of(server.port, "PLAIN")


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(codec.encode_request(ApiKey.METADATA, 12, 1, "raw", METADATA), id="metadata"),
        pytest.param(struct.pack(">hhi", 999, 0, 1), id="unknown key"),
        pytest.param(b"\0", id="garbage"),
        pytest.param(sasl_frame(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})[:-2], id="truncated handshake"),
    ],
)
async def test_other_requests_are_rejected_before_authentication(frame: bytes, start_listener, connect) -> None:
    """Only ApiVersions, SaslHandshake and SaslAuthenticate are allowed; any other request closes the connection."""
    server = await start_listener()
    peer = await connect(server.server)
    await peer.send_frame(frame)

    assert await peer.is_closed_by_server()
    assert server.handler.requests == []


async def test_a_token_without_a_handshake_is_rejected(start_listener, connect) -> None:
    """SaslServerAuthenticator: an illegal state is reported, and the connection is closed."""
    peer = await connect((await start_listener()).server)
    await peer.send_frame(sasl_frame(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0x"}))
    _, body = codec.decode_response(ApiKey.SASL_AUTHENTICATE, 2, await peer.read_frame())

    assert body["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    assert await peer.is_closed_by_server()


async def test_only_small_frames_are_accepted_before_authentication(start_listener, connect) -> None:
    """sasl.server.max.receive.size; afterwards the usual limit applies."""
    server = await start_listener()
    peer = await connect(server.server)
    await peer.send(struct.pack(">i", MAX_RECEIVE_BYTES + 1))
    assert await peer.is_closed_by_server()

    sasl = SaslCredentials("PLAIN", ALICE, PASSWORD)
    connection = await Connection.open("127.0.0.1", server.port, client_id="tests", sasl=sasl)
    large = {"topics": [{"name": "t" * 30_000} for _ in range(20)]}
    assert (await connection.call(ApiKey.METADATA, large))["cluster_id"] == "User:alice"
    await connection.close()


async def test_a_peer_that_does_not_authenticate_in_time_is_disconnected(start_listener, connect) -> None:
    """A silent peer does not keep its connection for the long idle timeout."""
    peer = await connect((await start_listener(authentication_timeout_ms=100)).server)

    assert await peer.is_closed_by_server()


async def test_a_client_authenticates_again_before_its_session_ends(start_listener, monkeypatch) -> None:
    """KIP-368: at 85 to 95 percent of the session, between two requests, on the same connection.

    The loop's time advances by steps that are shorter than what is left of the session then: a busy machine ends no session.
    """
    lifetime_ms, step_ms = 300, 10
    server = await start_listener(lifetime_ms=lifetime_ms)
    sasl = SaslCredentials("SCRAM-SHA-256", ALICE, PASSWORD)
    loop = asyncio.get_running_loop()
    real_time = loop.time
    now_s = real_time()
    monkeypatch.setattr(loop, "time", lambda: now_s)
    connection = await Connection.open("127.0.0.1", server.port, client_id="tests", sasl=sasl)
    for _ in range(3 * lifetime_ms // step_ms):
        responses = await asyncio.gather(*(connection.call(ApiKey.METADATA, METADATA) for _ in range(3)))
        assert [response["cluster_id"] for response in responses] == ["User:alice"] * 3
        now_s += step_ms / 1000
    server.users.passwords[ALICE] = "changed"
    ahead_s = now_s - real_time() + lifetime_ms / 1000
    monkeypatch.setattr(loop, "time", lambda: real_time() + ahead_s)
    with pytest.raises(AuthenticationFailed, match="SASL_AUTHENTICATION_FAILED"):
        await connection.call(ApiKey.METADATA, METADATA)
    assert connection.closed
    await connection.close()


async def log_in(peer: RawPeer, user: str, password: str, version: int = 1) -> bytes:
    """Authenticate by PLAIN, and return the last response."""
    await peer.send_frame(sasl_frame(ApiKey.SASL_HANDSHAKE, version, {"mechanism": "PLAIN"}))
    await peer.read_frame()
    token = f"\0{user}\0{password}".encode()
    frame = token if version == 0 else sasl_frame(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": token})
    await peer.send_frame(frame)
    return await peer.read_frame()


async def test_an_expired_session_accepts_no_requests(start_listener, connect) -> None:
    """KIP-368: the server closes a connection whose client does not authenticate again."""
    peer = await connect((await start_listener(lifetime_ms=50)).server)
    _, body = codec.decode_response(ApiKey.SASL_AUTHENTICATE, 2, await log_in(peer, ALICE, PASSWORD))
    await asyncio.sleep(0.1)
    await peer.send_frame(codec.encode_request(ApiKey.METADATA, 12, 1, "raw", METADATA))

    assert (body["error_code"], body["session_lifetime_ms"]) == (ErrorCode.NONE, 50)
    assert await peer.is_closed_by_server()


async def test_the_principal_of_a_connection_cannot_change(start_listener, connect) -> None:
    """SaslServerAuthenticator.ReauthInfo: the principal stays the same."""
    peer = await connect((await start_listener()).server)
    await log_in(peer, ALICE, PASSWORD)
    _, body = codec.decode_response(ApiKey.SASL_AUTHENTICATE, 2, await log_in(peer, "bob", "bob's"))

    assert body["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert await peer.is_closed_by_server()


async def test_bare_tokens_follow_a_handshake_of_version_0(start_listener, connect) -> None:
    """KIP-43: before Kafka 1.0 tokens had no Kafka header."""
    server = await start_listener()
    peer, other = await connect(server.server), await connect(server.server)
    token = await log_in(peer, ALICE, PASSWORD, version=0)
    await peer.send_frame(codec.encode_request(ApiKey.METADATA, 12, 1, "raw", METADATA))
    _, body = codec.decode_response(ApiKey.METADATA, 12, await peer.read_frame())

    assert token == b""
    assert body["cluster_id"] == "User:alice"
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await log_in(other, ALICE, "wrong", version=0)


async def test_a_node_authenticates_on_every_connection(start_listener) -> None:
    """Also after reconnects."""
    server = await start_listener()
    node = Node("127.0.0.1", server.port, NodeSettings(sasl=SaslCredentials("SCRAM-SHA-512", ALICE, PASSWORD)))
    first = await node.call(ApiKey.METADATA, METADATA)
    assert node._connection is not None
    await node._connection.close()
    second = await node.call(ApiKey.METADATA, METADATA)
    await node.close()

    assert [first["cluster_id"], second["cluster_id"]] == ["User:alice"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("right", [True, False])
async def test_librdkafka_authenticates_only_with_the_right_password(
    mechanism: str, right: bool, start_listener
) -> None:
    """A client of another implementation."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    server = await start_listener()
    settings = {
        "bootstrap.servers": f"127.0.0.1:{server.port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": ALICE,
        "sasl.password": PASSWORD if right else "wrong",
        "log_level": 0,
    }
    client = AdminClient(settings)
    if right:
        metadata = await asyncio.to_thread(client.list_topics, timeout=10)
        assert metadata.cluster_id == "User:alice"
    else:
        with pytest.raises(KafkaException):
            await asyncio.to_thread(client.list_topics, timeout=1)
        assert ("User:alice", ApiKey.METADATA) not in server.handler.requests


@pytest.mark.slow
async def test_librdkafka_authenticates_again_and_continues(start_listener) -> None:
    """KIP-368 on the server, with a client of another implementation: one connection with several sessions."""
    from confluent_kafka.admin import AdminClient

    server = await start_listener(lifetime_ms=1_000)
    settings = {
        "bootstrap.servers": f"127.0.0.1:{server.port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": ALICE,
        "sasl.password": PASSWORD,
        "log_level": 0,
    }
    client = AdminClient(settings)
    connections = set()
    began = asyncio.get_running_loop().time()
    while asyncio.get_running_loop().time() - began < 2.5:
        metadata = await asyncio.to_thread(client.list_topics, timeout=10)
        assert metadata.cluster_id == "User:alice"
        connections |= {connection.peer.port for connection in server.server._connections}
        await asyncio.sleep(0.1)

    # One to the bootstrap address, one to the broker in the Metadata response.
    assert len(connections) <= 2


async def read_on(peer: RawPeer) -> None:
    """Read until the connection ends."""
    while True:
        await peer.read_frame()


async def test_requests_during_authentication_are_rejected(start_listener, connect) -> None:
    """SaslServerAuthenticator: also in the same packet, and on a connection that was authenticated before."""
    metadata = codec.encode_request(ApiKey.METADATA, 12, 1, "raw", METADATA)
    handshake = sasl_frame(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    wrong = sasl_frame(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0wrong"})
    server = await start_listener()
    for frames in ([handshake, metadata], [handshake, handshake], [handshake, wrong, metadata], [wrong, metadata]):
        for opened in (False, True):
            peer = await connect(server.server)
            if opened:
                await log_in(peer, ALICE, PASSWORD)
            await peer.send(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await read_on(peer)

    assert ApiKey.METADATA not in {key for _, key in server.handler.requests}


async def test_unavailable_credentials_only_close_the_connection(start_listener) -> None:
    """The peer is neither authenticated nor rejected, so that it retries."""
    server = await start_listener()

    async def lost(*_: object) -> None:
        raise CloseConnection("credentials are out of reach")

    server.users.scram_credential = lost
    with pytest.raises(ConnectionFailed, match="closed the connection") as failed:
        await principal_of(server.port, "SCRAM-SHA-256")

    assert not isinstance(failed.value, AuthenticationFailed)
    assert await principal_of(server.port, "PLAIN") == "User:alice"
