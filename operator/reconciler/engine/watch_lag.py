"""Detection of stalled watches: a watch must deliver every version that a list has returned.

A stalled watch cannot be distinguished from one without changes. Each list returns the versions of all resources; the watch then has to
deliver these versions or newer ones. A version that is missing for longer than several lists will not arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from reconciler.names import Key, Kind
from reconciler.resources.metadata import newer


@dataclass(frozen=True, slots=True)
class _ExpectedVersion:
    version: str
    since_s: float


class WatchLag:
    """Versions that the watch has delivered, and those that it has to deliver."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._delivered: dict[Key, str] = {}
        self._expected: dict[Key, _ExpectedVersion] = {}

    def delivered(self, key: Key, version: str) -> None:
        """Record a delivered version."""
        self._delivered[key] = version
        expected = self._expected.get(key)
        if expected is not None and not newer(expected.version, version):
            del self._expected[key]

    def deleted(self, key: Key) -> None:
        """Record the deletion of a resource, reported by the watch."""
        self._delivered.pop(key, None)
        self._expected.pop(key, None)

    def listed(self, kind: Kind, versions: Collection[tuple[Key, str]]) -> None:
        """Record a full list of a kind; resources missing from it are no longer expected."""
        current = {key for key, _ in versions}
        for key in [
            key for key in self._delivered.keys() | self._expected.keys() if key.kind == kind and key not in current
        ]:
            self.deleted(key)
        for key, version in versions:
            known = self._delivered.get(key)
            if known is not None and not newer(version, known):
                continue
            before = self._expected.get(key)
            self._expected[key] = _ExpectedVersion(version, self._clock() if before is None else before.since_s)

    @property
    def lag_s(self) -> float:
        """Return the age of the oldest undelivered version, 0 when there is none."""
        return max((self._clock() - expected.since_s for expected in list(self._expected.values())), default=0.0)
