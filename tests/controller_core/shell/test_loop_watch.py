"""Watchdog of the event loop: its measurements, and the closing of sessions."""

import asyncio
import threading
import time

import pytest

from controller_core.shell.loop_watch import LoopWatch, Stillness
from tests.controller_core.shell.running_process import RunningProcess

LIMIT_S = 0.4
PATIENCE_S = 60


@pytest.mark.slow
async def test_a_blocked_loop_gives_up_once(caplog: pytest.LogCaptureFixture) -> None:
    """While the loop is still blocked; the log names the blocking call."""
    given_up = threading.Event()
    calls: list[int] = []

    def give_up() -> bool:
        calls.append(threading.get_ident())
        given_up.set()
        return True

    watch = LoopWatch(LIMIT_S, give_up)
    watch.start()
    await asyncio.sleep(0)
    assert given_up.wait(PATIENCE_S)
    time.sleep(2 * LIMIT_S)  # noqa: ASYNC251 - the test blocks the loop
    await asyncio.sleep(0.05)
    watch.stop()
    assert len(calls) == 1
    assert calls[0] != threading.get_ident()
    assert watch.given_up == 1
    (record,) = [record for record in caplog.records if "blocked" in record.getMessage()]
    assert "test_a_blocked_loop_gives_up_once" in vars(record)["where"]


async def test_the_longest_stall_since_the_last_call_is_measured() -> None:
    """Each scrape starts again."""
    watch = LoopWatch(60, lambda: False)
    watch.start()
    await asyncio.sleep(0.05)
    watch.take_longest_stall_s()
    time.sleep(0.3)  # noqa: ASYNC251 - the test blocks the loop
    await asyncio.sleep(0.05)
    assert watch.take_longest_stall_s() >= 0.28
    assert watch.take_longest_stall_s() == 0
    watch.stop()


@pytest.mark.slow
async def test_a_failure_to_give_up_does_not_end_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    """The next block is detected as well."""
    tried = threading.Semaphore(0)

    def fail() -> bool:
        tried.release()
        raise ZeroDivisionError

    watch = LoopWatch(LIMIT_S, fail)
    watch.start()
    for _ in range(2):
        assert tried.acquire(timeout=PATIENCE_S)
        await asyncio.sleep(LIMIT_S / 2)
    watch.stop()
    assert watch.given_up == 0
    assert any("Failed to close the ZooKeeper session" in record.getMessage() for record in caplog.records)


def test_a_stopped_process_does_not_count_as_blocked() -> None:
    """SIGSTOP, a suspended machine: one check is missed, however long it took, and the heartbeats continue."""
    stillness = Stillness(checks=8)
    assert not any(stillness.is_reached(beats) for beats in (1, 2, 2, 3))


async def test_stalls_and_sessions_given_up_are_metrics(running: RunningProcess) -> None:
    """Each scrape has the longest stall since the former one."""
    running.start()
    await running.until_active()
    time.sleep(0.2)  # noqa: ASYNC251 - the test blocks the loop
    await asyncio.sleep(0.05)
    running.process._before_scrape()
    registry = running.process.metrics.registry
    assert registry.get_sample_value("steward_controller_loop_longest_stall_seconds") >= 0.18
    assert registry.get_sample_value("steward_controller_sessions_given_up") == 0
    await running.end()
