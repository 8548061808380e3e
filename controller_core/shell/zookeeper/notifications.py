"""Reading what brokers tell by sequential znodes: ISRs that they wrote by themselves, log directories that failed.

A notice is no state, only a hint where to look: the states of the partitions named are read again, and whatever they say by
then counts. So it does not matter how many notices there are, or in which order they are read. A notice that cannot be read
is named in the log with the reason, and goes with the others, as Kafka has it.

Leaves out what follows (`zookeeper_mode.broker_notifications`), and notices of changed configurations, which are not the controller's to remove.
"""

# MERGED controller_core.shell.zookeeper.notifications: """Reading what notices of changed configurations name: topics' own settings, and the brokers' dynamic default.
# MERGED controller_core.shell.zookeeper.notifications:
# MERGED controller_core.shell.zookeeper.notifications: Whoever changes a configuration writes it and leaves a notice under /config/changes for all brokers. A notice is only a hint
# MERGED controller_core.shell.zookeeper.notifications: where to look. It is nobody's to remove but the brokers', who do so after a quarter of an hour, since each of them has to hear
# MERGED controller_core.shell.zookeeper.notifications: it: so what was read before is remembered, and one that cannot be read is named in the log once and left to them.
# MERGED controller_core.shell.zookeeper.notifications:
# MERGED controller_core.shell.zookeeper.notifications: With its first look a tenure reads all that is there. What was changed before it began, and what changed while its state was
# MERGED controller_core.shell.zookeeper.notifications: being read, is found that way.
# MERGED controller_core.shell.zookeeper.notifications:
# MERGED controller_core.shell.zookeeper.notifications: What brokers have by themselves, they are asked for (`learning`): a notice of theirs is passed on.
# MERGED controller_core.shell.zookeeper.notifications:
# MERGED controller_core.shell.zookeeper.notifications: Source: ConfigEntityChangeNotificationZNode, ZkNodeChangeNotificationListener, ZkConfigManager. Leaves out what follows
# MERGED controller_core.shell.zookeeper.notifications: (`zookeeper_mode.broker_settings`), and all configurations that are not the controller's business.
# MERGED controller_core.shell.zookeeper.notifications: """
# MERGED controller_core.shell.zookeeper.notifications: """Reading requests that old tools leave in ZooKeeper: `/admin/reassign_partitions` and `/admin/preferred_replica_election`.
# MERGED controller_core.shell.zookeeper.notifications:
# MERGED controller_core.shell.zookeeper.notifications: People write them by hand. One that cannot be read is named in the log with its path and the reason, once, and counts as an
# MERGED controller_core.shell.zookeeper.notifications: empty list, so that it is taken away; Kafka does so with what is no JSON, and gives up on what is JSON of another shape.
# MERGED controller_core.shell.zookeeper.notifications:
# MERGED controller_core.shell.zookeeper.notifications: Leaves out what the requests lead to (cluster.legacy_requests), and when to look (watching).
# MERGED controller_core.shell.zookeeper.notifications: """
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.columns import IntArray
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.shell.zookeeper.reading import read_states, read_unclean_default, read_unclean_topics
from controller_core.shell.zookeeper.watched_reads import ArmedReads
from kafka_zookeeper import paths
from kafka_zookeeper.formats.admin import decode_preferred_replica_election, decode_reassignment
from kafka_zookeeper.formats.configs import DEFAULT_ENTITY, EntityType, decode_config_change
from kafka_zookeeper.formats.documents import FormatError
from kafka_zookeeper.formats.notifications import decode_isr_change, decode_log_dir_event
from kafka_zookeeper.session import Node, ZooKeeperSession

log = logging.getLogger(__name__)

MAX_NOTICES_PER_LOOK = 1_000
"""Read and removed at once: one transaction. The removal fires the watch, so that the others are looked at next."""

_T = TypeVar("_T")
Decode = Callable[[str, bytes | None], _T]
"""Reads a notice by its name and data. Raises FormatError."""


