"""Fixtures of kafka_zookeeper: sessions, and a fake server for faults that a real one does not produce on demand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.settings import ZooKeeperSettings
from lab.peers.zookeeper import ZooKeeperServer
from tests.kafka_zookeeper.fake_zookeeper import FakeZooKeeper

OpenSession = Callable[..., Awaitable[ZooKeeperSession]]


@pytest.fixture
async def open_session() -> AsyncIterator[OpenSession]:
    """Open sessions by connect string; closed after the test."""
    sessions: list[ZooKeeperSession] = []

    async def opened(connect: str, session_timeout_ms: int = 10_000) -> ZooKeeperSession:
        session = await ZooKeeperSession.connect(ZooKeeperSettings(connect, session_timeout_ms))
        sessions.append(session)
        return session

    yield opened
    await asyncio.gather(*(session.close() for session in sessions))


@pytest.fixture
async def session(open_session: OpenSession, zookeeper: ZooKeeperServer, chroot: str) -> ZooKeeperSession:
    """Return a session on the shared ZooKeeper, with a separate chroot for this test."""
    return await open_session(zookeeper.connect(chroot))


@pytest.fixture
async def fake() -> AsyncIterator[FakeZooKeeper]:
    """Return a fake server that the test controls."""
    server = FakeZooKeeper()
    await server.start()
    yield server
    await server.stop()
