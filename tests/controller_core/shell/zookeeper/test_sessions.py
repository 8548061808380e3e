"""Sessions and tenures of a process, one after the other: lost, taken by others, failed.

Sources: ADR 5; ARCHITECTURE.md (how a tenure lives).
"""

import logging
from typing import Any

import pytest

from controller_core.model.events import Heal
from controller_core.shell import controller as controller_module
from controller_core.shell.zookeeper import sessions as sessions_module
from kafka_wire.net.backoff import Backoff
from kafka_zookeeper import paths
from kafka_zookeeper.errors import ConnectFailedError
from tests.controller_core.shell.process_life import OWN_ID, Life, fails


async def test_it_stops_while_it_pauses_after_a_failure(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of half a minute is nobody's reason to wait for so long."""
    monkeypatch.setattr(sessions_module, "SESSION_PAUSES", Backoff(initial_ms=60_000, cap_ms=60_000))
    life.start()
    for lives in (1, 2):
        await life.until(lambda lives=lives: len(life.sessions) == lives)  # type: ignore[misc]
        life.sessions[-1].expire()
    await life.until(lambda: life.sessions[-1].closed)
    await life.end()
    assert len(life.sessions) == 2


async def test_without_a_first_session_it_says_so_and_ends(life: Life) -> None:
    """A wrong address is told at once, not tried for ever."""
    life.connecting.append(fails)
    life.start()
    assert life.run is not None
    with pytest.raises(ConnectFailedError, match="zk:2181"):
        await life.run


async def test_a_session_that_is_lost_is_followed_by_another(life: Life, caplog: pytest.LogCaptureFixture) -> None:
    """However long ZooKeeper is away; the epoch grows (C5)."""
    life.start()
    await life.until_active()
    life.connecting += [fails, fails]
    with caplog.at_level(logging.ERROR):
        life.sessions[0].expire()
        await life.until(lambda: len(life.sessions) == 2)
        await life.until_active()

    assert life.server.at(paths.CONTROLLER_EPOCH).data == b"9"
    assert [record.getMessage() for record in caplog.records].count("Failed to connect to ZooKeeper; retrying") == 2


async def test_a_session_that_is_lost_while_everything_is_read_is_followed_by_another(life: Life) -> None:
    """The place was taken and never filled."""
    life.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    life.server.before_reads.append((paths.topic("orders"), life.lose_session))
    life.start()
    await life.until_active()
    assert len(life.sessions) == 2
    assert life.sessions[1].session_id == life.server.at(paths.CONTROLLER).owner


async def test_a_place_that_is_lost_while_everything_is_read_is_stood_by_for(life: Life) -> None:
    """Our fence does not hold: nothing is to be undone, and the process lives on."""
    life.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    life.broker(1)
    life.server.before_reads.append((paths.topic("orders"), lambda: life.takes(1001)))
    life.start()
    await life.until(lambda: any("/brokers/ids/1001" in line for line in life.server.lines))
    assert life.holder() == 1001
    assert len(life.sessions) == 1


async def test_a_place_that_is_lost_is_taken_again_when_it_is_free(life: Life) -> None:
    """Within the same session."""
    life.start()
    await life.until_active()
    rival = life.takes(1001)
    await life.until(lambda: life.process.active is None)
    rival.expire()
    await life.until_active()

    assert len(life.sessions) == 1
    assert life.holder() == OWN_ID


async def test_a_failed_tenure_gives_the_place_up_and_is_followed_by_another(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect ends a tenure and nothing else: for as long as we pause, a broker can stand in."""
    decide = controller_module.decide
    failures = 3

    def decide_or_fail(cluster: Any, event: Any) -> Any:
        nonlocal failures
        if isinstance(event, Heal) and failures:
            failures -= 1
            raise ZeroDivisionError
        return decide(cluster, event)

    monkeypatch.setattr(controller_module, "decide", decide_or_fail)
    life.start()
    await life.until(lambda: failures == 0)
    await life.until(lambda: life.process.active is not None and not life.process.active.has_ended)

    assert len(life.sessions) == 4
    assert [session.closed for session in life.sessions] == [True, True, True, False]
