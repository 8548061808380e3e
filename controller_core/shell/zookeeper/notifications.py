"""Reading of notifications that other processes write as sequential znodes.

Brokers report ISRs that they wrote themselves and failed log directories (`BrokerNotifications`); processes that change a
configuration report its name (`ConfigNotifications`). A notification only names what has changed: the current state is read from
its own znode, so the number and order of notifications do not matter.

Source: ConfigEntityChangeNotificationZNode, ZkNodeChangeNotificationListener, ZkConfigManager. Notifications of changed ACLs are read
by `acls`.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from controller_core.model import Cluster, IntArray, events, settings, zookeeper_changes, zookeeper_events
from controller_core.shell.zookeeper.reading import read_states, read_unclean_default, read_unclean_topics
from controller_core.shell.zookeeper.watched_reads import WatchedReads
from kafka_zookeeper import formats, paths
from kafka_zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

MAX_NOTIFICATIONS_PER_READ = 1_000
"""Notifications read and removed at once: one transaction. The removal fires the watch, so that the remaining ones are read next."""
BROKERS_DEFAULT = f"{formats.EntityType.BROKERS}/{formats.DEFAULT_ENTITY}"

_T = TypeVar("_T")
Decode = Callable[[str, bytes | None], _T]
"""Decodes a notification from its name and data. Raises FormatError."""


class BrokerNotifications:
    """Notifications of ISR changes and failed log directories in one active term; each read runs while no event is processed.

    They are removed once processed; one that cannot be decoded is logged and removed with the others, as Kafka does.
    """

    def __init__(self, cluster: Cluster, session: ZooKeeperSession) -> None:
        self._cluster = cluster
        self._session = session

    async def isr_changes(self, reads: WatchedReads) -> events.Event | None:
        """Read the states of partitions whose leader (below inter.broker.protocol.version 2.7) wrote the ISR."""
        names = await self._names(reads, paths.ISR_CHANGE_NOTIFICATION)
        found = await self._read(paths.ISR_CHANGE_NOTIFICATION, names, formats.decode_isr_change)
        known = (self._cluster.row_of(*name) for partitions in found for name in partitions)
        rows = np.array(sorted({row for row in known if row is not None}), dtype=np.int32)
        states = await self._changed_states(rows)
        return zookeeper_events.IsrChangesRead(states, _paths(paths.ISR_CHANGE_NOTIFICATION, names)) if names else None

    async def failed_log_dirs(self, reads: WatchedReads) -> events.Event | None:
        """Read which brokers reported a failed log directory."""
        names = await self._names(reads, paths.LOG_DIR_EVENT_NOTIFICATION)
        found = await self._read(paths.LOG_DIR_EVENT_NOTIFICATION, names, formats.decode_log_dir_event)
        brokers = tuple(sorted(set(found)))
        return (
            zookeeper_events.LogDirsFailed(brokers, _paths(paths.LOG_DIR_EVENT_NOTIFICATION, names)) if names else None
        )

    async def _changed_states(self, rows: IntArray) -> zookeeper_changes.StatesObserved | None:
        """Read states; None if all of them are known already, as they are after a rejected write."""
        states = await read_states(self._session, self._cluster, rows) if len(rows) else None
        if states is None or (states.partition_epoch == self._cluster.columns.partition_epoch[states.rows]).all():
            return None
        return states

    async def _names(self, reads: WatchedReads, parent: str) -> list[str]:
        return sorted(await reads.children(parent) or [])[:MAX_NOTIFICATIONS_PER_READ]

    async def _read(self, parent: str, names: list[str], decode: Decode[_T]) -> list[_T]:
        return await read_notifications(
            self._session, parent, names, decode, "Failed to decode notification; removing it"
        )


class ConfigNotifications:
    """Notifications of changed configurations in one active term; each read runs while no event is processed.

    Brokers remove them after a quarter of an hour, when every broker has read them; the controller does not. The names of those that
    were read are therefore remembered, and one that cannot be decoded is logged once. The first read of a term also reads the
    brokers' dynamic default, which may have changed before the term began.
    """

    def __init__(self, cluster: Cluster, session: ZooKeeperSession, brokers_changed: Callable[[], None]) -> None:
        """`brokers_changed` is called when a notification names a broker's configuration: the broker has to be asked for it."""
        self._cluster = cluster
        self._session = session
        self._brokers_changed = brokers_changed
        self._seen: frozenset[str] | None = None
        """Names of the notifications of the last read; None before the first one."""

    async def unclean_election(self, reads: WatchedReads) -> events.Event | None:
        """Read unclean.leader.election.enable where new notifications report a changed configuration."""
        names = frozenset(await reads.children(paths.CONFIG_CHANGES) or [])
        is_first = self._seen is None
        new = sorted(names - (self._seen or frozenset()))
        message = "Failed to decode notification of a changed configuration"
        # By their path below /config.
        entities = set(
            await read_notifications(self._session, paths.CONFIG_CHANGES, new, formats.decode_config_change, message)
        )
        self._seen = names
        if any(entity.startswith(f"{formats.EntityType.BROKERS}/") for entity in entities):
            self._brokers_changed()
        prefix = f"{formats.EntityType.TOPICS}/"
        named = sorted(entity.removeprefix(prefix) for entity in entities if entity.startswith(prefix))
        known = [name for name in named if name in self._cluster.topics]
        found = await read_unclean_topics(self._session, known) if known else {}
        topics = {name: found.get(name) for name in known}
        defaults: dict[settings.BrokerDefault, bool | None] = {}
        if is_first or BROKERS_DEFAULT in entities:
            defaults[settings.BrokerDefault.DYNAMIC] = await read_unclean_default(self._session)
        return zookeeper_events.UncleanElectionRead(topics, defaults) if topics or defaults else None


async def read_notifications(
    session: ZooKeeperSession, parent: str, names: Sequence[str], decode: Decode[_T], message: str
) -> list[_T]:
    """Read the notifications `names` below `parent`. Deleted ones are skipped, `message` is logged for those that cannot be decoded."""
    found: list[_T] = []
    nodes = await session.multi_get(_paths(parent, names)) if names else ()
    for name, node in zip(names, nodes, strict=True):
        if node is None:
            continue
        try:
            found.append(decode(name, node.data))
        except formats.FormatError as error:
            log.warning(message, extra={"path": error.path, "error": error.reason})
    return found


def _paths(parent: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(paths.child(parent, name) for name in names)
