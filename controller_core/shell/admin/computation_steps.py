"""Division of long computations for clients into steps, so that the event loop runs in between.

While the controller processes events, such as a failover, computations for clients take a small part of its time.
"""

import asyncio
import time
from collections.abc import Callable

from kafka_wire.net.outflow import never

STEP_S = 0.002
"""Time that one step may take: 25 of them fit into the longest permitted stall of 50 ms, and it is 20 times what a switch
between tasks costs."""
URGENT_SHARE = 20
"""While the controller is busy, one part in so many of the loop's time goes to clients' computations, so that a failover
takes at most 5 % longer."""

Clock = Callable[[], float]


class Pace:
    """Pace of one computation. `is_urgent` reports whether the controller has events to process."""

    def __init__(self, is_urgent: Callable[[], bool] = never, clock: Clock = time.perf_counter) -> None:
        self._is_urgent = is_urgent
        self._clock = clock
        self._began_s = clock()

    @property
    def is_due(self) -> bool:
        """Whether the present step has taken its time."""
        return self._clock() - self._began_s >= STEP_S

    async def step(self) -> None:
        """End the present step: let the event loop run, for longer while the controller is busy."""
        spent_s = self._clock() - self._began_s
        await asyncio.sleep(spent_s * (URGENT_SHARE - 1) if self._is_urgent() else 0)
        self._began_s = self._clock()

    async def step_if_due(self) -> None:
        """End the present step where it has taken its time."""
        if self.is_due:
            await self.step()
