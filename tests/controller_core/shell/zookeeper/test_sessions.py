"""Sessions and active terms of a process: lost sessions, lost controllership, failed terms.

Sources: ADR 5; ARCHITECTURE.md.
"""

import logging
from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.events import RepairPartitions
from controller_core.shell.zookeeper import sessions
from controller_core.shell.zookeeper.sessions import ZOOKEEPER_MODE
from kafka_wire.net.backoff import Backoff
from kafka_zookeeper import paths
from kafka_zookeeper.errors import ConnectFailedError
from tests.controller_core.shell.running_process import OWN_ID, RunningProcess, fails


async def test_a_process_can_be_stopped_during_a_pause_after_a_failure(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopping must not wait for the end of a pause, which can last half a minute."""
    monkeypatch.setattr(sessions, "SESSION_PAUSES", Backoff(initial_ms=60_000, cap_ms=60_000))
    running.start()
    for count in (1, 2):
        await running.until(lambda count=count: len(running.sessions) == count)
        running.sessions[-1].expire()
    await running.until(lambda: running.sessions[-1].closed)
    await running.end()
    assert len(running.sessions) == 2


async def test_a_process_ends_if_the_first_connection_fails(running: RunningProcess) -> None:
    """A wrong address is reported at once instead of being retried forever."""
    running.connecting.append(fails)
    running.start()
    assert running.run is not None
    with pytest.raises(ConnectFailedError, match="zk:2181"):
        await running.run


async def test_a_lost_session_is_followed_by_another_one(
    running: RunningProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """However long ZooKeeper is unavailable; the epoch grows (C5)."""
    running.start()
    await running.until_active()
    running.connecting += [fails, fails]
    with caplog.at_level(logging.ERROR):
        running.sessions[0].expire()
        await running.until(lambda: len(running.sessions) == 2)
        await running.until_active()

    assert running.server.at(paths.CONTROLLER_EPOCH).data == b"9"
    assert [record.getMessage() for record in caplog.records].count("Failed to connect to ZooKeeper; retrying") == 2


async def test_a_session_lost_during_loading_is_followed_by_another_one(running: RunningProcess) -> None:
    """Controllership was acquired, and the term never became active."""
    running.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    running.server.before_reads.append((paths.topic("orders"), running.lose_session))
    running.start()
    await running.until_active()
    assert len(running.sessions) == 2
    assert running.sessions[1].session_id == running.server.at(paths.CONTROLLER).owner


async def test_after_losing_controllership_during_loading_the_process_is_a_standby(running: RunningProcess) -> None:
    """The fence does not hold: there is nothing to undo, and the session continues."""
    running.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    running.broker(1)
    running.server.before_reads.append((paths.topic("orders"), lambda: running.elect(1001)))
    running.start()
    await running.until(lambda: any("/brokers/ids/1001" in line for line in running.server.lines))
    assert running.active_controller() == 1001
    assert len(running.sessions) == 1


@pytest.mark.slow
async def test_lost_controllership_is_acquired_again_when_it_is_available(running: RunningProcess) -> None:
    """In the same session."""
    running.start()
    await running.until_active()
    rival = running.elect(1001)
    await running.until(lambda: running.process.active is None)
    rival.expire()
    await running.until_active()

    assert len(running.sessions) == 1
    assert running.active_controller() == OWN_ID


@pytest.mark.slow
async def test_a_failed_term_releases_controllership_and_is_followed_by_another_one(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect only ends the term: during the pause a broker can act as controller."""
    failures = 3

    def decide_or_fail(cluster: Any, event: Any) -> Any:
        nonlocal failures
        if isinstance(event, RepairPartitions) and failures:
            failures -= 1
            raise ZeroDivisionError
        return ZOOKEEPER_MODE.decide(cluster, event)

    monkeypatch.setattr(sessions, "ZOOKEEPER_MODE", replace(ZOOKEEPER_MODE, decide=decide_or_fail))
    running.start()
    await running.until(lambda: failures == 0)
    await running.until(lambda: running.process.active is not None and not running.process.active.has_ended)

    assert len(running.sessions) == 4
    assert [session.closed for session in running.sessions] == [True, True, True, False]
