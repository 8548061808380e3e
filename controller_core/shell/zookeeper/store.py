"""Store of an active term: commits changes in fenced transactions, returns their outcomes as values, and re-reads what was refused.

Every transaction begins with a check of the version of `/controller_epoch`, so that a controller that was deposed without
noticing writes nothing (C5).
"""

import asyncio
import logging
from collections.abc import Sequence

import numpy as np

from controller_core.model import Cluster, Origin, zookeeper_changes
from controller_core.model.changes import Change, PartitionStates, ProducerIdsAllocated, TopicRemoved
from controller_core.model.events import Event
from controller_core.shell import active, store
from controller_core.shell.pace import Pace
from controller_core.shell.zookeeper import batches, optimistic, removal
from controller_core.shell.zookeeper.operations import Group, groups_of, parents_of
from controller_core.shell.zookeeper.refresh import refresh
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
from controller_core.zookeeper_mode.znode_versions import NO_ZNODE, ZnodeVersions, versions_read
from kafka_zookeeper import paths
from kafka_zookeeper.session import Node, ZooKeeperSession
from kafka_zookeeper.writes import (
    MAX_BATCH_OPERATIONS,
    Check,
    Committed,
    Create,
    Operation,
    Refused,
    RefusedReason,
)

log = logging.getLogger(__name__)

MAX_BATCHES_IN_FLIGHT = 8
"""Transactions in flight: ZooKeeper answers in order, so more would only fill its queue."""
FENCE = 0
"""Index of the fence in every transaction."""
OTHERS_WROTE = frozenset(
    {RefusedReason.BAD_VERSION, RefusedReason.NO_NODE, RefusedReason.NODE_EXISTS, RefusedReason.NOT_EMPTY}
)
"""Refusals that are expected when other processes write: the current state is read and the event is decided again."""
STATES_PER_STEP = 2 * (MAX_BATCH_OPERATIONS - 1)
"""States whose writes are prepared at once: two whole transactions, which takes some 5 ms."""
MAX_STEPS_PREPARED = 8
"""Steps whose writes are prepared and not yet answered: twice what is in flight. Each state consists of several objects, all of
which the garbage collector traverses."""


async def _discard(_: Sequence[Change]) -> None:
    """Discard changes: there is no receiver before the controller's loop has started."""


