"""Watching brokers, topics, deletions, notices and requests of old tools: each a level, read whole whenever it may change.

A watch only says "look again". The look arms the watch with the read, so nothing falls between two watches; a connection
that broke counts as a change. What is read is compared with what is known by the core, so a look too many changes nothing.

Leaves out what follows.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from random import SystemRandom
from typing import Any

from controller_core.model import events
from controller_core.shell.active import ActiveTerm, OverloadedError
from controller_core.shell.random_topic_ids import draw_topic_id
from controller_core.shell.zookeeper.assignments import Assignments
from controller_core.shell.zookeeper.notifications import ConfigChanges, LegacyRequests, Notices
from controller_core.shell.zookeeper.optimistic import store_errors
from controller_core.shell.zookeeper.reading import brokers_read, find_topics, with_configs
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
from controller_core.shell.zookeeper.watched_reads import ArmedReads
from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

_RANDOM = SystemRandom()

LOOK_AGAIN_S = 1.0
"""Pause after a look that led to nothing, because too much waits or somebody else writes the same."""

Look = Callable[[ArmedReads], Coroutine[Any, Any, events.Event | None]]


class Watching:
    """The looks of one tenure."""

    def __init__(self, controller: ActiveTerm, session: ZooKeeperSession, unreadable: UnreadableTopics) -> None:
        self._controller = controller
        self._session = session
        self._unreadable = unreadable

    def start(self) -> None:
        """Look, and look again, until the tenure ends."""
        notices = Notices(self._controller.cluster, self._session)
        requests = LegacyRequests(self._controller.cluster)
        configs = ConfigChanges(self._controller.cluster, self._session, self._controller.brokers_changed)
        looks = {
            "brokers": self._brokers,
            "topics": self._topics,
            "deletions": self._deletions,
            "ISR changes": notices.isr_changes,
            "failed log directories": notices.failed_log_dirs,
            "configurations": configs.look,
            "requested moves": requests.moves,
            "requested elections": requests.elections,
        }
        for name, look in looks.items():
            self._controller.spawn(self._follow(name, look), f"watch {name}")
        self._controller.spawn(
            Assignments(self._controller, self._session, self._unreadable).follow(), "watch assignments"
        )

    async def _follow(self, name: str, look: Look) -> None:
        changed = asyncio.Event()
        reads = ArmedReads(self._session, changed.set)
        with store_errors():
            while True:
                changed.clear()
                try:
                    await self._controller.read_and_decide(partial(look, reads))
                except OverloadedError as error:
                    log.warning("looked in vain, and looks again", extra={"at": name, "why": str(error)})
                    await asyncio.sleep(LOOK_AGAIN_S)
                    continue
                await changed.wait()

    async def _brokers(self, reads: ArmedReads) -> events.Event | None:
        ids = await reads.children(paths.BROKER_IDS) or []
        # One watch a broker as well: a registration's endpoints may change in place.
        nodes = await asyncio.gather(*(reads.get(f"{paths.BROKER_IDS}/{name}") for name in ids))
        registrations = dict(zip(ids, nodes, strict=True))
        return brokers_read(
            registrations, self._controller.cluster.controller_id, self._controller.inter_broker_listener
        )

    async def _topics(self, reads: ArmedReads) -> events.Event | None:
        names = set(await reads.children(paths.TOPICS) or [])
        known = self._controller.cluster.topics
        strange = sorted(names - set(known))
        found = await find_topics(self._session, strange)
        self._unreadable.note(strange, found)
        self._unreadable.keep(names)
        added = self._with_ids(await with_configs(self._session, found.records))
        removed = tuple(sorted(set(known) - names))
        return events.TopicsRead(added, removed) if added or removed else None

    def _with_ids(self, records: Sequence[events.TopicRecord]) -> tuple[events.TopicRecord, ...]:
        """Draw ids for topics that were written without one, if brokers have topic ids."""
        if not self._controller.uses_topic_ids:
            return tuple(records)
        return tuple(
            replace(record, new_id=draw_topic_id(_RANDOM)) if record.topic_id is None else record for record in records
        )

    async def _deletions(self, reads: ArmedReads) -> events.Event | None:
        names = set(await reads.children(paths.DELETE_TOPICS) or [])
        strange = tuple(sorted(names - set(self._controller.cluster.deletions)))
        return events.DeletionsRead(strange) if strange else None
