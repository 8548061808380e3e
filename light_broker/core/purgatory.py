"""Purgatory: requests that wait for a change of partitions, or for their deadline.

An operation is watched under the keys whose changes may complete it. `check` examines the operations of a key, `expire` those whose
deadline is over; an operation completes exactly once, by whichever comes first. Source: Kafka's DelayedOperationPurgatory, which removes
completed operations from other keys later; here they are removed at once.
"""

import heapq
from collections.abc import Hashable, Iterable
from typing import Generic, Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)
WatchedKey_contra = TypeVar("WatchedKey_contra", bound=Hashable, contravariant=True)

MIN_STALE_DEADLINES = 1_000
"""Deadlines of completed operations that are kept at most, beyond as many as there are waiting operations (Kafka's purge interval)."""


class Operation(Protocol[WatchedKey_contra]):
    """A request that waits."""

    def is_satisfied(self, key: WatchedKey_contra | None) -> bool:
        """Examine what changed under a key, None: everything. Return whether the operation can complete."""

    def complete(self, *, expired: bool) -> None:
        """Answer the request. Called exactly once."""


class Purgatory(Generic[Key]):
    """Waiting operations by key and by deadline."""

    def __init__(self) -> None:
        self._by_key: dict[Key, dict[int, Operation[Key]]] = {}
        self._keys: dict[int, tuple[Key, ...]] = {}
        """Keys of each waiting operation, by its number."""
        self._deadlines: list[tuple[int, int, Operation[Key]]] = []
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, operation: Operation[Key], keys: Iterable[Key], deadline_ms: int) -> int | None:
        """Complete an operation that is satisfied already, or watch it; return its number while it waits."""
        if operation.is_satisfied(None):
            operation.complete(expired=False)
            return None
        number = self._next_number
        self._next_number += 1
        self._keys[number] = tuple(keys)
        for key in self._keys[number]:
            self._by_key.setdefault(key, {})[number] = operation
        heapq.heappush(self._deadlines, (deadline_ms, number, operation))
        self._drop_stale_deadlines()
        return number

    def check(self, key: Key) -> int:
        """Complete the operations that a change under `key` satisfies; return how many."""
        watched = self._by_key.get(key)
        if not watched:
            return 0
        completed = 0
        for number, operation in list(watched.items()):
            # The completion of another operation may have completed or cancelled this one.
            if number in self._keys and operation.is_satisfied(key):
                self._remove(number)
                operation.complete(expired=False)
                completed += 1
        return completed

    def expire(self, now_ms: int) -> int:
        """Complete the operations whose deadline is over; return how many."""
        expired = 0
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, number, operation = heapq.heappop(self._deadlines)
            if number in self._keys:
                self._remove(number)
                operation.complete(expired=True)
                expired += 1
        return expired

    def cancel(self, number: int) -> bool:
        """Forget an operation whose caller is gone, without completing it. Return whether it waited."""
        if number not in self._keys:
            return False
        self._remove(number)
        return True

    @property
    def next_deadline_ms(self) -> int | None:
        """Earliest deadline of a waiting operation."""
        while self._deadlines and self._deadlines[0][1] not in self._keys:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _remove(self, number: int) -> None:
        for key in self._keys.pop(number):
            watched = self._by_key[key]
            watched.pop(number, None)
            if not watched:
                del self._by_key[key]

    def _drop_stale_deadlines(self) -> None:
        if len(self._deadlines) > 2 * len(self._keys) + MIN_STALE_DEADLINES:
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._keys]
            heapq.heapify(self._deadlines)
