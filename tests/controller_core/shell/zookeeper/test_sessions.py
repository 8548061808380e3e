"""Sessions and tenures of a process, one after the other: lost, taken by others, failed.

Sources: ADR 5; ARCHITECTURE.md (how a tenure lives).
"""

import logging
from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.events import RepairPartitions
from controller_core.shell.zookeeper import sessions
from controller_core.shell.zookeeper.mode import ZOOKEEPER_MODE
from kafka_wire.net.backoff import Backoff
from kafka_zookeeper import paths
from kafka_zookeeper.errors import ConnectFailedError
from tests.controller_core.shell.running_process import OWN_ID, RunningProcess, fails


async def test_it_stops_while_it_pauses_after_a_failure(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause of half a minute is nobody's reason to wait for so long."""
    monkeypatch.setattr(sessions, "PAUSES", Backoff(initial_ms=60_000, cap_ms=60_000))
    running.start()
    for lives in (1, 2):
        await running.until(lambda lives=lives: len(running.sessions) == lives)  # type: ignore[misc]
        running.sessions[-1].expire()
    await running.until(lambda: running.sessions[-1].closed)
    await running.end()
    assert len(running.sessions) == 2


async def test_without_a_first_session_it_says_so_and_ends(running: RunningProcess) -> None:
    """A wrong address is told at once, not tried for ever."""
    running.connecting.append(fails)
    running.start()
    assert running.run is not None
    with pytest.raises(ConnectFailedError, match="zk:2181"):
        await running.run


async def test_a_session_that_is_lost_is_followed_by_another(
    running: RunningProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """However long ZooKeeper is away; the epoch grows (C5)."""
    running.start()
    await running.until_active()
    running.connecting += [fails, fails]
    with caplog.at_level(logging.ERROR):
        running.sessions[0].expire()
        await running.until(lambda: len(running.sessions) == 2)
        await running.until_active()

    assert running.server.at(paths.CONTROLLER_EPOCH).data == b"9"
    assert [record.getMessage() for record in caplog.records].count("no session with ZooKeeper") == 2


async def test_a_session_that_is_lost_while_everything_is_read_is_followed_by_another(running: RunningProcess) -> None:
    """The place was taken and never filled."""
    running.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    running.server.before_reads.append((paths.topic("orders"), running.lose_session))
    running.start()
    await running.until_active()
    assert len(running.sessions) == 2
    assert running.sessions[1].session_id == running.server.at(paths.CONTROLLER).owner


async def test_a_place_that_is_lost_while_everything_is_read_is_stood_by_for(running: RunningProcess) -> None:
    """Our fence does not hold: nothing is to be undone, and the process lives on."""
    running.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    running.broker(1)
    running.server.before_reads.append((paths.topic("orders"), lambda: running.elect(1001)))
    running.start()
    await running.until(lambda: any("/brokers/ids/1001" in line for line in running.server.lines))
    assert running.active_controller() == 1001
    assert len(running.sessions) == 1


async def test_a_place_that_is_lost_is_taken_again_when_it_is_free(running: RunningProcess) -> None:
    """Within the same session."""
    running.start()
    await running.until_active()
    rival = running.elect(1001)
    await running.until(lambda: running.process.active is None)
    rival.expire()
    await running.until_active()

    assert len(running.sessions) == 1
    assert running.active_controller() == OWN_ID


async def test_a_failed_tenure_gives_the_place_up_and_is_followed_by_another(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect ends a tenure and nothing else: for as long as we pause, a broker can stand in."""
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
