"""Controller election: acquiring `/controller` and detecting its loss.

The rules are Kafka's (KafkaController.elect; protocol notes, Z10): the process that creates the ephemeral `/controller` and raises
`/controller_epoch` in one transaction is the controller; all others wait for `/controller` to change.

Steward adds one rule: it takes controllership over from a native broker, which acts as controller only while no Steward controller
runs. One transaction deletes the broker's znode, creates Steward's and raises the epoch (two transactions lose the race against the
other brokers: protocol notes, Z13). The broker resigns when it sees its znode deleted. A holder that is not a registered broker is
another Steward controller and keeps controllership. A `/controller` that cannot be read or names no broker has to be deleted by an
administrator, as with Kafka.
"""

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass

from controller_core.shell.zookeeper.watched_reads import WatchedReads
from kafka_zookeeper import paths, writes
from kafka_zookeeper.formats import controller, documents
from kafka_zookeeper.session import Node, ZooKeeperSession

log = logging.getLogger(__name__)

STANDBY_CHECK_S = 5.0
"""Interval at which a standby reads `/controller` even if no watch fires."""
RETRY_S = 0.05
"""Pause after a lost race, so that two processes do not keep each other busy."""


@dataclass(frozen=True, slots=True)
class Controllership:
    """Result of a won election."""

    epoch: int
    epoch_version: int
    """Version of `/controller_epoch`: the fence of every write."""
    taken_from: int
    """Id of the previous holder, or -1."""


class ControllerElection:
    """Elections in one session."""

    def __init__(self, session: ZooKeeperSession, own_id: int) -> None:
        self._session = session
        self._own_id = own_id
        self._changed = asyncio.Event()
        self._reads = WatchedReads(session, self._changed.set)
        self._blocked = ""
        """Why no process can be elected; empty while one can."""

    async def acquire(self) -> Controllership:
        """Wait until controllership is available, and acquire it."""
        while True:
            self._changed.clear()
            # The epoch is read first: a process elected after this read raises it, so that this process's transaction is rejected.
            epoch = await self._session.get(paths.CONTROLLER_EPOCH)
            holder = await self._reads.get(paths.CONTROLLER)
            self._check_readable(holder, epoch)
            if not self._blocked and (won := await self._try(holder, epoch)) is not None:
                return won
            await self._wait(RETRY_S if holder is None and not self._blocked else STANDBY_CHECK_S)

    async def lost(self) -> None:
        """Wait until `/controller` no longer belongs to this session."""
        while True:
            self._changed.clear()
            holder = await self._reads.get(paths.CONTROLLER)
            if holder is None or holder.ephemeral_owner != self._session.session_id:
                return
            await self._changed.wait()

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def _check_readable(self, holder: Node | None, epoch: Node | None) -> None:
        """Note why no process can be elected, if so, and log it once."""
        blocked = ""
        try:
            if holder is not None and controller.controller_id(holder.data) == controller.NO_CONTROLLER:
                blocked = f"{paths.CONTROLLER} names no broker ({documents.shown(holder.data)}); delete it"
        except documents.FormatError as error:
            blocked = f"{paths.CONTROLLER} cannot be read ({error}); delete it"
        try:
            if epoch is not None:
                controller.decode_controller_epoch(epoch.data)
        except documents.FormatError as error:
            blocked = f"{paths.CONTROLLER_EPOCH} cannot be read ({error}); write the number of the last epoch into it"
        if blocked and blocked != self._blocked:
            log.error("Controller election is blocked", extra={"error": blocked})
        self._blocked = blocked

    async def _try(self, holder: Node | None, epoch: Node | None) -> Controllership | None:
        """Acquire controllership if no process, a native broker or an earlier active term of this session holds it."""
        if holder is None:
            return await self._claim((), controller.NO_CONTROLLER, epoch)
        held_by = controller.controller_id(holder.data)
        if holder.ephemeral_owner != self._session.session_id:
            if held_by == self._own_id:
                # Another process has the same id. Either it died and its session will expire, or it is alive and must not be deposed.
                return None
            if await self._session.get(paths.broker(held_by)) is None:
                return None
        return await self._claim((writes.Delete(paths.CONTROLLER, holder.version),), held_by, epoch)

    async def _claim(
        self, before: tuple[writes.Operation, ...], taken_from: int, epoch: Node | None
    ) -> Controllership | None:
        if epoch is None:
            # The cluster never had a controller. Kafka begins with epoch 0 as well, and raises it.
            await self._session.multi([writes.Create(paths.CONTROLLER_EPOCH, controller.encode_controller_epoch(0))])
            return None
        raised = controller.decode_controller_epoch(epoch.data) + 1
        registration = controller.encode_controller(
            controller.ControllerRegistration(self._own_id, int(time.time() * 1000))
        )
        claim = (
            *before,
            writes.Create(paths.CONTROLLER, registration, ephemeral=True),
            writes.SetData(paths.CONTROLLER_EPOCH, controller.encode_controller_epoch(raised), epoch.version),
        )
        result = await self._session.multi(claim)
        if not isinstance(result, writes.Committed):
            return None
        log.info("Acquired controllership", extra={"controller_epoch": raised, "taken_from": taken_from})
        return Controllership(raised, epoch.version + 1, taken_from)
