"""Whose turn it is: events that touch a common partition wait for each other, all others go on.

A turn lasts from the decision to the end of its writes, so that a decision is never made on a state that another one is
about to change; and yet the loop never waits for ZooKeeper with everything (design: pipelining). Turns are taken in the
order they were asked for: an event never overtakes an earlier one that it meets, so none waits for ever.

Leaves out what happens in a turn.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from controller_core.model.ids import TopicPartition
from controller_core.model.scope import Scope
from controller_core.shell.active import OverloadedError

MAX_WAITING = 2_000
"""Events that may wait for their turn. Each holds a request of a caller, and the end of every turn looks at all that wait:
a few milliseconds at this number, which is far more than brokers have under way (one AlterPartition each)."""


def admissible(running: Sequence[Scope], waiting: Sequence[Scope]) -> list[int]:
    """Choose which of those that wait may start: those that meet nobody who runs or waits before them.

    >>> from controller_core.model.scope import ALL, topics
    >>> admissible([topics("a")], [topics("b"), topics("a"), ALL, topics("c")])
    [0]
    """
    before = _Held()
    for scope in running:
        before.add(scope)
    admitted: list[int] = []
    for place, scope in enumerate(waiting):
        if before.everything:
            break  # Nobody behind it can start.
        if not before.meets(scope):
            admitted.append(place)
        before.add(scope)
    return admitted


class _Held:
    """What many scopes touch, put together: who meets this meets one of them, and one look tells."""

    def __init__(self) -> None:
        self.everything = False
        self._nothing = True
        self._topics: set[str] = set()
        self._partitions: set[TopicPartition] = set()
        self._topics_in_part: set[str] = set()

    def add(self, scope: Scope) -> None:
        """Put one more scope to the others."""
        self._nothing = False
        self.everything |= scope.everything
        self._topics |= scope.topics
        if scope.partitions:
            self._partitions |= scope.partitions
            self._topics_in_part.update(topic for topic, _ in scope.partitions)

    def meets(self, scope: Scope) -> bool:
        """Whether `Scope.meets` holds for any that was added."""
        if scope.everything:
            return not self._nothing
        return (
            self.everything
            or not scope.topics.isdisjoint(self._topics)
            or not scope.topics.isdisjoint(self._topics_in_part)
            or not scope.partitions.isdisjoint(self._partitions)
            or any(topic in self._topics for topic, _ in scope.partitions)
        )


@dataclass(slots=True, eq=False)
class _Turn:
    """One event's turn, asked for or held."""

    scope: Scope
    begun: asyncio.Future[None]


class Turns:
    """The queue of one controller's events."""

    def __init__(self) -> None:
        self._running: list[_Turn] = []
        self._waiting: list[_Turn] = []

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._waiting)

    @property
    def are_busy(self) -> bool:
        """Whether any event is being processed or waits."""
        return bool(self._running or self._waiting)

    @asynccontextmanager
    async def take(self, scope: Scope) -> AsyncIterator[None]:
        """Wait for the turn, and hold it. Raises OverloadedError when too many wait already."""
        if len(self._waiting) >= MAX_WAITING:
            raise OverloadedError(f"{MAX_WAITING} events wait for their turn")
        mine = _Turn(scope, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._admit()
        try:
            await mine.begun
        except asyncio.CancelledError:
            # Cancelled while waiting, or after it was admitted and before it ran.
            self._leave(mine)
            raise
        try:
            yield
        finally:
            self._leave(mine)

    def _leave(self, turn: _Turn) -> None:
        (self._waiting if turn in self._waiting else self._running).remove(turn)
        self._admit()

    def _admit(self) -> None:
        running, waiting = ([turn.scope for turn in turns] for turns in (self._running, self._waiting))
        for place in reversed(admissible(running, waiting)):
            turn = self._waiting.pop(place)
            self._running.append(turn)
            if not turn.begun.done():
                turn.begun.set_result(None)
