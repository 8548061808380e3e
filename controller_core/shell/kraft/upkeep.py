"""Tasks of an active controller that need no request: sessions that end, idle intervals, unclean elections, preferred leaders.

Every task runs for one active term.
"""

import asyncio
from collections.abc import Awaitable, Callable

from controller_core.metadata.record_decision import RecordDecision
from controller_core.model import events, quorum_events
from controller_core.shell.active import OverloadedError, TermEndedError
from controller_core.shell.kraft.controller import KRaftController
from controller_core.shell.quorum.settings import ControllerSettings
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import NoOpRecord

SESSION_CHECKS = 8
"""Checks for expired sessions within the shortest timeout of a session (BrokerHeartbeatManager)."""

MAX_ELECTIONS = 1_000
"""Unclean elections of one round (MAX_ELECTIONS_PER_IMBALANCE)."""


class Upkeep:
    """The tasks of the active terms of one process."""

    def __init__(self, controller: KRaftController, settings: ControllerSettings, max_idle_interval_ms: int) -> None:
        self._controller = controller
        self._settings = settings
        self._max_idle_interval_ms = max_idle_interval_ms
        self._tasks: list[asyncio.Task[None]] = []
        controller.on_elected.append(self._begin)
        controller.on_deposed.append(self.end)

    def end(self) -> None:
        """End the tasks."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    def _begin(self) -> None:
        self.end()
        settings = self._settings
        self._start("sessions", self._expire_sessions())
        # The term before may have ended in the middle of a broker's return.
        self._start("waiting leaders", self._controller.attempt(quorum_events.ElectWaitingLeaders()))
        if self._max_idle_interval_ms:
            self._start("idle interval", _every(self._max_idle_interval_ms, self._write_no_op))
        self._start("unclean elections", _every(settings.unclean_leader_election_interval_ms, self._elect_uncleanly))
        if settings.auto_leader_rebalance_enable:
            self._start("leader balance", _every(settings.leader_imbalance_check_interval_s * 1_000, self._balance))

    def _start(self, name: str, work: Awaitable[None]) -> None:
        async def run() -> None:
            try:
                await work
            except TermEndedError:
                return
            except Exception as error:  # noqa: BLE001 - a leader that fences no brokers must not go on
                self._controller.fail(error)

        self._tasks.append(asyncio.create_task(run(), name=name))

    async def _expire_sessions(self) -> None:
        interval_ms = self._session_check_ms
        while True:
            due_ms = self._controller.now_ms + interval_ms
            await asyncio.sleep(interval_ms / 1000)
            await self.fence_expired(due_ms)

    async def fence_expired(self, due_ms: int) -> None:
        """Fence brokers whose sessions have ended, one event for each.

        A check that comes late does nothing: heartbeats that arrived in the meantime are still unread.
        """
        now_ms = self._controller.now_ms
        if now_ms > due_ms + self._session_check_ms:
            return
        for broker, epoch in self._controller.sessions.expired(now_ms):
            self._controller.metrics.timed_out()
            await self._controller.attempt(quorum_events.FenceBroker(broker, epoch))

    @property
    def _session_check_ms(self) -> int:
        settings = self._settings
        shortest_ms = min(settings.broker_session_timeout_ms, settings.disconnected_session_timeout_ms)
        return max(1, shortest_ms // SESSION_CHECKS)

    async def _write_no_op(self) -> None:
        try:
            await self._controller.write(_no_op)
        except OverloadedError:
            return  # The log is not idle.

    async def _elect_uncleanly(self) -> None:
        await self._controller.attempt(quorum_events.ElectUncleanLeaders(MAX_ELECTIONS))

    async def _balance(self) -> None:
        await self._controller.attempt(events.BalanceLeaders(imbalance_percentage=0))


async def _every(interval_ms: int, act: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(interval_ms / 1000)
        await act()


def _no_op(_image: MetadataImage) -> RecordDecision:
    return RecordDecision((NoOpRecord(),), None)
