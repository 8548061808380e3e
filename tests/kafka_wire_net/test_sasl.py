"""SASL on both sides: who comes in, as whom, and what costs a connection (KIP-43, KIP-84, KIP-152, KIP-368)."""

import asyncio
import contextlib
import logging
import struct
from collections.abc import AsyncIterator, Callable

import pytest

from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode
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
from tests.kafka_wire_net.peers import RawPeer
from tests.kafka_wire_net.sasl_peers import MECHANISMS, Users, WhoAmI

ALICE = "alice"
PASSWORD = "alice's secret, = and ü"
METADATA = {"topics": []}


class Guarded:
    """A server that asks for SASL, and what reached its handler."""

    def __init__(self, server: Server, handler: WhoAmI, users: Users) -> None:
        self.port = server.port
        self.server = server
        self.handler = handler
        self.users = users


@pytest.fixture
async def guarded() -> AsyncIterator[Callable[..., object]]:
    """Start guarded servers; closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(
            *, mechanisms: tuple[str, ...] = MECHANISMS, ssl: object = None, lifetime_ms: int = 0, **limits: int
        ) -> Guarded:
            users, handler = Users({ALICE: PASSWORD, "bob": "bob's"}), WhoAmI()
            sasl = SaslServer(
                mechanisms=mechanisms, credentials=users, session_lifetime_ms=lifetime_ms, failure_delay_ms=20
            )
            server = await serve(handler, "127.0.0.1", 0, limits=ServerLimits(**limits), ssl=ssl, sasl=sasl)
            stack.push_async_callback(server.close, 1)
            handler.port = server.port
            return Guarded(server, handler, users)

        yield start


async def who(port: int, mechanism: str, user: str = ALICE, password: str = PASSWORD, **settings: object) -> str:
    """Ask a guarded server who we are."""
    sasl = SaslCredentials(mechanism, user, password)
    connection = await Connection.open("127.0.0.1", port, client_id="tests", sasl=sasl, **settings)
    try:
        principal: str = (await connection.call(ApiKey.METADATA, METADATA))["cluster_id"]
        return principal
    finally:
        await connection.close()


def sasl_frame(key: ApiKey, version: int, body: dict[str, object]) -> bytes:
    """Write one of the two requests of SASL."""
    return codec.encode_request(key, version, 7, "raw", body)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("encrypted", [True, False])
async def test_an_authenticated_peer_is_called_by_its_name(
    mechanism: str, encrypted: bool, guarded, server_tls, client_tls
) -> None:
    """DefaultKafkaPrincipalBuilder: User and the authorization id."""
    server = await guarded(ssl=server_tls if encrypted else None)

    assert await who(server.port, mechanism, ssl=client_tls if encrypted else None) == "User:alice"
    assert server.handler.asked == [("User:ANONYMOUS", ApiKey.API_VERSIONS), ("User:alice", ApiKey.METADATA)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [(ALICE, "hunter2"), ("nobody", PASSWORD)])
async def test_a_wrong_password_is_refused_and_shown_nowhere(
    mechanism: str, user: str, password: str, guarded, caplog: pytest.LogCaptureFixture
) -> None:
    """The error says what failed; neither side writes the secret down."""
    caplog.set_level(logging.DEBUG)
    server = await guarded()
    with pytest.raises(AuthenticationFailed, match="SASL_AUTHENTICATION_FAILED") as failed:
        await who(server.port, mechanism, user, password)

    assert not failed.value.sent
    assert repr(user) in failed.value.reason
    assert password not in failed.value.reason + caplog.text
    assert password not in repr(SaslCredentials(mechanism, user, password))


async def test_failures_of_one_host_are_logged_once(guarded, caplog: pytest.LogCaptureFixture) -> None:
    """Guessing does not fill the log."""
    server = await guarded()
    for _ in range(3):
        with pytest.raises(AuthenticationFailed):
            await who(server.port, "PLAIN", ALICE, "guess")

    assert sum("Authentication failed" in record.getMessage() for record in caplog.records) == 1


async def test_a_mechanism_that_is_not_offered_is_refused_with_those_that_are(guarded) -> None:
    """KIP-43: UNSUPPORTED_SASL_MECHANISM and the enabled ones."""
    server = await guarded(mechanisms=("SCRAM-SHA-512",))
    with pytest.raises(AuthenticationFailed, match="UNSUPPORTED_SASL_MECHANISM; it offers SCRAM-SHA-512"):
        await who(server.port, "PLAIN")


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(codec.encode_request(ApiKey.METADATA, 12, 1, "raw", METADATA), id="metadata"),
        pytest.param(struct.pack(">hhi", 999, 0, 1), id="unknown key"),
        pytest.param(b"\0", id="garbage"),
        pytest.param(sasl_frame(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})[:-2], id="cut handshake"),
    ],
)
async def test_nothing_else_comes_through_before_authentication(frame: bytes, guarded, connect) -> None:
    """Only ApiVersions, SaslHandshake and SaslAuthenticate; the rest costs the connection."""
    server = await guarded()
    peer = await connect(server.server)
    await peer.send_frame(frame)

    assert await peer.is_closed_by_server()
    assert server.handler.asked == []


async def test_a_token_without_a_handshake_is_refused(guarded, connect) -> None:
    """SaslServerAuthenticator: illegal state, told and closed."""
    peer = await connect((await guarded()).server)
    await peer.send_frame(sasl_frame(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0x"}))
    _, body = codec.decode_response(ApiKey.SASL_AUTHENTICATE, 2, await peer.read_frame())

    assert body["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    assert await peer.is_closed_by_server()


async def test_only_small_frames_are_read_before_authentication(guarded, connect) -> None:
    """sasl.server.max.receive.size; after it the usual bound holds."""
    server = await guarded()
    peer = await connect(server.server)
    await peer.send(struct.pack(">i", MAX_RECEIVE_BYTES + 1))
    assert await peer.is_closed_by_server()

    sasl = SaslCredentials("PLAIN", ALICE, PASSWORD)
    connection = await Connection.open("127.0.0.1", server.port, client_id="tests", sasl=sasl)
    large = {"topics": [{"name": "t" * 30_000} for _ in range(20)]}
    assert (await connection.call(ApiKey.METADATA, large))["cluster_id"] == "User:alice"
    await connection.close()


async def test_who_does_not_authenticate_in_time_is_dropped(guarded, connect) -> None:
    """A silent peer does not hold its place for the long idle time."""
    peer = await connect((await guarded(authentication_timeout_ms=100)).server)

    assert await peer.is_closed_by_server()


@pytest.mark.parametrize("lifetime_ms", [300])
async def test_a_client_authenticates_again_before_its_session_ends(lifetime_ms: int, guarded) -> None:
    """KIP-368: at 85 to 95 percent of the session, between two requests, on the same connection."""
    server = await guarded(lifetime_ms=lifetime_ms)
    sasl = SaslCredentials("SCRAM-SHA-256", ALICE, PASSWORD)
    connection = await Connection.open("127.0.0.1", server.port, client_id="tests", sasl=sasl)
    began = asyncio.get_running_loop().time()
    while asyncio.get_running_loop().time() - began < 3 * lifetime_ms / 1000:
        answers = await asyncio.gather(*(connection.call(ApiKey.METADATA, METADATA) for _ in range(3)))
        assert [one["cluster_id"] for one in answers] == ["User:alice"] * 3
        await asyncio.sleep(0.01)
    server.users.passwords[ALICE] = "changed"
    await asyncio.sleep(lifetime_ms / 1000)
    with pytest.raises(AuthenticationFailed, match="SASL_AUTHENTICATION_FAILED"):
        await connection.call(ApiKey.METADATA, METADATA)
    assert connection.closed
    await connection.close()


async def log_in(peer: RawPeer, user: str, password: str, version: int = 1) -> bytes:
    """Say by PLAIN who we are, and give the last answer."""
    await peer.send_frame(sasl_frame(ApiKey.SASL_HANDSHAKE, version, {"mechanism": "PLAIN"}))
    await peer.read_frame()
    token = f"\0{user}\0{password}".encode()
    frame = token if version == 0 else sasl_frame(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": token})
    await peer.send_frame(frame)
    return await peer.read_frame()


async def test_a_session_that_is_over_takes_nothing_more(guarded, connect) -> None:
    """KIP-368: the server kills a connection whose client does not authenticate again."""
    peer = await connect((await guarded(lifetime_ms=50)).server)
    _, body = codec.decode_response(ApiKey.SASL_AUTHENTICATE, 2, await log_in(peer, ALICE, PASSWORD))
    await asyncio.sleep(0.1)
    await peer.send_frame(codec.encode_request(ApiKey.METADATA, 12, 1, "raw", METADATA))

    assert (body["error_code"], body["session_lifetime_ms"]) == (ErrorCode.NONE, 50)
    assert await peer.is_closed_by_server()


async def test_nobody_becomes_somebody_else_on_a_connection(guarded, connect) -> None:
    """SaslServerAuthenticator.ReauthInfo: the principal stays the same."""
    peer = await connect((await guarded()).server)
    await log_in(peer, ALICE, PASSWORD)
    _, body = codec.decode_response(ApiKey.SASL_AUTHENTICATE, 2, await log_in(peer, "bob", "bob's"))

    assert body["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert await peer.is_closed_by_server()


async def test_bare_tokens_follow_a_handshake_of_version_0(guarded, connect) -> None:
    """KIP-43: before Kafka 1.0 tokens had no header of Kafka's."""
    server = await guarded()
    peer, stranger = await connect(server.server), await connect(server.server)
    answer = await log_in(peer, ALICE, PASSWORD, version=0)
    await peer.send_frame(codec.encode_request(ApiKey.METADATA, 12, 1, "raw", METADATA))
    _, body = codec.decode_response(ApiKey.METADATA, 12, await peer.read_frame())

    assert answer == b""
    assert body["cluster_id"] == "User:alice"
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await log_in(stranger, ALICE, "wrong", version=0)


