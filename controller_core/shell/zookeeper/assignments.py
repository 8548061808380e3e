"""Looking at known topics' assignments: somebody else may add partitions by hand or by an old tool.

Kafka's controller arms one watch for each topic. At 25,000 topics that is 25,000 objects of some kilobyte in our memory and as
many single reads after every broken connection, just when a take-over or a storm is being dealt with; and each write of our
own fires one. Nor does it help to be quick: whoever writes such a znode waits for no answer. So the topics are looked at in turn,
a share of them each second, by multi-reads (ZooKeeper serves 640,000 small znodes a second): at 25,000 topics 5,000 a second,
some hundredth of our time, and every change is seen within LAP_S seconds and a little.

Such a read is made while others write, so that what looks changed may be our own work on its way. It is only a suspicion: the
topics suspected are read once more in a turn in which nobody writes, and that counts.

Leaves out topics that come and go (watching), and what follows (`zookeeper_mode.observed_topics`).
"""

import asyncio
import logging
from functools import partial

from controller_core.model import events
from controller_core.shell.active import ActiveTerm, OverloadedError
from controller_core.shell.zookeeper.optimistic import store_errors
from controller_core.shell.zookeeper.reading import find_topics, with_configs
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

PAUSE_S = 1.0
"""Between two shares."""
LAP_S = 5
"""In so many seconds each topic is looked at once: half of the time in which all must have converged."""
MIN_SHARE = 500
"""Topics looked at in one go, if there are so many: one multi-read."""


class Assignments:
    """The looks at assignments, of one tenure."""

    def __init__(self, controller: ActiveTerm, session: ZooKeeperSession, unreadable: UnreadableTopics) -> None:
        self._controller = controller
        self._session = session
        self._unreadable = unreadable
        self._waiting: list[str] = []
        """Topics that this lap has not come to."""

    async def follow(self) -> None:
        """Look, for ever, at one share after another."""
        with store_errors():
            while True:
                await asyncio.sleep(PAUSE_S)
                suspected = await self._suspected(self._share())
                if not suspected:
                    continue
                try:
                    await self._controller.read_and_decide(partial(self._changed, suspected))
                except OverloadedError as error:
                    log.warning("changed assignments are looked at in the next lap", extra={"why": str(error)})

    def _share(self) -> list[str]:
        if not self._waiting:
            # Unreadable topics that are not known are read again as well: somebody may have corrected them.
            known = self._controller.cluster.topics
            self._waiting = [*known, *(name for name in self._unreadable.names() if name not in known)]
        size = max(MIN_SHARE, -(-len(self._controller.cluster.topics) // LAP_S))
        share, self._waiting = self._waiting[:size], self._waiting[size:]
        return share

    async def _suspected(self, names: list[str]) -> list[str]:
        """Find the topics whose znode has another version than is known."""
        nodes = await self._session.multi_get([paths.topic(name) for name in names]) if names else []
        topics = self._controller.cluster.topics
        return [
            name
            for name, node in zip(names, nodes, strict=True)
            if node is not None
            and (name not in topics or topics[name].version != node.version)
            and self._unreadable.version(name) != node.version
        ]

    async def _changed(self, suspected: list[str]) -> events.Event | None:
        """Read topics again while nobody writes."""
        topics = self._controller.cluster.topics
        found = await find_topics(self._session, suspected)
        self._unreadable.note(suspected, found)
        added = [record for record in found.records if record.name not in topics]
        if added:
            # Topics that changed are found again in the next lap: their versions still differ.
            return events.TopicsRead(await with_configs(self._session, added), ())
        changed = [record for record in found.records if record.version != topics[record.name].version]
        return events.TopicsChanged(await with_configs(self._session, changed)) if changed else None
