"""Waiting for the cluster to reach some state: waiters check their condition after every commit."""

import asyncio
from collections.abc import Callable


class Commits:
    """The commits of one term, as an event that occurs again and again."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        """Wake all waiters."""
        self._next.set()
        self._next = asyncio.Event()

    async def wait_until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until a condition holds; False when the time is up first."""
        try:
            async with asyncio.timeout(max(0, timeout_ms) / 1000):
                while not holds():
                    await self._next.wait()
        except TimeoutError:
            return holds()
        return True