class Store:
    """Writes of one active term, under one controller epoch. Implements `shell.store.Store`."""

    def __init__(self, session: ZooKeeperSession, epoch_version: int) -> None:
        self.pace = Pace()
        """Steps of the active term's long computations: those of writes and those of the controller's loop."""
        self.versions = ZnodeVersions()
        """Versions of the znodes of the current state; only the store and loading change them."""
        self.unreadable = UnreadableTopics()
        self._deliver: store.Deliver = _discard
        self._session = session
        self._fence = Check(paths.CONTROLLER_EPOCH, epoch_version)
        self._prepared = asyncio.Semaphore(MAX_STEPS_PREPARED)
        self._in_flight = asyncio.Semaphore(MAX_BATCHES_IN_FLIGHT)

    def deliver_to(self, deliver: store.Deliver) -> None:
        """Set the receiver of committed changes."""
        self._deliver = deliver

    async def commit(self, cluster: Cluster, changes: Sequence[Change], event: Event) -> store.Outcome:
        """Write changes, and deliver in their order those that were written.

        The changes of one decision concern different znodes, so they are written concurrently. Changes that follow from an older
        znode than the known one are dropped: its content is already applied, or replaced. Raises TermEndedError when the fence does
        not hold, StoreError.
        """
        read = versions_read(event)
        based = [(change, self.versions.expected(change, read)) for change in changes]
        based = [(change, expected) for change, expected in based if not self.versions.is_stale(change, expected)]
        outcome = store.Outcome()
        with optimistic.store_errors():
            parts = await asyncio.gather(*(self._commit_one(cluster, change, expected) for change, expected in based))
        written: list[tuple[Change, int]] = []
        for part, (_, expected) in zip(parts, based, strict=True):
            written += [(change, expected) for change in part.committed]
            outcome.committed += part.committed
            outcome.stale_rows += part.stale_rows
            outcome.stale_topics += part.stale_topics
            outcome.stale_producer_ids |= part.stale_producer_ids
            outcome.unknown |= part.unknown
        await self._deliver_and_note(written)
        return outcome

    async def reread(self, cluster: Cluster, outcome: store.Outcome) -> store.Reread:
        """Read again what was refused or whose result is unknown, and deliver what differs. Raises TermEndedError, StoreError."""
        with optimistic.store_errors():
            found = await refresh(self._session, cluster, outcome, self.versions, self.unreadable)
        await self._deliver_and_note(
            [(change, self.versions.expected(change, found.versions)) for change in found.changes]
        )
        return store.Reread(bool(found.changes), found.unknown_topics)

    async def _deliver_and_note(self, based: Sequence[tuple[Change, int]]) -> None:
        """Deliver changes, and note the versions that their znodes have now.

        In this order: until a change is applied, a decision on the earlier state must not be written over it.
        """
        await self._deliver([change for change, _ in based])
        for change, expected in based:
            self.versions.note(change, expected)

    async def _commit_one(self, cluster: Cluster, change: Change, expected: int) -> store.Outcome:
        match change:
            case TopicRemoved(origin=Origin.REQUESTED):
                done = await removal.remove_topic(self, change.topic)
            case zookeeper_changes.DeletionDequeued():
                done = await removal.forget_deletions(self, change.names)
            case zookeeper_changes.NotificationsProcessed():
                done = await removal.remove_notifications(self, change.paths)
            case zookeeper_changes.PendingReassignmentRequestsChanged() | zookeeper_changes.ElectionRequestsProcessed():
                return await self._commit_list(cluster, change, expected)
            case _:
                return await self._commit_groups(cluster, change, expected)
        return store.Outcome([change]) if done else store.Outcome(unknown=True)

    async def _commit_list(self, cluster: Cluster, change: Change, expected: int) -> store.Outcome:
        """Write a list that other processes write as well. If the write is not committed, the list's watch leads to a new decision."""
        groups = groups_of(cluster, change, expected, frozenset())
        results = [await self.transact(group.operations) for group in groups]
        return store.Outcome([change] if all(isinstance(result, Committed) for result in results) else [])

    async def _commit_groups(self, cluster: Cluster, change: Change, expected: int) -> store.Outcome:
        if isinstance(change, PartitionStates) and len(change.rows) > STATES_PER_STEP:
            return await self._commit_in_steps(cluster, change)
        groups = groups_of(cluster, change, expected, frozenset())
        if not groups:
            return store.Outcome([change])
        return await self._write(cluster, change, expected, groups, parents_of(cluster, change))

    async def _write(
        self, cluster: Cluster, change: Change, expected: int, groups: Sequence[Group], parents: Sequence[str]
    ) -> store.Outcome:
        outcome = store.Outcome(unknown=not await self.ensure(parents))
        refused = await batches.write_groups(self, groups)
        present: set[str] = set()
        # Existing znodes change how their group is written; each attempt finds at least one more.
        while not refused.present <= present:
            present |= refused.present
            wanted = {batches.target_path(group) for group in refused.groups}
            again = [
                group for group in groups_of(cluster, change, expected, present) if batches.target_path(group) in wanted
            ]
            refused = await batches.write_groups(self, again)
        if not refused.groups:
            return store.Outcome([change])
        outcome.unknown |= refused.unknown
        if isinstance(change, PartitionStates):
            outcome.stale_rows += [group.row for group in refused.groups]
            outcome.committed += _written(change, outcome.stale_rows)
        elif isinstance(change, ProducerIdsAllocated):
            outcome.stale_producer_ids = True
        else:
            outcome.stale_topics += [group.topic for group in refused.groups if group.topic]
            # A name that could not be queued and is not queued already: there is nothing to read, so the event is decided again.
            outcome.unknown |= any(not group.topic for group in refused.groups)
        return outcome

    async def _commit_in_steps(self, cluster: Cluster, change: PartitionStates) -> store.Outcome:
        """Prepare and start the writes of many states in steps, so that the event loop runs in between.

        The event that decided on them is still running, so no other event changes these partitions in the meantime.
        """

        async def commit(begin: int) -> store.Outcome:
            async with self._prepared:
                async with self.pace.step():
                    places = np.arange(begin, min(begin + STATES_PER_STEP, len(change.rows)), dtype=np.int32)
                    part = change.take(places)
                    groups, parents = groups_of(cluster, part, NO_ZNODE, frozenset()), parents_of(cluster, part)
                return await self._write(cluster, part, NO_ZNODE, groups, parents)

        writes = [asyncio.create_task(commit(begin)) for begin in range(0, len(change.rows), STATES_PER_STEP)]
        try:
            parts = await asyncio.gather(*writes)
        except BaseException:
            for write in writes:
                write.cancel()
            raise
        stale = [row for part in parts for row in part.stale_rows]
        if not stale:
            return store.Outcome([change], unknown=any(part.unknown for part in parts))
        return store.Outcome(_written(change, stale), stale, unknown=any(part.unknown for part in parts))

    async def transact(self, operations: Sequence[Operation]) -> Committed | Refused | None:
        """Commit operations in one transaction behind the fence. None: the connection was lost and the result is unknown.

        Raises TermEndedError when the fence does not hold.
        """
        async with self._in_flight:
            result = await self._session.multi([self._fence, *operations])
        if not isinstance(result, Refused):
            return result if isinstance(result, Committed) else None
        if result.index == FENCE:
            raise active.TermEndedError("another controller raised the controller epoch")
        if result.reason not in OTHERS_WROTE:
            path = operations[result.index - 1].path if result.index > FENCE else "a whole transaction"
            extra = {"path": path, "reason": result.reason.value, "error": result.detail}
            log.error("ZooKeeper rejected a write with a non-retriable error", extra=extra)
        return result

    async def nodes_of(self, wanted: Sequence[str]) -> list[Node | None]:
        """Read many znodes; None for one that does not exist."""
        return await self._session.multi_get(wanted)

    async def children_of(self, parents: Sequence[str]) -> list[list[str] | None]:
        """Read the names of many znodes' children; None for one that does not exist."""
        return await self._session.multi_children(parents)

    async def ensure(self, wanted: Sequence[str]) -> bool:
        """Create missing znodes without data; none of them may be a parent of another.

        False if it is unknown whether all of them exist.
        """
        if not wanted:
            return True
        missing = [path for path, node in zip(wanted, await self.nodes_of(wanted), strict=True) if node is None]
        return None not in await asyncio.gather(*(self.transact([Create(path, None)]) for path in missing))


def _written(change: PartitionStates, stale: Sequence[int]) -> list[Change]:
    """Return the part of a change whose rows are not stale; nothing if all of them are."""
    places = np.flatnonzero(~np.isin(change.rows, stale)).astype(np.int32)
    return [change.take(places)] if len(places) else []
