"""Event scheduler: serialises events with overlapping scopes, and runs all others concurrently.

An event holds its scope from the decision to the end of its writes, so that no decision is made on a state that another event is
about to change. Events with other scopes run while the store writes.

Overlapping events run in the order of their arrival, except that events of the controller and of brokers pass those of clients: a
failover or a change of an ISR does not wait behind 2,000 requests of a tool. Fewer than CLIENT_HANDICAP later events pass an event
of a client, so it is delayed and never starves.

`ScopeLocks` are hierarchical locks over everything, topics and partitions; they keep books and do not wait. A scope locks each thing
that it names as a whole, and what contains that thing in part: a partition locks its topic and everything in part. On one thing,
holders in part run together; a holder of the whole excludes all others. Claims are granted in the order of their keys, so the first
claim of two that conflict always precedes the second. The cost of a claim and of its release depends on the length of the scope only:
no list of waiting claims is scanned.

Each source of events (the controller itself, a broker, a client) has its own limit of waiting events. The front has already authorized
a request; here only its kind counts. A request that names an unregistered broker counts as a client's, so that requests with invented
broker ids cannot use the capacity of brokers.

Source: KIP-631 (Kafka's controller queues its own events without a bound).
"""

import asyncio
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import AsyncIterator, Container, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from itertools import count

from controller_core.model import TopicPartition, events, zookeeper_events
from controller_core.model.scope import Scope
from controller_core.shell.active import OverloadedError

MAX_CLIENT_WAITING = 2_000
"""Waiting events of clients: each holds a request in memory. 2,000 are far more than administrators and tools send at once; further
requests get a retriable error."""
MAX_WAITING_PER_BROKER = 16
"""Waiting events of one broker. A broker has one AlterPartition, one ControlledShutdown and one AllocateProducerIds in flight; a few
more may come after time-outs and restarts. All brokers together: this number times the registered brokers."""


class SourceKind(Enum):
    """Kind of an event's source."""

    OWN = "own"
    """The controller: answers of brokers, timers, watches, and follow-ups of other events. Never refused.

    Their number is finite without a limit: each watch and each timer has one event at a time, a broker's answer needs a
    request that an earlier event sent (and each broker's queue of requests is bounded), and an event has a few follow-ups at most.
    """
    BROKER = "broker"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Source:
    """One source of events, with its own limit."""

    kind: SourceKind
    broker: int = -1

    @property
    def max_waiting(self) -> int | None:
        """Maximum number of waiting events of this source; None: no limit."""
        match self.kind:
            case SourceKind.OWN:
                return None
            case SourceKind.BROKER:
                return MAX_WAITING_PER_BROKER
            case SourceKind.CLIENT:
                return MAX_CLIENT_WAITING

    def __str__(self) -> str:
        return f"broker {self.broker}" if self.kind is SourceKind.BROKER else self.kind.value


OWN = Source(SourceKind.OWN)
CLIENT = Source(SourceKind.CLIENT)

CLIENT_EVENTS = (
    events.CreateTopics,
    events.DeleteTopics,
    events.CreatePartitions,
    events.AlterReassignments,
    events.ElectLeaders,
)
BROKER_EVENTS = (events.AlterPartition, zookeeper_events.ControlledShutdown, events.AllocateProducerIds)


def source_of(event: events.Event, brokers: Container[int]) -> Source:
    """Return the source of an event; `brokers` are the registered brokers."""
    if isinstance(event, BROKER_EVENTS):
        return Source(SourceKind.BROKER, event.broker) if event.broker in brokers else CLIENT
    return CLIENT if isinstance(event, CLIENT_EVENTS) else OWN


Key = tuple[int, int]
"""Order of claims, each unique."""
Thing = TopicPartition | str
"""A partition, a topic, or everything."""
EVERYTHING = ""
"""No topic has this name."""
HELD = -1
"""First part of a holder's key: no waiting claim precedes it."""
CLIENT_HANDICAP = 2 * MAX_CLIENT_WAITING
"""Fewer later events than these pass an event of a client. This exceeds the number of clients' events that can wait, so that a new
event of a broker passes all of them."""


@dataclass(slots=True, eq=False)
class Claim:
    """A scope that is held or waited for."""

    key: Key
    whole: tuple[Thing, ...]
    part: tuple[Thing, ...]
    is_held: bool = False


