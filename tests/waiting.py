"""Waiting for a condition without blocking the event loop, for state that has no event to wait for.

Tests that wait for other processes, without an event loop, use `lab.processes.waiting`.
"""

import asyncio
from collections.abc import Callable

TIMEOUT_S = 60.0
"""Generous: it ends a test that hangs, and measures nothing."""

POLL_S = 0.005
"""Conditions are reads of this process's memory, which cost little; tests run seven at a time on two cores."""


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until the condition is true."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - the tested code sets no event
            await asyncio.sleep(POLL_S)
