"""Scheduling of events: those whose scopes overlap run one after another, all others at the same time.

A turn lasts from the decision to the end of its writes, so that no decision is made on a state that another one is about to
change; and yet the loop never waits for ZooKeeper with everything.

Overlapping events run in the order of their arrival, except that events of the controller itself and of brokers pass those of
clients: a failover or a change of an ISR does not wait behind 2,000 requests of a tool. An event of a client is passed by fewer
than CLIENT_HANDICAP later events, so it is delayed and never starves.

Sources: KIP-497, KIP-631 (Kafka's controller queues its own events without a bound). Leaves out what happens in a turn.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from controller_core.model.scope import Scope
from controller_core.shell.active import OverloadedError
from controller_core.shell.event_source import MAX_CLIENT_WAITING, OWN, Source, SourceKind
from controller_core.shell.scope_locks import Claim, ScopeLocks

CLIENT_HANDICAP = 2 * MAX_CLIENT_WAITING
"""Fewer later events than these pass an event of a client. More than clients' events can wait, so that all of those are passed."""


class Turns:
    """The queue of one controller's events."""

    def __init__(self) -> None:
        self._locks = ScopeLocks()
        self._begins: dict[Claim, asyncio.Future[None]] = {}
        """Claims that wait, and what their events wait for."""
        self._waiting: Counter[Source] = Counter()
        self._arrivals = count()
        self._running = 0

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._begins)

    @property
    def are_busy(self) -> bool:
        """Whether any event is being processed or waits."""
        return bool(self._running or self._waiting)

    @asynccontextmanager
    async def take(self, scope: Scope, source: Source = OWN) -> AsyncIterator[None]:
        """Wait for the turn, and hold it. Raises OverloadedError when too many events of this source wait."""
        limit = source.max_waiting
        if limit is not None and self._waiting[source] >= limit:
            raise OverloadedError(f"{limit} events of this source ({source}) wait for their turn")
        arrival = next(self._arrivals)
        handicap = CLIENT_HANDICAP if source.kind is SourceKind.CLIENT else 0
        claim = self._locks.claim(scope, (arrival + handicap, arrival))
        begun = self._begins[claim] = asyncio.get_running_loop().create_future()
        self._waiting[source] += 1
        self._begin_if_free(claim)
        try:
            await begun
        except asyncio.CancelledError:
            # Cancelled while waiting, or after it was admitted and before it ran.
            self._leave(claim)
            raise
        finally:
            self._waiting[source] -= 1
            if not self._waiting[source]:
                del self._waiting[source]
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._leave(claim)

    def _begin_if_free(self, claim: Claim) -> None:
        if self._locks.is_free(claim):
            self._locks.hold(claim)
            begun = self._begins.pop(claim)
            if not begun.done():
                begun.set_result(None)

    def _leave(self, claim: Claim) -> None:
        self._begins.pop(claim, None)
        for other in self._locks.release(claim):
            self._begin_if_free(other)
