"""Long computations one after another, at most one in each iteration of the event loop.

A failover of 200,000 partitions is some hundred milliseconds of computation. Cut into steps of at most 40 ms that each wait for
`Pace.step`, it leaves the event loop free between any two of them, whichever tasks they belong to: without a pace, ten channels that
are woken together would encode ten large requests in one iteration.

Leaves out where a computation can be cut. What must see the cluster unchanged holds its turn meanwhile (turns).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LARGE = 2_000
"""Partitions from which a computation waits for its step: about a millisecond. Fewer are done at once, since a step costs an
iteration of the event loop."""


async def others_run() -> None:
    """Let everything run that is due: timers, sockets, other tasks.

    A task that sleeps once continues at the beginning of the next iteration, before the timers and sockets that came due during
    its last step. Sleeping twice puts it behind them.
    """
    await asyncio.sleep(0)
    await asyncio.sleep(0)


class Pace:
    """The steps of one controller."""

    def __init__(self) -> None:
        self._step = asyncio.Lock()  # fair: steps are taken in the order in which they were asked for

    @asynccontextmanager
    async def step(self, partitions: int = LARGE) -> AsyncIterator[None]:
        """Compute in a step of its own; at once where it is about few partitions."""
        if partitions < LARGE:
            yield
            return
        async with self._step:
            yield
            # Only then may the next one begin.
            await others_run()


class Pauses:
    """Lets the event loop run within a loop over many things, each time that so much work is done."""

    def __init__(self, limit: int) -> None:
        """`limit` is in the unit of the work: partitions, bytes, znodes."""
        self._limit = limit
        self._done = 0

    async def after(self, work: int = 1) -> None:
        """Pause where this work comes up to the limit, with the work since the last pause."""
        self._done += work
        if self._done >= self._limit:
            self._done = 0
            await others_run()
