"""Committing changes: fenced transactions, their outcomes as values, and reading again what was refused.

Every transaction begins with a check of `/controller_epoch`'s version, so that a controller that was deposed without knowing
it writes nothing (C5). Leaves out how groups travel (batches), how topics are removed (removal), and deciding again (the
controller's loop).
"""

import asyncio
import logging
from collections.abc import Sequence

import numpy as np

from controller_core.model.changes import (
    Change,
    DeletionDequeued,
    ElectionRequestsProcessed,
    NotificationsProcessed,
    Origin,
    PartitionStates,
    PendingReassignmentRequestsChanged,
    ProducerIdsAllocated,
    TopicRemoved,
)
from controller_core.model.cluster import Cluster
from controller_core.shell.active import TermEndedError
from controller_core.shell.pace import Pace
from controller_core.shell.store import Deliver, Outcome, Reread
from controller_core.shell.zookeeper.batches import last_path, write_groups
from controller_core.shell.zookeeper.operations import Group, groups_of, parents_of
from controller_core.shell.zookeeper.optimistic import store_errors
from controller_core.shell.zookeeper.refresh import refresh
from controller_core.shell.zookeeper.removal import forget_deletions, remove_notices, remove_topic
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
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
"""Transactions sent before the first is answered: ZooKeeper answers in order, so more only fill its queue."""
FENCE = 0
"""The place of the fence in every transaction."""
OTHERS_WROTE = frozenset(
    {RefusedReason.BAD_VERSION, RefusedReason.NO_NODE, RefusedReason.NODE_EXISTS, RefusedReason.NOT_EMPTY}
)
"""Refusals that are part of the work: a look tells what is written now."""
STATES_PER_STEP = 2 * (MAX_BATCH_OPERATIONS - 1)
"""States whose writes are prepared at once: two whole transactions, which takes some 5 ms."""
MAX_STEPS_PREPARED = 8
"""Steps whose writes are prepared and not yet answered: twice what is in flight. Each state is several objects, all of which the
garbage collector looks at."""


async def _discard(_: Sequence[Change]) -> None:
    """Deliver to nothing: before a controller's loop has begun nothing is applied."""