@dataclass(slots=True)
class _Queue:
    """Claims of one thing, ordered by key."""

    whole: list[tuple[Key, Claim]] = field(default_factory=list)
    part: list[tuple[Key, Claim]] = field(default_factory=list)

    def grants_whole(self, key: Key) -> bool:
        """Whether no other claim of this thing precedes a claim of the whole."""
        return self.whole[0][0] == key and (not self.part or key < self.part[0][0])

    def grants_part(self, key: Key) -> bool:
        """Whether no claim of the whole precedes a claim of a part."""
        return not self.whole or key < self.whole[0][0]

    def first_whole(self) -> Iterator[Claim]:
        """Yield the first claim of the whole, which a released claim of a part may have preceded."""
        if self.whole:
            yield self.whole[0][1]

    def first_claims(self) -> Iterator[Claim]:
        """Yield the claims that only a released claim of the whole may have preceded."""
        yield from self.first_whole()
        end = bisect_left(self.part, self.whole[0][0], key=_key) if self.whole else len(self.part)
        for _, claim in self.part[:end]:
            yield claim


class ScopeLocks:
    """Held and waiting claims of scopes."""

    def __init__(self) -> None:
        self._queues: dict[Thing, _Queue] = {}

    def claim(self, scope: Scope, key: Key) -> Claim:
        """Add a waiting claim; see `is_free` and `hold`."""
        claim = Claim(key, *_things(scope))
        self._insert(claim)
        return claim

    def is_free(self, claim: Claim) -> bool:
        """Whether no conflicting claim precedes this one."""
        queues = self._queues
        return all(queues[thing].grants_part(claim.key) for thing in claim.part) and all(
            queues[thing].grants_whole(claim.key) for thing in claim.whole
        )

    def hold(self, claim: Claim) -> None:
        """Grant a free claim: from now on it precedes all waiting claims, whatever their keys."""
        self._remove(claim)
        claim.key, claim.is_held = (HELD, claim.key[1]), True
        self._insert(claim)

    def release(self, claim: Claim) -> list[Claim]:
        """Remove a claim, held or waiting; returns the waiting claims that may have become free, in order."""
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
    """Return the things that a scope locks as a whole, and those that it locks in part."""
    if scope.everything:
        return (EVERYTHING,), ()
    partitions = [name for name in scope.partitions if name.topic not in scope.topics]
    topics_in_part = {name.topic for name in partitions}
    return (*scope.topics, *partitions), (EVERYTHING, *topics_in_part)


class Scheduler:
    """Scheduler of one controller's events."""

    def __init__(self) -> None:
        self._locks = ScopeLocks()
        self._admissions: dict[Claim, asyncio.Future[None]] = {}
        """Waiting claims, and the futures that their events wait for."""
        self._waiting: Counter[Source] = Counter()
        self._arrivals = count()
        self._running = 0

    @property
    def waiting(self) -> int:
        """Number of waiting events."""
        return len(self._admissions)

    @property
    def is_busy(self) -> bool:
        """Whether any event runs or waits."""
        return bool(self._running or self._waiting)

    @asynccontextmanager
    async def run_exclusively(self, scope: Scope, source: Source = OWN) -> AsyncIterator[None]:
        """Wait until no running event overlaps the scope, and hold the scope. Raises OverloadedError: too many events of the source wait."""
        limit = source.max_waiting
        if limit is not None and self._waiting[source] >= limit:
            raise OverloadedError(f"too many waiting events of one source ({source}): the limit is {limit}")
        arrival = next(self._arrivals)
        handicap = CLIENT_HANDICAP if source.kind is SourceKind.CLIENT else 0
        claim = self._locks.claim(scope, (arrival + handicap, arrival))
        admitted = self._admissions[claim] = asyncio.get_running_loop().create_future()
        self._waiting[source] += 1
        self._admit_if_free(claim)
        try:
            await admitted
        except asyncio.CancelledError:
            # Cancelled while it waited, or after its admission and before it ran.
            self._release(claim)
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
            self._release(claim)

    def _admit_if_free(self, claim: Claim) -> None:
        if self._locks.is_free(claim):
            self._locks.hold(claim)
            admitted = self._admissions.pop(claim)
            if not admitted.done():
                admitted.set_result(None)

    def _release(self, claim: Claim) -> None:
        self._admissions.pop(claim, None)
        for other in self._locks.release(claim):
            self._admit_if_free(other)
