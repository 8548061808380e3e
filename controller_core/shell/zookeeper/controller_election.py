"""Who holds the cluster: taking `/controller`, and noticing that it is lost.

The rules are Kafka's (KafkaController.elect; protocol notes, Z10): whoever creates the ephemeral `/controller` and raises
`/controller_epoch`, in one transaction, is the controller; the others wait for it to change.

One rule is ours. A native broker that holds the cluster only stood in while no process of ours was there, so we take it
back: one transaction deletes its znode, creates ours and raises the epoch (taking it in two steps loses the race against
the other brokers: protocol notes, Z13). The broker sees its znode go and resigns by itself. A holder that is no registered
broker is another process of ours, and is left alone; so is a `/controller` that cannot be read or names nobody: as with
Kafka, somebody has to remove it.

Leaves out what is done with the cluster.
"""

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass

from controller_core.shell.zookeeper.watched_reads import ArmedReads
from kafka_zookeeper import paths
from kafka_zookeeper.formats import controller
from kafka_zookeeper.formats.documents import FormatError, shown
from kafka_zookeeper.session import Node, ZooKeeperSession
from kafka_zookeeper.writes import Committed, Create, Delete, Operation, SetData

log = logging.getLogger(__name__)

STAND_BY_CHECK_S = 5.0
"""A standby looks at `/controller` this often, watch or no watch."""
RETRY_S = 0.05
"""Pause after a lost race, so that two processes do not keep each other busy."""


@dataclass(frozen=True, slots=True)
class Place:
    """The controller's place, as it was taken."""

    epoch: int
    epoch_version: int
    """Version of `/controller_epoch`: the fence of every write."""
    taken_from: int
    """The broker that held it, or -1."""


class Presence:
    """One session's standing for the controller's place."""

    def __init__(self, session: ZooKeeperSession, own_id: int) -> None:
        self._session = session
        self._own_id = own_id
        self._changed = asyncio.Event()
        self._reads = ArmedReads(session, self._changed.set)
        self._hopeless = ""
        """Why nobody can take the place, whatever we do; empty while somebody can."""

    async def take(self) -> Place:
        """Wait until the place can be taken, and take it."""
        while True:
            self._changed.clear()
            # The epoch first: whoever takes the place after this read raises it, so that our claim is refused then.
            epoch = await self._session.get(paths.CONTROLLER_EPOCH)
            holder = await self._reads.get(paths.CONTROLLER)
            self._judge(holder, epoch)
            if not self._hopeless and (place := await self._try(holder, epoch)) is not None:
                return place
            await self._wait(RETRY_S if holder is None and not self._hopeless else STAND_BY_CHECK_S)

    async def lost(self) -> None:
        """Wait until the place that was taken is another's, or nobody's."""
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

    def _judge(self, holder: Node | None, epoch: Node | None) -> None:
        """Say once why nobody can become the controller, where that is so."""
        hopeless = ""
        try:
            if holder is not None and controller.controller_id(holder.data) == controller.NO_CONTROLLER:
                hopeless = f"{paths.CONTROLLER} names nobody ({shown(holder.data)}); delete it"
        except FormatError as error:
            hopeless = f"{paths.CONTROLLER} cannot be read ({error}); delete it"
        try:
            if epoch is not None:
                controller.decode_controller_epoch(epoch.data)
        except FormatError as error:
            hopeless = f"{paths.CONTROLLER_EPOCH} cannot be read ({error}); write the number of the last epoch into it"
        if hopeless and hopeless != self._hopeless:
            log.error("nobody can become the controller", extra={"why": hopeless})
        self._hopeless = hopeless

    async def _try(self, holder: Node | None, epoch: Node | None) -> Place | None:
        """Take the place if it is free, ours to take back, or left over from an earlier tenure of this session."""
        if holder is None:
            return await self._claim((), controller.NO_CONTROLLER, epoch)
        held_by = controller.controller_id(holder.data)
        if holder.ephemeral_owner != self._session.session_id:
            if held_by == self._own_id:
                # An earlier process of ours that died: its session ends by itself, and a live one must not be robbed.
                return None
            if await self._session.get(paths.broker(held_by)) is None:
                return None
        return await self._claim((Delete(paths.CONTROLLER, holder.version),), held_by, epoch)

    async def _claim(self, before: tuple[Operation, ...], taken_from: int, epoch: Node | None) -> Place | None:
        if epoch is None:
            # The very first controller of this cluster: Kafka begins with 0 as well, and raises it.
            await self._session.multi([Create(paths.CONTROLLER_EPOCH, controller.encode_controller_epoch(0))])
            return None
        raised = controller.decode_controller_epoch(epoch.data) + 1
        registration = controller.encode_controller(
            controller.ControllerRegistration(self._own_id, int(time.time() * 1000))
        )
        claim = (
            *before,
            Create(paths.CONTROLLER, registration, ephemeral=True),
            SetData(paths.CONTROLLER_EPOCH, controller.encode_controller_epoch(raised), epoch.version),
        )
        result = await self._session.multi(claim)
        if not isinstance(result, Committed):
            return None
        log.info("took the controller's place", extra={"controller_epoch": raised, "taken_from": taken_from})
        return Place(raised, epoch.version + 1, taken_from)
