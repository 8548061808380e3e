"""A term, and a whole process, that end with their tests."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from controller_core.shell import broker_settings as broker_settings_module
from controller_core.shell.zookeeper import controller_election as election_module
from controller_core.shell.zookeeper import sessions as sessions_module
from kafka_wire.net.backoff import Backoff
from kafka_zookeeper.session import ZooKeeperSession
from tests.controller_core.shell.running_process import RunningProcess
from tests.controller_core.shell.terms import Term
from tests.kafka_wire.net.peers import check_no_task_remains


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """A term over brokers 1, 2 and 3."""
    term = Term(monkeypatch, 1, 2, 3)
    yield term
    await term.controller.close()
    assert term.controller._tasks == set()


@pytest.fixture
async def running(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningProcess]:
    """A process that is not started yet and ends with its test, with all of its tasks and sessions."""
    running = RunningProcess()
    monkeypatch.setattr(ZooKeeperSession, "connect", running.connect)
    monkeypatch.setattr(broker_settings_module, "read_broker_settings", running.read_broker_settings)
    monkeypatch.setattr(sessions_module, "SESSION_PAUSES", Backoff(initial_ms=1, cap_ms=2))
    monkeypatch.setattr(sessions_module, "RECONNECT_S", 0.001)
    monkeypatch.setattr(election_module, "RETRY_S", 0.001)

    async def no_chroot(_settings: object) -> None:
        pass

    monkeypatch.setattr(sessions_module, "ensure_chroot", no_chroot)
    yield running
    running.process.stop()
    if running.run is not None:
        await asyncio.gather(running.run, return_exceptions=True)
    await check_no_task_remains()
    assert all(session.closed for session in running.sessions)
