"""Common types of the mechanisms: the steps of an exchange and its outcome."""

from dataclasses import dataclass
from typing import Protocol


class SaslFailed(Exception):  # noqa: N818 -- an outcome of an exchange
    """The exchange has failed.

    `reason` is for the local log. `peer_message` is sent to the peer; None sends only that the exchange failed, because more could
    reveal which users exist. Neither contains a secret.
    """

    def __init__(self, reason: str, *, peer_message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.peer_message = peer_message


@dataclass(frozen=True, slots=True)
class Authenticated:
    """Successful end of an exchange: the identity of the other side is verified."""

    user: str
    """On both sides, the client's user name."""


class Exchange(Protocol):
    """An exchange that waits for a message of the other side."""

    def take(self, message: bytes) -> "Step":
        """Process the message. Raises SaslFailed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an exchange."""

    reply: bytes | None
    """Message to send; None if a client has nothing more to send."""
    state: Exchange | Authenticated
    """State after the reply."""