class Notices:
    """The looks at notices, of one tenure; each runs in a turn in which nobody else writes."""

    def __init__(self, cluster: Cluster, session: ZooKeeperSession) -> None:
        self._cluster = cluster
        self._session = session

    async def isr_changes(self, reads: ArmedReads) -> events.Event | None:
        """Read the states of partitions whose leader (below inter.broker.protocol.version 2.7) wrote the ISR."""
        names = await self._names(reads, paths.ISR_CHANGE_NOTIFICATION)
        told = await self._read(paths.ISR_CHANGE_NOTIFICATION, names, decode_isr_change)
        found = (self._cluster.row_of(*name) for partitions in told for name in partitions)
        rows = np.array(sorted({row for row in found if row is not None}), dtype=np.int32)
        states = await self._changed_states(rows)
        return events.IsrChangesRead(states, _paths(paths.ISR_CHANGE_NOTIFICATION, names)) if names else None

    async def failed_log_dirs(self, reads: ArmedReads) -> events.Event | None:
        """Read which brokers have lost a log directory."""
        names = await self._names(reads, paths.LOG_DIR_EVENT_NOTIFICATION)
        told = await self._read(paths.LOG_DIR_EVENT_NOTIFICATION, names, decode_log_dir_event)
        brokers = tuple(sorted(set(told)))
        return events.LogDirsFailed(brokers, _paths(paths.LOG_DIR_EVENT_NOTIFICATION, names)) if names else None

    async def _changed_states(self, rows: IntArray) -> changes.StatesObserved | None:
        """Read states; None where all are known, perhaps from a refused write before."""
        states = await read_states(self._session, self._cluster, rows) if len(rows) else None
        if states is None or (states.partition_epoch == self._cluster.columns.partition_epoch[states.rows]).all():
            return None
        return states

    async def _names(self, reads: ArmedReads, parent: str) -> list[str]:
        return sorted(await reads.children(parent) or [])[:MAX_NOTICES_PER_LOOK]

    async def _read(self, parent: str, names: list[str], decode: Decode[_T]) -> list[_T]:
        return await read_notices(self._session, parent, names, decode, "a notice cannot be read and is removed")


async def read_notices(
    session: ZooKeeperSession, parent: str, names: Sequence[str], decode: Decode[_T], complaint: str
) -> list[_T]:
    """Read notices by their names below `parent`; one that went is passed over, one that cannot be read is complained of."""
    told: list[_T] = []
    nodes = await session.multi_get(_paths(parent, names)) if names else ()
    for name, node in zip(names, nodes, strict=True):
        if node is None:
            continue
        try:
            told.append(decode(name, node.data))
        except FormatError as error:
            log.warning(complaint, extra={"path": error.path, "why": error.reason})
    return told


def _paths(parent: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(paths.child(parent, name) for name in names)


BROKERS_DEFAULT = f"{EntityType.BROKERS}/{DEFAULT_ENTITY}"


class ConfigChanges:
    """The looks at notices of changed configurations, of one tenure; each runs in a turn in which nobody else writes."""

    def __init__(self, cluster: Cluster, session: ZooKeeperSession, brokers_changed: Callable[[], None]) -> None:
        self._cluster = cluster
        self._session = session
        self._brokers_changed = brokers_changed
        self._seen: frozenset[str] | None = None
        """Names of the notices that were there at the last look; None before the first."""

    async def look(self, reads: ArmedReads) -> events.Event | None:
        """Read what is set now, of all that a new notice names."""
        names = frozenset(await reads.children(paths.CONFIG_CHANGES) or [])
        is_first = self._seen is None
        fresh = sorted(names - (self._seen or frozenset()))
        complaint = "a notice of a changed configuration cannot be read"
        # By their path below /config.
        entities = set(await read_notices(self._session, paths.CONFIG_CHANGES, fresh, decode_config_change, complaint))
        self._seen = names
        if any(entity.startswith(f"{EntityType.BROKERS}/") for entity in entities):
            self._brokers_changed()
        prefix = f"{EntityType.TOPICS}/"
        named = sorted(entity.removeprefix(prefix) for entity in entities if entity.startswith(prefix))
        known = [name for name in named if name in self._cluster.topics]
        found = await read_unclean_topics(self._session, known) if known else {}
        topics = {name: found.get(name) for name in known}
        defaults: dict[changes.BrokerDefault, bool | None] = {}
        if is_first or BROKERS_DEFAULT in entities:
            defaults[changes.BrokerDefault.DYNAMIC] = await read_unclean_default(self._session)
        return events.UncleanElectionRead(topics, defaults) if topics or defaults else None


class LegacyRequests:
    """The looks at both lists in one tenure."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def moves(self, reads: ArmedReads) -> events.Event | None:
        """Look at the moves that are asked for."""
        node = await reads.get(paths.REASSIGN_PARTITIONS)
        if node is None:
            # Whoever takes the list away takes back no move that runs.
            return events.ReassignmentRequestsRead({}, NO_EPOCH) if self._cluster.reassignment_requests else None
        found = _decoded(paths.REASSIGN_PARTITIONS, node, decode_reassignment) or {}
        return events.ReassignmentRequestsRead(
            {TopicPartition(*name): target for name, target in found.items()}, node.version
        )

    async def elections(self, reads: ArmedReads) -> events.Event | None:
        """Look at the preferred leaders that are asked for."""
        node = await reads.get(paths.PREFERRED_REPLICA_ELECTION)
        if node is None:
            return None
        found = _decoded(paths.PREFERRED_REPLICA_ELECTION, node, decode_preferred_replica_election) or ()
        return events.ElectionRequestsRead(tuple(TopicPartition(*name) for name in dict.fromkeys(found)), node.version)


def _decoded(path: str, node: Node, decode: Callable[[bytes | None], _T]) -> _T | None:
    try:
        return decode(node.data)
    except FormatError as error:
        log.error("request removed: it cannot be read", extra={"path": path, "why": error.reason})
        return None
