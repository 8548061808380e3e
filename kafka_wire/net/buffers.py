"""Account of the bytes that servers hold for their connections: one for a process, whatever listeners it has."""

import logging
from typing import Protocol


class Holder(Protocol):
    """A connection, as the account sees it."""

    held_bytes: int

    def shut(self, reason: str, level: int = logging.INFO) -> None:
        """Close it now, which releases what it holds."""


class Buffers:
    """At most `max_bytes` of requests and responses; over it, the connection that holds most is closed."""

    def __init__(self, max_bytes: int) -> None:
        if max_bytes <= 0:
            raise ValueError(f"max_bytes must be above 0, not {max_bytes}")
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self._holders: set[Holder] = set()

    def join(self, holder: Holder) -> None:
        """Take a connection in."""
        self._holders.add(holder)

    def leave(self, holder: Holder) -> None:
        """Forget a connection that has ended."""
        self.hold(holder, -holder.held_bytes)
        self._holders.discard(holder)

    def hold(self, holder: Holder, byte_count: int) -> None:
        """Count what a connection holds, more or (below 0) less."""
        holder.held_bytes += byte_count
        self.held_bytes += byte_count
        if byte_count > 0 and self.held_bytes > self.max_bytes:
            greediest = max(self._holders, key=lambda one: one.held_bytes)
            reason = f"{self.held_bytes} bytes are held for all connections, the limit is {self.max_bytes}, and it holds most of them"
            greediest.shut(reason, logging.WARNING)
