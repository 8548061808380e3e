"""Whose turn it is: events that touch a common partition wait for each other, all others go on.

A turn lasts from the decision to the end of its writes, so that a decision is never made on a state that another one is
about to change; and yet the loop never waits for ZooKeeper with everything (design: pipelining). Turns are taken in the
order they were asked for: an event never overtakes an earlier one that it meets, so none waits for ever.

Leaves out what happens in a turn.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from controller_core.model.scope import Scope
from controller_core.shell.active import OverloadedError

MAX_WAITING = 10_000
"""Events that may wait for their turn. Each holds a request of a caller; at a millisecond each this is ten seconds of work,
after which callers have given up anyway."""


def admissible(running: Sequence[Scope], waiting: Sequence[Scope]) -> list[int]:
    """Choose which of those that wait may start: those that meet nobody who runs or waits before them.

    >>> from controller_core.model.scope import ALL, topics
    >>> admissible([topics("a")], [topics("b"), topics("a"), ALL, topics("c")])
    [0]
    """
    admitted: list[int] = []
    before = list(running)
    for place, scope in enumerate(waiting):
        if not any(scope.meets(other) for other in before):
            admitted.append(place)
        before.append(scope)
        if scope.everything:
            break  # Nobody behind it can start.
    return admitted


class Turns:
    """The queue of one controller's events."""

    def __init__(self) -> None:
        self._running: list[Scope] = []
        self._waiting: list[tuple[Scope, asyncio.Future[None]]] = []

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def take(self, scope: Scope) -> AsyncIterator[None]:
        """Wait for the turn, and hold it. Raises OverloadedError when too many wait already."""
        if len(self._waiting) >= MAX_WAITING:
            raise OverloadedError(f"{MAX_WAITING} events wait for their turn")
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (scope, mine)
        self._waiting.append(entry)
        self._admit()
        try:
            await mine
        except asyncio.CancelledError:
            # Cancelled while waiting, or after it was admitted and before it ran.
            self._leave(entry)
            raise
        try:
            yield
        finally:
            self._leave(entry)

    def _leave(self, entry: tuple[Scope, asyncio.Future[None]]) -> None:
        if entry in self._waiting:
            self._waiting.remove(entry)
        else:
            self._running.remove(entry[0])
        self._admit()

    def _admit(self) -> None:
        if not self._waiting:
            return
        chosen = admissible(self._running, [scope for scope, _ in self._waiting])
        for place in reversed(chosen):
            scope, future = self._waiting.pop(place)
            self._running.append(scope)
            if not future.done():
                future.set_result(None)
