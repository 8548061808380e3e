"""Commits of one term, for requests that wait until the cluster has a state."""

import asyncio
from collections.abc import Callable


class Commits:
    """The commits of one term: waiters check their condition after each of them."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        """Wake all waiters."""
        self._next.set()
        self._next = asyncio.Event()

    async def wait_until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until a condition holds; False on timeout."""
        try:
            async with asyncio.timeout(max(0, timeout_ms) / 1000):
                while not holds():
                    await self._next.wait()
        except TimeoutError:
            return holds()
        return True
