"""Memory limit for the connections of all listeners of a process."""

import logging
from typing import Protocol


class Holder(Protocol):
    """A connection that holds bytes."""

    held_bytes: int

    def abort(self, reason: str, level: int = logging.INFO) -> None:
        """Close the connection now, which releases its bytes."""


class Buffers:
    """Account of the bytes of requests and responses: above `max_bytes`, the connection that holds most is closed."""

    def __init__(self, max_bytes: int) -> None:
        if max_bytes <= 0:
            raise ValueError(f"max_bytes must be greater than 0, found {max_bytes}")
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self._holders: set[Holder] = set()

    def join(self, holder: Holder) -> None:
        """Add a connection."""
        self._holders.add(holder)

    def leave(self, holder: Holder) -> None:
        """Remove a connection that has ended."""
        self.hold(holder, -holder.held_bytes)
        self._holders.discard(holder)

    def hold(self, holder: Holder, byte_count: int) -> None:
        """Add `byte_count` to the bytes of a connection; a negative count releases bytes."""
        holder.held_bytes += byte_count
        self.held_bytes += byte_count
        if byte_count > 0 and self.held_bytes > self.max_bytes:
            largest = max(self._holders, key=lambda holder: holder.held_bytes)
            reason = f"all connections hold {self.held_bytes} bytes, the limit is {self.max_bytes}, and this one holds most of them"
            largest.abort(reason, logging.WARNING)
