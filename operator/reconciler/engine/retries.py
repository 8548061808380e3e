"""Retry backoff: number and duration of failed attempts per resource, and time of the next attempt."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from reconciler.decide.steps import Retry
from reconciler.names import Key

JITTER = 0.2
"""Jitter: share by which a delay varies, so that simultaneous failures are not retried simultaneously."""

MAX_DOUBLINGS = 16
"""Maximum number of doublings: more would exceed any cap."""


@dataclass(frozen=True, slots=True)
class FailedAttempts:
    """Failed attempts since `since_s` on the monotonic clock."""

    count: int
    since_s: float


class Retries:
    """Failed attempts of all resources; clock and random source are injected for tests."""

    def __init__(self, clock: Callable[[], float], rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._attempts: dict[Key, FailedAttempts] = {}

    def waited_s(self, key: Key) -> float:
        """Return the time since the first failed attempt of a resource; 0 at its first attempt."""
        attempts = self._attempts.get(key)
        return 0.0 if attempts is None else self._clock() - attempts.since_s

    def delay_s(self, key: Key, retry: Retry) -> float:
        """Count a failed attempt and return the delay to the next one."""
        before = self._attempts.get(key, FailedAttempts(0, self._clock()))
        self._attempts[key] = FailedAttempts(min(before.count + 1, MAX_DOUBLINGS), before.since_s)
        delay_s = min(retry.cap_s, retry.first_s * 2.0**before.count)
        return delay_s * self._rng.uniform(1 - JITTER, 1 + JITTER)

    def forget(self, key: Key) -> None:
        """Reset after success or deletion."""
        self._attempts.pop(key, None)
