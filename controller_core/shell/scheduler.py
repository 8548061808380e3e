"""Scheduling of events: those whose scopes overlap run one after another, all others at the same time.

A turn lasts from the decision to the end of its writes, so that no decision is made on a state that another one is about to
change; and yet the loop never waits for ZooKeeper with everything.

Overlapping events run in the order of their arrival, except that events of the controller itself and of brokers pass those of
clients: a failover or a change of an ISR does not wait behind 2,000 requests of a tool. An event of a client is passed by fewer
than CLIENT_HANDICAP later events, so it is delayed and never starves.

Sources: KIP-497, KIP-631 (Kafka's controller queues its own events without a bound). Leaves out what happens in a turn.
"""

# MERGED controller_core.shell.scheduler: """Hierarchical locks over scopes: everything, topics, partitions. Pure bookkeeping, no waiting.
# MERGED controller_core.shell.scheduler:
# MERGED controller_core.shell.scheduler: A scope locks each thing that it names as a whole, and what contains that thing in part: a partition locks its topic and
# MERGED controller_core.shell.scheduler: everything in part. On one thing, holders in part run together; a holder of the whole excludes all others. Claims are
# MERGED controller_core.shell.scheduler: granted in the order of their keys, so the first claim of two that conflict always precedes the second.
# MERGED controller_core.shell.scheduler:
# MERGED controller_core.shell.scheduler: A claim and its release cost what their scope is long, however many others wait: nothing is scanned.
# MERGED controller_core.shell.scheduler: """
import asyncio
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

from controller_core.model.ids import TopicPartition
from controller_core.model.scope import Scope
from controller_core.shell.active import OverloadedError
from controller_core.shell.event_source import MAX_CLIENT_WAITING, OWN, Source, SourceKind

Key = tuple[int, int]
"""Order of claims, each unique."""
Thing = TopicPartition | str
"""A partition, a topic, or everything."""
EVERYTHING = ""
"""No topic has this name."""
HELD = -1
"""First part of a holder's key: nothing that waits precedes it."""


@dataclass(slots=True, eq=False)
class Claim:
    """A scope that waits or is held."""

    key: Key
    whole: tuple[Thing, ...]
    part: tuple[Thing, ...]
    is_held: bool = False


@dataclass(slots=True)
class _Queue:
    """Claims on one thing, ordered by key."""

    whole: list[tuple[Key, Claim]] = field(default_factory=list)
    part: list[tuple[Key, Claim]] = field(default_factory=list)

    def grants_whole(self, key: Key) -> bool:
        """Whether no other claim on this thing precedes one of the whole."""
        return self.whole[0][0] == key and (not self.part or key < self.part[0][0])

    def grants_part(self, key: Key) -> bool:
        """Whether no claim of the whole precedes one of a part."""
        return not self.whole or key < self.whole[0][0]

    def first_whole(self) -> Iterator[Claim]:
        """Give the claim of the whole that a claim of a part, just released, may have preceded."""
        if self.whole:
            yield self.whole[0][1]

    def first_claims(self) -> Iterator[Claim]:
        """Give the claims that a claim of the whole, just released, may have preceded alone."""
        yield from self.first_whole()
        end = bisect_left(self.part, self.whole[0][0], key=_key) if self.whole else len(self.part)
        for _, claim in self.part[:end]:
            yield claim


class ScopeLocks:
    """Claims on scopes."""

    def __init__(self) -> None:
        self._queues: dict[Thing, _Queue] = {}

    def claim(self, scope: Scope, key: Key) -> Claim:
        """Add a claim; see `is_free` and `hold`."""
        claim = Claim(key, *_things(scope))
        self._insert(claim)
        return claim

    def is_free(self, claim: Claim) -> bool:
        """Whether no claim that conflicts with this one precedes it."""
        queues = self._queues
        return all(queues[thing].grants_part(claim.key) for thing in claim.part) and all(
            queues[thing].grants_whole(claim.key) for thing in claim.whole
        )

    def hold(self, claim: Claim) -> None:
        """Grant a claim that is free: from now on it precedes all that wait, whatever their keys."""
        self._remove(claim)
        claim.key, claim.is_held = (HELD, claim.key[1]), True
        self._insert(claim)

    def release(self, claim: Claim) -> list[Claim]:
        """Remove a claim, held or not; returns the waiting ones that may have become free, in order."""
        self._remove(claim)
        found: dict[int, Claim] = {}
        for things, is_whole in ((claim.whole, True), (claim.part, False)):
            for thing in things:
                if (queue := self._queues.get(thing)) is None:
                    continue
                for other in queue.first_claims() if is_whole else queue.first_whole():
                    if not other.is_held:
                        found[other.key[1]] = other
        return sorted(found.values(), key=lambda other: other.key)

    def _insert(self, claim: Claim) -> None:
        for thing in claim.whole:
            insort(self._queue(thing).whole, (claim.key, claim), key=_key)
        for thing in claim.part:
            insort(self._queue(thing).part, (claim.key, claim), key=_key)

    def _queue(self, thing: Thing) -> _Queue:
        if thing not in self._queues:
            self._queues[thing] = _Queue()
        return self._queues[thing]

    def _remove(self, claim: Claim) -> None:
        for thing in claim.whole:
            self._remove_from(thing, self._queues[thing].whole, claim)
        for thing in claim.part:
            self._remove_from(thing, self._queues[thing].part, claim)

    def _remove_from(self, thing: Thing, claims: list[tuple[Key, Claim]], claim: Claim) -> None:
        del claims[bisect_left(claims, claim.key, key=_key)]
        queue = self._queues[thing]
        if not queue.whole and not queue.part:
            del self._queues[thing]


def _key(entry: tuple[Key, Claim]) -> Key:
    return entry[0]


def _things(scope: Scope) -> tuple[tuple[Thing, ...], tuple[Thing, ...]]:
    """List what a scope locks as a whole, and what in part."""
    if scope.everything:
        return (EVERYTHING,), ()
    partitions = [name for name in scope.partitions if name.topic not in scope.topics]
    topics_in_part = {name.topic for name in partitions}
    return (*scope.topics, *partitions), (EVERYTHING, *topics_in_part)


CLIENT_HANDICAP = 2 * MAX_CLIENT_WAITING
"""Fewer later events than these pass an event of a client. More than clients' events can wait, so that all of those are passed."""


class Scheduler:
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
    def is_busy(self) -> bool:
        """Whether any event is being processed or waits."""
        return bool(self._running or self._waiting)

    @asynccontextmanager
    async def run_exclusively(self, scope: Scope, source: Source = OWN) -> AsyncIterator[None]:
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
