"""Registered brokers, followed by every process with a session, active controller or standby.

A standby relays requests to these brokers. The registrations are read again when a broker registers or leaves. A changed address of a
registered broker is read with the next such change; until then the relay tries another broker.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from controller_core.model import Broker
from controller_core.shell.zookeeper.reading import decode_brokers
from controller_core.shell.zookeeper.watched_reads import WatchedReads
from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperError, ZooKeeperSession

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""Pause after a failed read: the connection is lost, and is restored or the session expires."""


class RegisteredBrokers:
    """The registrations in `/brokers/ids`; `left` is called for each broker that is no longer registered."""

    def __init__(self, own_id: int, left: Callable[[Broker], None]) -> None:
        self._own_id = own_id
        self._left = left
        self._brokers: dict[int, Broker] = {}
        self.are_known = False
        """Whether they were read in the current session; without a session the last known brokers are kept."""

    def list(self) -> Sequence[Broker]:
        """Return the brokers as of the last read."""
        return tuple(self._brokers.values())

    async def follow(self, session: ZooKeeperSession) -> None:
        """Read the registrations at every change, until cancelled."""
        changed = asyncio.Event()
        reads = WatchedReads(session, changed.set)
        try:
            while True:
                changed.clear()
                try:
                    await self._read(session, reads)
                except ZooKeeperError as error:
                    # An active controller does not depend on these reads, so its term continues.
                    log.warning("Failed to read the registered brokers; retrying", extra={"error": str(error)})
                    await asyncio.sleep(RETRY_S)
                    continue
                await changed.wait()
        finally:
            self.are_known = False

    async def _read(self, session: ZooKeeperSession, reads: WatchedReads) -> None:
        names = await reads.children(paths.BROKER_IDS) or []
        nodes = await session.multi_get([f"{paths.BROKER_IDS}/{name}" for name in names])
        found = decode_brokers(dict(zip(names, nodes, strict=True)), self._own_id)
        before, self._brokers = self._brokers, {broker.id: broker for broker in found}
        self.are_known = True
        for broker_id in before.keys() - self._brokers.keys():
            self._left(before[broker_id])
