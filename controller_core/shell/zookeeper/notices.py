"""Reading what brokers tell by sequential znodes: ISRs that they wrote by themselves, log directories that failed.

A notice is no state, only a hint where to look: the states of the partitions named are read again, and whatever they say by
then counts. So it does not matter how many notices there are, or in which order they are read. A notice that cannot be read
is named in the log with the reason, and goes with the others, as Kafka has it.

Leaves out what follows (`cluster.notices`), and notices of changed configurations, which are not the controller's to remove.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from controller_core.model.changes import StatesObserved
from controller_core.model.cluster import Cluster
from controller_core.model.columns import IntArray
from controller_core.model.events import Event, IsrChangesRead, LogDirsFailed
from controller_core.shell.zookeeper.armed import ArmedReads
from controller_core.shell.zookeeper.reading import read_states
from kafka_zookeeper import paths
from kafka_zookeeper.formats.documents import FormatError
from kafka_zookeeper.formats.notifications import decode_isr_change, decode_log_dir_event
from kafka_zookeeper.session import ZooKeeperSession

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

    async def isr_changes(self, reads: ArmedReads) -> Event | None:
        """Read the states of partitions whose leader (below inter.broker.protocol.version 2.7) wrote the ISR."""
        names = await self._names(reads, paths.ISR_CHANGE_NOTIFICATION)
        told = await self._read(paths.ISR_CHANGE_NOTIFICATION, names, decode_isr_change)
        found = (self._cluster.row_of(*name) for partitions in told for name in partitions)
        rows = np.array(sorted({row for row in found if row is not None}), dtype=np.int32)
        states = await self._changed_states(rows)
        return IsrChangesRead(states, _paths(paths.ISR_CHANGE_NOTIFICATION, names)) if names else None

    async def failed_log_dirs(self, reads: ArmedReads) -> Event | None:
        """Read which brokers have lost a log directory."""
        names = await self._names(reads, paths.LOG_DIR_EVENT_NOTIFICATION)
        told = await self._read(paths.LOG_DIR_EVENT_NOTIFICATION, names, decode_log_dir_event)
        brokers = tuple(sorted(set(told)))
        return LogDirsFailed(brokers, _paths(paths.LOG_DIR_EVENT_NOTIFICATION, names)) if names else None

    async def _changed_states(self, rows: IntArray) -> StatesObserved | None:
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
