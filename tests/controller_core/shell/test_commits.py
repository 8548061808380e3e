"""Waiting for a condition on the cluster, which is checked after each commit."""

import asyncio

from controller_core.shell.active import Commits

PATIENCE_MS = 60_000


async def test_a_waiter_continues_when_its_condition_holds() -> None:
    """It checks after every commit, and only then."""
    commits, state = Commits(), {"commits": 0}
    waiting = asyncio.create_task(commits.wait_until(lambda: state["commits"] == 2, PATIENCE_MS))
    for _ in range(2):
        await asyncio.sleep(0)
        assert not waiting.done()
        state["commits"] += 1
        commits.notify()

    assert await waiting


async def test_a_condition_that_holds_already_needs_no_wait() -> None:
    """Also with a timeout of 0."""
    assert await Commits().wait_until(lambda: True, 0)


async def test_a_wait_times_out() -> None:
    """The condition never holds."""
    assert not await Commits().wait_until(lambda: False, 1)
