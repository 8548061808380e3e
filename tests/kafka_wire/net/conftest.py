"""Fixtures of kafka_wire.net: a server and raw peers on loopback. No test may leave a task running."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_wire.net.client import Connection
from kafka_wire.net.peer import StartsAtOnce, starts_in_task
from kafka_wire.net.principal_rules import DEFAULT_RULES, PrincipalRules
from kafka_wire.net.server import (
    ConnectionQuotas,
    Handler,
    LargeHandler,
    RequestChannel,
    Server,
    ServerLimits,
    serve,
)
from tests.kafka_wire.net.peers import RawPeer, check_no_task_remains, echo

_TEST_CERTIFICATE = Path(__file__).parent / "test_only_localhost.pem"


@pytest.fixture(autouse=True)
async def no_remaining_tasks() -> AsyncIterator[None]:
    """Fail a test that leaves a task running; set up before and torn down after every other fixture."""
    yield
    await check_no_task_remains()


@pytest.fixture
def starts_at_once() -> StartsAtOnce:
    """Start handlers in tasks; test_server.py runs each of its tests in both ways."""
    return starts_in_task


@pytest.fixture
async def start_server(starts_at_once: StartsAtOnce) -> AsyncIterator[Callable[..., Awaitable[Server]]]:
    """Start servers on loopback; closed after the test."""
    servers: list[Server] = []

    async def start(
        handler: Handler = echo,
        *,
        ssl: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        principal_rules: PrincipalRules = DEFAULT_RULES,
        large_handler: LargeHandler | None = None,
        channel: RequestChannel | None = None,
        quotas: ConnectionQuotas | None = None,
        is_protected: bool = False,
        **limits: float,
    ) -> Server:
        server = await serve(
            handler,
            host,
            port,
            limits=ServerLimits(**limits),  # checked at run time
            ssl=ssl,
            principal_rules=principal_rules,
            large_handler=large_handler,
            starts_at_once=starts_at_once,
            channel=channel,
            quotas=quotas,
            is_protected=is_protected,
        )
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.close(grace_ms=1)


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., Awaitable[RawPeer]]]:
    """Open raw connections to a server; closed after the test."""
    peers: list[RawPeer] = []

    async def open_peer(server: Server) -> RawPeer:
        peer = RawPeer(*await asyncio.open_connection("127.0.0.1", server.port))
        peers.append(peer)
        return peer

    yield open_peer
    for peer in peers:
        await peer.close()


@pytest.fixture
async def start_script() -> AsyncIterator[Callable[..., Awaitable[int]]]:
    """Start peers that follow a script, which may violate the protocol; returns the port."""
    servers: list[asyncio.Server] = []
    followed: dict[asyncio.Task[None], RawPeer] = {}

    async def start(script: Callable[[RawPeer], Awaitable[None]]) -> int:
        async def follow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer = RawPeer(reader, writer)
            task = asyncio.current_task()
            assert task is not None
            followed[task] = peer
            try:
                await script(peer)
                await reader.read()
            except (ConnectionError, asyncio.IncompleteReadError):
                return
            finally:
                await peer.close()

        server = await asyncio.start_server(follow, "127.0.0.1", 0)
        servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield start
    for server in servers:
        server.close()
    for peer in followed.values():
        await peer.close()
    if followed:
        await asyncio.wait(followed)


@pytest.fixture
async def open_connection() -> AsyncIterator[Callable[..., Awaitable[Connection]]]:
    """Open client connections; closed after the test."""
    connections: list[Connection] = []

    async def open_one(port: int, **settings: Any) -> Connection:
        connection = await Connection.open("127.0.0.1", port, client_id="tests", **settings)
        connections.append(connection)
        return connection

    yield open_one
    for connection in connections:
        await connection.close()


@pytest.fixture(scope="session")
def server_tls() -> ssl.SSLContext:
    """TLS context of a server on localhost, with a public key that only tests use."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_TEST_CERTIFICATE)
    return context


@pytest.fixture(scope="session")
def client_tls() -> ssl.SSLContext:
    """TLS context of a client that trusts the tests' certificate and verifies everything."""
    return ssl.create_default_context(cafile=str(_TEST_CERTIFICATE))
