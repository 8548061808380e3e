"""Detection of stalled watches: a watch must deliver every version that a list has returned.

A stalled watch cannot be distinguished from one without changes. Each list returns the versions of all resources; the watch then has to
deliver these versions or newer ones. A version that is missing for longer than several lists will not arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from kafka_operator.names import Key, Kind
from kafka_operator.resources.metadata import newer


@dataclass(frozen=True, slots=True)
class _Debt:
    version: str
    since_s: float


class WatchLag:
    """Versions that the watch has delivered, and those that it has to deliver."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._brought: dict[Key, str] = {}
        self._owed: dict[Key, _Debt] = {}

    def brought(self, key: Key, version: str) -> None:
        """Record a delivered version."""
        self._brought[key] = version
        debt = self._owed.get(key)
        if debt is not None and not newer(debt.version, version):
            del self._owed[key]

    def gone(self, key: Key) -> None:
        """Record the deletion of a resource, reported by the watch."""
        self._brought.pop(key, None)
        self._owed.pop(key, None)

    def listed(self, kind: Kind, versions: Collection[tuple[Key, str]]) -> None:
        """Record a full list of a kind; resources missing from it are no longer expected."""
        present = {key for key, _ in versions}
        for key in [key for key in self._brought.keys() | self._owed.keys() if key.kind is kind and key not in present]:
            self.gone(key)
        for key, version in versions:
            known = self._brought.get(key)
            if known is not None and not newer(version, known):
                continue
            before = self._owed.get(key)
            self._owed[key] = _Debt(version, self._clock() if before is None else before.since_s)

    @property
    def lag_s(self) -> float:
        """Return the age of the oldest undelivered version, 0 when there is none."""
        return max((self._clock() - debt.since_s for debt in list(self._owed.values())), default=0.0)