class Store:
    """Writes of one tenure, under one controller epoch. Implements `shell.store.Store`."""

    def __init__(self, session: ZooKeeperSession, epoch_version: int) -> None:
        self.pace = Pace()
        """Of the tenure's long computations: those of writes and those of the controller's loop."""
        self.unreadable = UnreadableTopics()
        self._deliver: Deliver = _discard
        self._session = session
        self._fence = Check(paths.CONTROLLER_EPOCH, epoch_version)
        self._prepared = asyncio.Semaphore(MAX_STEPS_PREPARED)
        self._in_flight = asyncio.Semaphore(MAX_BATCHES_IN_FLIGHT)

    def deliver_to(self, deliver: Deliver) -> None:
        """Set the receiver of committed changes."""
        self._deliver = deliver

    async def commit(self, cluster: Cluster, changes: Sequence[Change]) -> Outcome:
        """Write changes, and deliver in their order those that were written.

        Those of one decision concern different znodes, so that none waits for another. Raises TermEndedError when the fence does
        not hold, StoreError.
        """
        outcome = Outcome()
        with store_errors():
            parts = await asyncio.gather(*(self._commit_one(cluster, change) for change in changes))
        for part in parts:
            outcome.committed += part.committed
            outcome.stale_rows += part.stale_rows
            outcome.stale_topics += part.stale_topics
            outcome.stale_producer_ids |= part.stale_producer_ids
            outcome.unknown |= part.unknown
        await self._deliver(outcome.committed)
        return outcome

    async def reread(self, cluster: Cluster, outcome: Outcome) -> Reread:
        """Read again what was refused, or may be written or not, and deliver what differs. Raises TermEndedError, StoreError."""
        with store_errors():
            found = await refresh(self._session, cluster, outcome, self.unreadable)
        await self._deliver(found.changes)
        return Reread(bool(found.changes), found.unknown_topics)

    async def _commit_one(self, cluster: Cluster, change: Change) -> Outcome:
        match change:
            case TopicRemoved(origin=Origin.REQUESTED):
                done = await remove_topic(self, change.topic)
            case DeletionDequeued():
                done = await forget_deletions(self, change.names)
            case NotificationsProcessed():
                done = await remove_notices(self, change.paths)
            case PendingReassignmentRequestsChanged() | ElectionRequestsProcessed():
                return await self._commit_list(cluster, change)
            case _:
                return await self._commit_groups(cluster, change)
        return Outcome([change]) if done else Outcome(unknown=True)

    async def _commit_list(self, cluster: Cluster, change: Change) -> Outcome:
        """Write a list that others write as well. Refused or unknown, its watch brings a look, and all is decided on that."""
        groups = groups_of(cluster, change, frozenset())
        results = [await self.transact(group.operations) for group in groups]
        return Outcome([change] if all(isinstance(result, Committed) for result in results) else [])

    async def _commit_groups(self, cluster: Cluster, change: Change) -> Outcome:
        if isinstance(change, PartitionStates) and len(change.rows) > STATES_PER_STEP:
            return await self._commit_in_steps(cluster, change)
        groups = groups_of(cluster, change, frozenset())
        return await self._write(cluster, change, groups, parents_of(cluster, change)) if groups else Outcome([change])

    async def _write(
        self, cluster: Cluster, change: Change, groups: Sequence[Group], parents: Sequence[str]
    ) -> Outcome:
        outcome = Outcome(unknown=not await self.ensure(parents))
        refused = await write_groups(self, groups)
        present: set[str] = set()
        # Znodes found present change how their group is written; each try finds at least one more.
        while not refused.present <= present:
            present |= refused.present
            wanted = {last_path(group) for group in refused.groups}
            again = [group for group in groups_of(cluster, change, present) if last_path(group) in wanted]
            refused = await write_groups(self, again)
        if not refused.groups:
            return Outcome([change])
        outcome.unknown |= refused.unknown
        if isinstance(change, PartitionStates):
            outcome.stale_rows += [group.row for group in refused.groups]
            outcome.committed += _written(change, outcome.stale_rows)
        elif isinstance(change, ProducerIdsAllocated):
            outcome.stale_producer_ids = True
        else:
            outcome.stale_topics += [group.topic for group in refused.groups if group.topic]
            # A name that could not be queued and is not queued already: nothing to read, so it is tried once more.
            outcome.unknown |= any(not group.topic for group in refused.groups)
        return outcome

    async def _commit_in_steps(self, cluster: Cluster, change: PartitionStates) -> Outcome:
        """Prepare and begin the writes of many states in steps, between which the event loop runs.

        The event that decided on them still runs, so nothing else changes these partitions in the meantime.
        """

        async def commit(begin: int) -> Outcome:
            async with self._prepared:
                async with self.pace.step():
                    places = np.arange(begin, min(begin + STATES_PER_STEP, len(change.rows)), dtype=np.int32)
                    part = change.take(places)
                    groups, parents = groups_of(cluster, part, frozenset()), parents_of(cluster, part)
                return await self._write(cluster, part, groups, parents)

        writes = [asyncio.create_task(commit(begin)) for begin in range(0, len(change.rows), STATES_PER_STEP)]
        try:
            parts = await asyncio.gather(*writes)
        except BaseException:
            for write in writes:
                write.cancel()
            raise
        stale = [row for part in parts for row in part.stale_rows]
        if not stale:
            return Outcome([change], unknown=any(part.unknown for part in parts))
        return Outcome(_written(change, stale), stale, unknown=any(part.unknown for part in parts))

    async def transact(self, operations: Sequence[Operation]) -> Committed | Refused | None:
        """Do operations at once behind the fence. Refused never names the fence. None: the connection went, done or not.

        Raises TermEndedError when the fence does not hold.
        """
        async with self._in_flight:
            result = await self._session.multi([self._fence, *operations])
        if not isinstance(result, Refused):
            return result if isinstance(result, Committed) else None
        if result.index == FENCE:
            raise TermEndedError("another controller raised the controller epoch")
        if result.reason not in OTHERS_WROTE:
            path = operations[result.index - 1].path if result.index > FENCE else "a whole transaction"
            extra = {"path": path, "reason": result.reason.value, "why": result.detail}
            log.error("ZooKeeper refuses a write that no retry will mend", extra=extra)
        return result

    async def nodes_of(self, wanted: Sequence[str]) -> list[Node | None]:
        """Read many znodes; None for one that is not there."""
        return await self._session.multi_get(wanted)

    async def children_of(self, parents: Sequence[str]) -> list[list[str] | None]:
        """List the children of many znodes; None for one that is not there."""
        return await self._session.multi_children(parents)

    async def ensure(self, wanted: Sequence[str]) -> bool:
        """Make znodes without data where they are missing, none below another.

        False when it is not known whether all of them are there.
        """
        if not wanted:
            return True
        missing = [path for path, node in zip(wanted, await self.nodes_of(wanted), strict=True) if node is None]
        return None not in await asyncio.gather(*(self.transact([Create(path, None)]) for path in missing))


def _written(change: PartitionStates, stale: Sequence[int]) -> list[Change]:
    """Keep the part of a change whose rows are not stale; nothing where all of them are."""
    places = np.flatnonzero(~np.isin(change.rows, stale)).astype(np.int32)
    return [change.take(places)] if len(places) else []
