"""Heartbeats of a broker to the active controller: from its registration on it is fenced, then serves, then stops.

    fenced ── the metadata is applied up to the registration ──► asks to serve ──► serves ── want_shut_down ──► may stop

They run on the event loop that serves clients, so a broker whose loop hangs loses its session (ADR 64). Source: BrokerLifecycleManager.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

from kafka_wire import Body, ErrorCode
from light_broker.control.port import ControlPlaneError

log = logging.getLogger(__name__)

SHUTDOWN_POLL_S = 0.1
"""Between two heartbeats of a broker that stops: it waits for the last of its leaders to move."""
CATCH_UP_POLL_S = 0.05
"""Between two heartbeats of a broker that starts: it waits for the answer that it has caught up, or that it may serve."""


class Heartbeats:
    """`run` sends heartbeats until it is cancelled."""

    def __init__(
        self,
        send: Callable[[Body], Awaitable[Body]],
        *,
        interval_s: float,
        body: Callable[[], Body],
        offline_directories: Callable[[], Iterable[UUID]],
    ) -> None:
        """`send` returns the answer or raises ControlPlaneError; `body` has the broker's id, its epoch and its offset of the metadata."""
        self.is_caught_up = asyncio.Event()
        """The metadata is applied up to the broker's registration."""
        self.is_unfenced = asyncio.Event()
        """The controller has let the broker serve."""
        self.may_stop = asyncio.Event()
        """No partition needs the broker any more."""
        self._send = send
        self._interval_s = interval_s
        self._body = body
        self._offline_directories = offline_directories
        self._wants_to_serve = False
        self._wants_to_stop = False
        self._soon = asyncio.Event()
        self._last_error = ErrorCode.NONE

    def serve(self) -> None:
        """Ask to be unfenced from the next heartbeat on."""
        self._wants_to_serve = True
        self._soon.set()

    def stop_serving(self) -> None:
        """Ask to be shut down: the controller moves the broker's leaders."""
        self._wants_to_stop = True
        self._soon.set()

    def notify(self) -> None:
        """Send the next heartbeat now, since a log directory has failed."""
        self._soon.set()

    async def run(self) -> None:
        """Send heartbeats."""
        while True:
            self._soon.clear()
            await self._beat()
            try:
                await asyncio.wait_for(self._soon.wait(), self._pause_s())
            except TimeoutError:
                continue

    def _pause_s(self) -> float:
        if self._wants_to_stop and not self.may_stop.is_set():
            return min(SHUTDOWN_POLL_S, self._interval_s)
        is_starting = not self.is_caught_up.is_set() or (self._wants_to_serve and not self.is_unfenced.is_set())
        return min(CATCH_UP_POLL_S, self._interval_s) if is_starting else self._interval_s

    async def _beat(self) -> None:
        body = {
            **self._body(),
            "want_fence": not self._wants_to_serve,
            "want_shut_down": self._wants_to_stop,
            "offline_log_dirs": sorted(self._offline_directories()),
        }
        try:
            answer = await self._send(body)
        except ControlPlaneError as failure:
            log.warning("Heartbeat failed; retrying", extra={"error": str(failure)})
            return
        error = ErrorCode.of(answer["error_code"])
        if error is not ErrorCode.NONE:
            level = logging.DEBUG if error is self._last_error else logging.ERROR
            log.log(level, "The controller rejected a heartbeat; retrying", extra={"error": error.name})
            self._last_error = error
            return
        self._last_error = error
        self._take(answer)

    def _take(self, answer: Body) -> None:
        if answer["is_caught_up"]:
            self.is_caught_up.set()
        if answer["should_shut_down"]:
            self.may_stop.set()
        if not answer["is_fenced"]:
            if not self.is_unfenced.is_set():
                log.info("The controller lets this broker serve")
            self.is_unfenced.set()
        elif self.is_unfenced.is_set() and not self._wants_to_stop:
            self.is_unfenced.clear()
            log.warning("The controller has fenced this broker: its heartbeats were late. It asks to serve again")
