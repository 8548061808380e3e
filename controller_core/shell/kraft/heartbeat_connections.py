"""Connections over which brokers send their heartbeats: the end of one is reported to the active controller (ADR 57).

A broker that has connected again in the meantime is not reported.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from controller_core.model.quorum_events import HeartbeatConnectionEnded


class Connection(Protocol):
    """A connection, as this module uses it; it is a key by its identity."""

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection has ended, or now if it has."""


class HeartbeatConnections:
    """The connection of the last heartbeat of each broker, with the broker's epoch."""

    def __init__(self, report: Callable[[HeartbeatConnectionEnded], Awaitable[None] | None]) -> None:
        """Call `report` before any later heartbeat is noted, and run the work that it returns."""
        self._report = report
        self._last: dict[int, tuple[Connection, int]] = {}
        self._reports: set[asyncio.Future[None]] = set()

    def heard(self, connection: Connection | None, broker: int, broker_epoch: int) -> None:
        """Note the connection of a heartbeat of a registered broker; None: an Envelope, or no connection."""
        if connection is None:
            return
        before = self._last.get(broker)
        self._last[broker] = (connection, broker_epoch)
        if before is None or before[0] is not connection:
            connection.on_close(lambda: self._ended(connection, broker))

    def _ended(self, connection: Connection, broker: int) -> None:
        known, broker_epoch = self._last.get(broker, (None, 0))
        if known is not connection:
            return
        del self._last[broker]
        work = self._report(HeartbeatConnectionEnded(broker, broker_epoch))
        if work is None:
            return
        task = asyncio.ensure_future(work)
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)
