"""Where the fakes' calls pass: it counts them, and it kills the process that makes them, before or after the effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


class KilledError(BaseException):
    """The process that made the call is dead; nothing in it can catch this."""


@dataclass
class Gate:
    """Passes calls; the one with the number `kill_at` (from 1) is the process's last, and its effect happens if `after`."""

    kill_at: int | None = None
    after: bool = False
    calls: list[str] = field(default_factory=list)
    dead: bool = False

    def call(self, name: str, effect: Callable[[], T]) -> T:
        """Carry out one call."""
        if self.dead:
            raise KilledError(name)
        self.calls.append(name)
        if len(self.calls) != self.kill_at:
            return effect()
        self.dead = True
        if self.after:
            effect()
        raise KilledError(name)

    def revive(self) -> None:
        """A new process takes over; it is not killed."""
        self.dead = False
        self.kill_at = None

    def count(self, prefix: str) -> int:
        """Return how many calls of a name were made."""
        return sum(name.startswith(prefix) for name in self.calls)
