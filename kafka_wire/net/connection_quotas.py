"""Limits of connections over all listeners of a process: in all, of one address, and how many are accepted a second.

Source: Kafka's ConnectionQuotas. Unlike Kafka, a listener at max.connections closes further connections at once; Kafka's leaves them in the
kernel's queue, where a client waits until its own timeout.
"""

import ipaddress
import math
from collections import deque
from collections.abc import Mapping
from typing import Protocol

WINDOW_S = 1.0
"""Kafka's default of quota.window.size.seconds; also the longest delay of an accepted connection."""
WINDOWS = 11
"""Kafka's default of quota.window.num."""

Host = str
"""IP address of a peer, as text."""


class Excess(Protocol):
    """A connection that can be closed in favour of another one."""

    active_at: float

    def abort(self, reason: str) -> None:
        """Close the connection."""


class CreationRate:
    """Rate of created connections over the last windows, with a limit in connections a second (Kafka's Rate and QuotaUtils)."""

    def __init__(self, limit: float = math.inf) -> None:
        if limit <= 0:
            raise ValueError(f"the limit of created connections must be greater than 0, found {limit}")
        self.limit = limit
        self._windows: deque[list[float]] = deque()
        """Begin and count of each window."""

    def rate(self, now_s: float) -> float:
        """Return connections a second; at least ten windows count, so that a first burst is not a violation."""
        while self._windows and now_s - self._windows[0][0] >= WINDOWS * WINDOW_S:
            self._windows.popleft()
        if not self._windows:
            return 0.0
        elapsed_s = now_s - self._windows[0][0]
        missing = max(0, WINDOWS - 1 - int(elapsed_s / WINDOW_S))
        return sum(count for _, count in self._windows) / (elapsed_s + missing * WINDOW_S)

    def record(self, now_s: float) -> float:
        """Count a connection, and return the seconds for which the listener must accept no further one."""
        if not self._windows or now_s - self._windows[-1][0] >= WINDOW_S:
            self._windows.append([now_s, 0])
        self._windows[-1][1] += 1
        rate = self.rate(now_s)
        if rate <= self.limit:
            return 0.0
        elapsed_s = max(now_s - self._windows[0][0], (WINDOWS - 1) * WINDOW_S)
        return min((rate - self.limit) / self.limit * elapsed_s, WINDOW_S)


class ConnectionQuotas:
    """Connections of all listeners of a process.

    `max_connections` is the broker's max.connections, `max_per_address` max.connections.per.ip (with 0 only addresses with an override
    connect), `overrides` are max.connections.per.ip.overrides by address, `max_creation_rate` is the broker's max.connection.creation.rate.
    """

    def __init__(
        self,
        max_connections: int | None = None,
        max_per_address: int | None = None,
        overrides: Mapping[Host, int] | None = None,
        max_creation_rate: float = math.inf,
    ) -> None:
        self.max_connections = max_connections
        self.max_per_address = max_per_address
        self.overrides = {_normalized(host): limit for host, limit in (overrides or {}).items()}
        self.creation_rate = CreationRate(max_creation_rate)
        self.connection_count = 0
        self._counts: dict[Host, int] = {}
        self._connections: set[Excess] = set()

    def change_limits(self, other: "ConnectionQuotas") -> None:
        """Apply the limits of others to further connections; those that are counted stay."""
        self.max_connections = other.max_connections
        self.max_per_address = other.max_per_address
        self.overrides = other.overrides
        self.creation_rate.limit = other.creation_rate.limit

    def count(self, host: Host) -> int:
        """Return the count of connections of an address."""
        return self._counts.get(_normalized(host), 0)

    def admit(self, host: Host, *, is_protected: bool = False) -> str | None:
        """Count a connection, or return why it must be closed. A protected listener is only limited by the address.

        Brokers use the protected listener: clients cannot keep them out (Kafka's ConnectionQuotas.protectedListener).
        """
        host = _normalized(host)
        count, limit = self._counts.get(host, 0), self.overrides.get(host, self.max_per_address)
        if limit is not None and count >= limit:
            return f"the address has {count} connections, the limit is {limit}"
        if self.max_connections is not None and self.connection_count >= self.max_connections:
            if not is_protected:
                return f"the process has {self.connection_count} connections, the limit is {self.max_connections}"
            self._close_excess()
        self._counts[host] = count + 1
        self.connection_count += 1
        return None

    def release(self, host: Host) -> None:
        """Note the end of an admitted connection."""
        host = _normalized(host)
        self.connection_count -= 1
        if self._counts[host] == 1:
            del self._counts[host]
        else:
            self._counts[host] -= 1

    def join(self, connection: Excess) -> None:
        """Add an admitted connection of a listener that is not protected."""
        self._connections.add(connection)

    def leave(self, connection: Excess) -> None:
        """Remove a connection that has ended."""
        self._connections.discard(connection)

    def _close_excess(self) -> None:
        """Close the connection that was inactive longest, because a protected listener has exceeded the limit in all."""
        longest = min(self._connections, key=lambda connection: connection.active_at, default=None)
        if longest is not None:
            longest.abort("the process has more connections than its limit, and this one was inactive longest")


def _normalized(host: Host) -> Host:
    """Return an address in one form: an IPv4 address in IPv6 form is that IPv4 address. Raises ValueError for a name."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