async def test_a_node_authenticates_on_every_connection(guarded) -> None:
    """Reconnects included."""
    server = await guarded()
    node = Node("127.0.0.1", server.port, NodeSettings(sasl=SaslCredentials("SCRAM-SHA-512", ALICE, PASSWORD)))
    first = await node.call(ApiKey.METADATA, METADATA)
    assert node._connection is not None
    await node._connection.close()
    second = await node.call(ApiKey.METADATA, METADATA)
    await node.close()

    assert [first["cluster_id"], second["cluster_id"]] == ["User:alice"] * 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("right", [True, False])
async def test_librdkafka_is_let_in_by_its_password_alone(mechanism: str, right: bool, guarded) -> None:
    """A client of another make."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    server = await guarded()
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
        assert ("User:alice", ApiKey.METADATA) not in server.handler.asked


async def test_librdkafka_authenticates_again_and_goes_on(guarded) -> None:
    """KIP-368 from the server's side, with a client of another make: one connection over several sessions."""
    from confluent_kafka.admin import AdminClient

    server = await guarded(lifetime_ms=1_000)
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

    # One to the bootstrap address, one to the broker that it names.
    assert len(connections) <= 2


async def read_on(peer: RawPeer) -> None:
    """Read until the connection ends."""
    while True:
        await peer.read_frame()


