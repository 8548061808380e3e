"""Notifications of changed configs and ACLs: sequential znodes below three parents, read once each.

Source: ZkNodeChangeNotificationListener of Kafka 3.9. Other brokers and the controller delete them after some time.
"""

import asyncio
import logging
from collections.abc import Collection
from functools import partial

from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats import FormatError
from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.watches import WatchEvent

log = logging.getLogger(__name__)

PARENTS = (paths.CONFIG_CHANGES, paths.ACL_CHANGES, paths.EXTENDED_ACL_CHANGES)


class Notifications:
    """New notifications of one session."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self._seen: dict[str, frozenset[str]] = {parent: frozenset() for parent in PARENTS}
        self._unwatched = set(PARENTS)
        self._fired = asyncio.Event()

    async def start(self) -> None:
        """Watch, and count everything present as seen: the caller reads all configs and ACLs next. Raises ZooKeeperError."""
        for parent in PARENTS[1:]:
            await self._session.ensure_path(parent)
        await self.new()

    async def wait(self) -> None:
        """Return when there may be new ones, or when the connection was lost."""
        await self._fired.wait()

    async def new(self) -> dict[str, list[str]]:
        """Return the names of new ones by parent. Raises ZooKeeperError."""
        self._fired.clear()
        found: dict[str, list[str]] = {}
        for parent in tuple(self._unwatched):
            self._unwatched.discard(parent)
            try:
                names = await self._session.children(parent, watch=partial(self._on_event, parent))
            except BaseException:
                self._unwatched.add(parent)
                self._fired.set()
                raise
            current = frozenset(names or ())
            if added := current - self._seen[parent]:
                found[parent] = sorted(added)
            self._seen[parent] = current
        return found

    def _on_event(self, parent: str, _: WatchEvent | None) -> None:
        self._unwatched.add(parent)
        self._fired.set()


async def changed_entities(session: ZooKeeperSession, names: Collection[str]) -> list[str] | None:
    """Return what notifications of configs name, such as `topics/orders`; None if one cannot be read. Raises ZooKeeperError."""
    order = sorted(names)
    nodes = await session.multi_get([paths.child(paths.CONFIG_CHANGES, name) for name in order])
    entities = []
    for name, node in zip(order, nodes, strict=True):
        if node is None:
            return None  # It expired before it was read.
        try:
            entities.append(formats.decode_config_change(name, node.data))
        except FormatError as error:
            log.error("Failed to decode notification of changed configs", extra={"error": str(error)})
            return None
    return list(dict.fromkeys(entities))
