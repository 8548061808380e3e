"""Watches of brokers, topics, deletions, notifications and requests of old tools.

A watch only reports that something may have changed. Its whole subject is then read again, and the read sets the next watch, so that no
change is missed between two watches; a lost connection counts as a change. The core compares what was read with the known state, so
a superfluous read changes nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from random import SystemRandom
from typing import Any

from controller_core.model import events, zookeeper_events
from controller_core.shell.active import ActiveTerm, OverloadedError
from controller_core.shell.random_topic_ids import draw_topic_id
from controller_core.shell.zookeeper import assignments, optimistic, reading
from controller_core.shell.zookeeper.legacy_requests import LegacyRequests
from controller_core.shell.zookeeper.notifications import BrokerNotifications, ConfigNotifications
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
from controller_core.shell.zookeeper.watched_reads import WatchedReads
from controller_core.zookeeper_mode.znode_versions import ZnodeVersions
from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

_RANDOM = SystemRandom()

OVERLOAD_PAUSE_S = 1.0
"""Pause before a read is repeated that was rejected because too many events wait."""

Read = Callable[[WatchedReads], Coroutine[Any, Any, events.Event | None]]
"""Reads the current state and sets watches; returns the event to be decided on, None where nothing has changed."""


class ClusterWatcher:
    """The watches of one active term."""

    def __init__(
        self, controller: ActiveTerm, session: ZooKeeperSession, versions: ZnodeVersions, unreadable: UnreadableTopics
    ) -> None:
        self._controller = controller
        self._session = session
        self._versions = versions
        self._unreadable = unreadable

    def start(self) -> None:
        """Start one task for each watch; they run until the active term ends."""
        notifications = BrokerNotifications(self._controller.cluster, self._session)
        requests = LegacyRequests(self._controller.cluster)
        configs = ConfigNotifications(self._controller.cluster, self._session, self._controller.brokers_changed)
        reads: dict[str, Read] = {
            "brokers": self._brokers,
            "topics": self._topics,
            "deletions": self._deletions,
            "ISR changes": notifications.isr_changes,
            "failed log directories": notifications.failed_log_dirs,
            "configurations": configs.unclean_election,
            "requested moves": requests.moves,
            "requested elections": requests.elections,
        }
        for name, read in reads.items():
            self._controller.spawn(self._follow(name, read), f"watch {name}")
        poller = assignments.AssignmentPoller(self._controller, self._session, self._versions, self._unreadable)
        self._controller.spawn(poller.follow(), "watch assignments")

    async def _follow(self, name: str, read: Read) -> None:
        changed = asyncio.Event()
        reads = WatchedReads(self._session, changed.set)
        with optimistic.store_errors():
            while True:
                changed.clear()
                try:
                    await self._controller.read_and_decide(partial(read, reads))
                except OverloadedError as error:
                    log.warning(
                        "Failed to process ZooKeeper watch; retrying", extra={"watch": name, "error": str(error)}
                    )
                    await asyncio.sleep(OVERLOAD_PAUSE_S)
                    continue
                await changed.wait()

    async def _brokers(self, reads: WatchedReads) -> events.Event | None:
        ids = await reads.children(paths.BROKER_IDS) or []
        # One more watch for each broker: a registration's endpoints may change without a new registration.
        nodes = await asyncio.gather(*(reads.get(f"{paths.BROKER_IDS}/{name}") for name in ids))
        registrations = dict(zip(ids, nodes, strict=True))
        return reading.brokers_read(
            registrations, self._controller.cluster.controller_id, self._controller.inter_broker_listener
        )

    async def _topics(self, reads: WatchedReads) -> events.Event | None:
        names = set(await reads.children(paths.TOPICS) or [])
        known = self._controller.cluster.topics
        unknown = sorted(names - set(known))
        found = await reading.find_topics(self._session, unknown)
        self._unreadable.note(unknown, found)
        self._unreadable.keep(names)
        added = self._with_ids(await reading.with_configs(self._session, found.records))
        removed = tuple(sorted(set(known) - names))
        return zookeeper_events.TopicsRead(added, removed) if added or removed else None

    def _with_ids(self, records: Sequence[zookeeper_events.StoredTopic]) -> tuple[zookeeper_events.StoredTopic, ...]:
        """Draw ids for topics whose creator wrote none, if brokers use topic ids."""
        if not self._controller.uses_topic_ids:
            return tuple(records)
        return tuple(
            replace(record, new_id=draw_topic_id(_RANDOM)) if record.topic_id is None else record for record in records
        )

    async def _deletions(self, reads: WatchedReads) -> events.Event | None:
        names = set(await reads.children(paths.DELETE_TOPICS) or [])
        unknown = tuple(sorted(names - set(self._controller.cluster.deletions)))
        return zookeeper_events.DeletionsRead(unknown) if unknown else None