async def test_requests_between_the_steps_of_authentication_are_refused(guarded, connect) -> None:
    """SaslServerAuthenticator: also when they come in one packet with them, and on a connection that was open before."""
    metadata = codec.encode_request(ApiKey.METADATA, 12, 1, "raw", METADATA)
    handshake = sasl_frame(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    wrong = sasl_frame(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0wrong"})
    server = await guarded()
    for frames in ([handshake, metadata], [handshake, handshake], [handshake, wrong, metadata], [wrong, metadata]):
        for opened in (False, True):
            peer = await connect(server.server)
            if opened:
                await log_in(peer, ALICE, PASSWORD)
            await peer.send(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await read_on(peer)

    assert ApiKey.METADATA not in {key for _, key in server.handler.asked}


async def test_credentials_that_cannot_be_looked_up_close_the_connection_alone(guarded) -> None:
    """Neither let in nor told that a password is wrong: the client comes again."""
    server = await guarded()

    async def lost(*_: object) -> None:
        raise CloseConnection("credentials are out of reach")

    server.users.scram_credential = lost
    with pytest.raises(ConnectionFailed, match="closed the connection") as failed:
        await who(server.port, "SCRAM-SHA-256")

    assert not isinstance(failed.value, AuthenticationFailed)
    assert await who(server.port, "PLAIN") == "User:alice"
