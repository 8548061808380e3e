"""Pacing of long computations: at most one step in each iteration of the event loop.

A failover of 200,000 partitions is some hundred milliseconds of computation. Cut into steps of at most 40 ms that each wait for
`Pace.step`, it leaves the event loop free between any two of them, whichever tasks they belong to. Without pacing, ten channels that
are woken together would encode ten large requests in one iteration.

A computation that must see an unchanged cluster in all of its steps holds its scope in the scheduler.

Computations for clients, such as a response about all topics, have shorter steps (`ClientPace`). While the controller processes events,
such as a failover, they take a small part of its time.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kafka_wire.net.outflow import never

LARGE = 2_000
"""Number of partitions from which a computation waits for a step: about a millisecond of work. Smaller computations run at once, since
a step costs an iteration of the event loop."""


async def others_run() -> None:
    """Let all due timers, sockets and other tasks run.

    A task that sleeps once continues at the beginning of the next iteration, before the timers and sockets that came due during
    its last step. Sleeping twice puts it behind them.
    """
    await asyncio.sleep(0)
    await asyncio.sleep(0)


EXCHANGE_ITERATIONS = 4
"""Iterations of the event loop that a message, a flush or a commit takes from the socket or thread to the task that acts on it."""


async def exchanges_run() -> None:
    """Let a message, a flush or a commit pass from the socket or thread to the task that acts on it, and that act.

    A commit takes some ten of these, in three controllers. With a part of a long computation in each iteration, it would wait for as many.
    """
    for _ in range(EXCHANGE_ITERATIONS):
        await asyncio.sleep(0)


class Pace:
    """The steps of one controller's own computations."""

    def __init__(self) -> None:
        self._step = asyncio.Lock()  # fair: steps run in the order in which they were requested

    @asynccontextmanager
    async def step(self, partitions: int = LARGE) -> AsyncIterator[None]:
        """Run the body in a step of its own; at once for few partitions."""
        if partitions < LARGE:
            yield
            return
        async with self._step:
            yield
            # The next step begins after these.
            await others_run()


class Pauses:
    """Pauses within a long loop, so that the event loop runs each time after a fixed amount of work."""

    def __init__(self, limit: int) -> None:
        """`limit` is in the unit of the work: partitions, bytes, znodes."""
        self._limit = limit
        self._done = 0

    async def after(self, work: int = 1) -> None:
        """Add to the work since the last pause, and pause when it reaches the limit."""
        self._done += work
        if self._done >= self._limit:
            self._done = 0
            await others_run()


STEP_S = 0.002
"""Time that one step may take: 25 of them fit into the longest permitted stall of 50 ms, and it is 20 times what a switch
between tasks costs."""
URGENT_SHARE = 20
"""While the controller is busy, one part in so many of the loop's time goes to clients' computations, so that a failover
takes at most 5 % longer."""

Clock = Callable[[], float]


class ClientPace:
    """Pace of one computation for a client. `is_urgent` reports whether the controller has events to process."""

    def __init__(self, is_urgent: Callable[[], bool] = never, clock: Clock = time.perf_counter) -> None:
        self._is_urgent = is_urgent
        self._clock = clock
        self._began_s = clock()

    @property
    def is_due(self) -> bool:
        """Whether the current step has taken its time."""
        return self._clock() - self._began_s >= STEP_S

    async def step(self) -> None:
        """End the current step: let the event loop run, for longer while the controller is busy."""
        spent_s = self._clock() - self._began_s
        await asyncio.sleep(spent_s * (URGENT_SHARE - 1) if self._is_urgent() else 0)
        self._began_s = self._clock()

    async def step_if_due(self) -> None:
        """End the current step where it has taken its time."""
        if self.is_due:
            await self.step()
