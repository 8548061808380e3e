"""A process that has taken the place and still reads the cluster: callers wait for it. Leaves out when that begins and ends."""

import asyncio
from contextlib import suppress

SETTLE_TIMEOUT_S = 10.0
"""How long a caller waits for a controller that is reading the cluster; after that it asks elsewhere or again."""


class ActivationGate:
    """Whether the place is taken and not yet filled."""

    def __init__(self) -> None:
        self._taking = False
        self._settled = asyncio.Event()

    async def wait(self) -> None:
        """Wait, for a bounded time, while the place is taken and not yet filled: brokers send callers here already."""
        if self._taking:
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_TIMEOUT_S):
                    await self._settled.wait()

    def begin(self) -> None:
        """Let callers wait: the place is taken."""
        self._taking = True

    def end(self) -> None:
        """Let callers go on: the place is filled, or lost again."""
        self._taking = False
        self._settled.set()
        self._settled = asyncio.Event()
