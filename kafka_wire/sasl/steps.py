"""What the exchanges of all mechanisms have in common: a step, its end, and how one fails.

Left out: the mechanisms.
"""

from dataclasses import dataclass
from typing import Protocol


class SaslFailed(Exception):  # noqa: N818  an outcome of an exchange, beside Kafka's own names
    """The exchange has failed, for good.

    `reason` is for this side's log. `told` is what the other side may hear, None: nothing but that it failed, for else it
    could learn which users there are. Neither holds a secret.
    """

    def __init__(self, reason: str, *, told: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.told = told


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The end of an exchange: the other side is who it says."""

    user: str
    """A server: the client's name. A client: its own."""


class Exchange(Protocol):
    """An exchange that awaits a message of the other side."""

    def take(self, message: bytes) -> "Step":
        """Take it. Raises SaslFailed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an exchange."""

    reply: bytes | None
    """What is sent; a client that is done sends nothing."""
    state: Exchange | Authenticated
    """What is awaited then, or the end."""
