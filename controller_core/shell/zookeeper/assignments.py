"""Polling of the assignments of known topics: an old tool or an administrator may add partitions directly in ZooKeeper.

Kafka's controller sets one watch for each topic. At 25,000 topics these are 25,000 objects of about a kilobyte in memory and as many
single reads after each lost connection, at the very time of a failover or of many broker failures; and each write of the controller
itself fires one. Low latency has no use here, since the process that writes such a znode waits for no response. Therefore a share
of the topics is polled each second, by multi-reads (ZooKeeper serves 640,000 small znodes a second): at 25,000 topics 5,000 a
second, about a hundredth of the controller's time, and every change is found within POLLING_CYCLE_S seconds and a little.

A poll runs concurrently with writes, so a changed version may be the controller's own write in progress. The topics concerned are
therefore read again while no event is processed, and only the second read counts.

Created and deleted topics are found by `watching`.
"""

import asyncio
import logging
from functools import partial

from controller_core.model import events, zookeeper_events
from controller_core.shell.active import ActiveTerm, OverloadedError
from controller_core.shell.zookeeper import optimistic, reading
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
from controller_core.zookeeper_mode.znode_versions import ZnodeVersions
from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

PAUSE_S = 1.0
"""Pause between two shares."""
POLLING_CYCLE_S = 5
"""Polling cycle: each topic is polled once in this time. Half the convergence target, so that every external change is found within it."""
MIN_TOPICS_PER_POLL = 500
"""Topics polled at once, if there are that many: one multi-read."""


class AssignmentPoller:
    """The poller of one active term."""

    def __init__(
        self, controller: ActiveTerm, session: ZooKeeperSession, versions: ZnodeVersions, unreadable: UnreadableTopics
    ) -> None:
        self._controller = controller
        self._session = session
        self._versions = versions
        self._unreadable = unreadable
        self._waiting: list[str] = []
        """Topics that have not been polled in the current cycle."""

    async def follow(self) -> None:
        """Poll one share after another, until cancelled."""
        with optimistic.store_errors():
            while True:
                await asyncio.sleep(PAUSE_S)
                names = await self._changed_names(self._next_share())
                if not names:
                    continue
                try:
                    await self._controller.read_and_decide(partial(self._read_changed, names))
                except OverloadedError as error:
                    log.warning(
                        "Failed to process changed assignments; retrying in the next polling cycle",
                        extra={"error": str(error)},
                    )

    def _next_share(self) -> list[str]:
        if not self._waiting:
            # Unreadable topics that are not known are polled as well: an administrator may have corrected their znodes.
            known = self._controller.cluster.topics
            self._waiting = [*known, *(name for name in self._unreadable.names() if name not in known)]
        size = max(MIN_TOPICS_PER_POLL, -(-len(self._controller.cluster.topics) // POLLING_CYCLE_S))
        share, self._waiting = self._waiting[:size], self._waiting[size:]
        return share

    async def _changed_names(self, names: list[str]) -> list[str]:
        """Return the topics whose znode has another version than the known one."""
        nodes = await self._session.multi_get([paths.topic(name) for name in names]) if names else []
        return [
            name
            for name, node in zip(names, nodes, strict=True)
            if node is not None
            and self._versions.known(name) != node.version
            and self._unreadable.version(name) != node.version
        ]

    async def _read_changed(self, names: list[str]) -> events.Event | None:
        """Read topics again while no event is processed."""
        topics = self._controller.cluster.topics
        found = await reading.find_topics(self._session, names)
        self._unreadable.note(names, found)
        added = [record for record in found.records if record.name not in topics]
        if added:
            # Changed topics are found again in the next polling cycle: their versions still differ.
            return zookeeper_events.TopicsRead(await reading.with_configs(self._session, added), ())
        changed = [record for record in found.records if record.version != self._versions.known(record.name)]
        return zookeeper_events.TopicsChanged(await reading.with_configs(self._session, changed)) if changed else None
