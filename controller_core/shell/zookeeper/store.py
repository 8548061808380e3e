"""Committing changes: fenced transactions, their outcomes as values, and reading again what was refused.

Every transaction begins with a check of `/controller_epoch`'s version, so that a controller that was deposed without knowing
it writes nothing (C5). Partition states of one decision travel many in a transaction; when one of them is refused, the others
of that transaction are tried again without it.

Leaves out deciding again (the controller's loop) and how topics are removed (removal).
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from controller_core.model.changes import Change, DeletionForgotten, Origin, PartitionStates, TopicRemoved
from controller_core.model.cluster import Cluster
from controller_core.shell.active import TenureLostError
from controller_core.shell.zookeeper.operations import Group, groups_of, parents_of
from controller_core.shell.zookeeper.removal import forget_deletions, remove_topic
from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.writes import Batch, Check, Committed, Create, Operation, Refused, RefusedReason, plan_batches

MAX_REFUSALS_PER_BATCH = 4
"""Groups of one transaction that may be refused one after another before all of it is read again: each costs a round."""
MAX_BATCHES_IN_FLIGHT = 8
"""Transactions sent before the first is answered: ZooKeeper answers in order, so more only fill its queue."""
FENCE = 0
"""The place of the fence in every transaction."""


@dataclass(slots=True)
class Outcome:
    """What became of a decision's changes."""

    committed: list[Change] = field(default_factory=list)
    """In the order of the decision; of partition states those rows that were written."""
    stale_rows: list[int] = field(default_factory=list)
    """Rows whose write was refused or is unknown: their state must be read again."""
    stale_topics: list[str] = field(default_factory=list)
    """Topics whose znode is not as it was thought to be."""
    unknown: bool = False
    """The connection went: what was sent may be done or not."""

    @property
    def is_whole(self) -> bool:
        """Whether everything was written."""
        return not (self.stale_rows or self.stale_topics or self.unknown)


class Store:
    """Writes of one tenure, under one controller epoch."""

    def __init__(self, session: ZooKeeperSession, epoch_version: int) -> None:
        self._session = session
        self._fence = Check(paths.CONTROLLER_EPOCH, epoch_version)
        self._in_flight = asyncio.Semaphore(MAX_BATCHES_IN_FLIGHT)

    async def commit(self, cluster: Cluster, changes: Sequence[Change]) -> Outcome:
        """Write changes; those of one decision concern different znodes, so that none waits for another.

        Raises TenureLostError when the fence does not hold.
        """
        outcome = Outcome()
        for part in await asyncio.gather(*(self._commit_one(cluster, change) for change in changes)):
            outcome.committed += part.committed
            outcome.stale_rows += part.stale_rows
            outcome.stale_topics += part.stale_topics
            outcome.unknown |= part.unknown
        return outcome

    async def _commit_one(self, cluster: Cluster, change: Change) -> Outcome:
        match change:
            case TopicRemoved(origin=Origin.REQUESTED):
                done = await remove_topic(self, change.topic)
            case DeletionForgotten():
                done = await forget_deletions(self, change.names)
            case _:
                return await self._commit_groups(cluster, change)
        return Outcome([change]) if done else Outcome(unknown=True)

    async def _commit_groups(self, cluster: Cluster, change: Change) -> Outcome:
        outcome = Outcome()
        present: set[str] = set()
        groups = groups_of(cluster, change, present)
        if not groups:
            return Outcome([change])
        await self.ensure(parents_of(cluster, change))
        # Znodes found present change how their group is written; each try finds at least one more.
        refused = await self._write(groups)
        while refused.present and not refused.present <= present:
            present |= refused.present
            wanted = {group.row for group in refused.groups}
            again = [group for group in groups_of(cluster, change, present) if group.row in wanted]
            refused = await self._write(again)
        if not refused.groups:
            return Outcome([change])
        outcome.unknown |= refused.unknown
        if isinstance(change, PartitionStates):
            stale = [group.row for group in refused.groups]
            outcome.stale_rows += stale
            written = np.flatnonzero(~np.isin(change.rows, stale)).astype(np.int32)
            if len(written):
                outcome.committed.append(change.take(written))
        else:
            outcome.stale_topics += [group.topic for group in refused.groups if group.topic]
            # Producer ids and queued names have neither row nor topic: they are read again as a whole.
            outcome.unknown |= any(not group.topic for group in refused.groups)
        return outcome

    async def _write(self, groups: Sequence[Group]) -> "_Refusals":
        batches = plan_batches([group.operations for group in groups], self._fence)
        results = await asyncio.gather(*(self._write_batch(batch, groups) for batch in batches))
        return _Refusals(
            [group for refusals in results for group in refusals.groups],
            {path for refusals in results for path in refusals.present},
            any(refusals.unknown for refusals in results),
        )

    async def _write_batch(self, batch: Batch, groups: Sequence[Group]) -> "_Refusals":
        left = [groups[index] for index in batch.groups]
        refusals = _Refusals()
        while left:
            operations = [operation for group in left for operation in group.operations]
            result = await self.transact(operations)
            if isinstance(result, Committed):
                return refusals
            if not isinstance(result, Refused):
                return _Refusals([*refusals.groups, *left], refusals.present, unknown=True)
            culprit = _group_at(left, result.index - 1)
            if culprit is None or len(refusals.groups) >= MAX_REFUSALS_PER_BATCH:
                return _Refusals([*refusals.groups, *left], refusals.present)
            left.remove(culprit)
            refusals.groups.append(culprit)
            if result.reason is RefusedReason.NODE_EXISTS and (path := _parent_created(operations, result.index - 1)):
                refusals.present.add(path)
        return refusals

    async def transact(self, operations: Sequence[Operation]) -> Committed | Refused | None:
        """Do operations at once behind the fence. Refused never names the fence. None: the connection went, done or not.

        Raises TenureLostError when the fence does not hold.
        """
        async with self._in_flight:
            result = await self._session.multi([self._fence, *operations])
        if isinstance(result, Refused) and result.index == FENCE:
            raise TenureLostError("another controller raised the controller epoch")
        return result if isinstance(result, Committed | Refused) else None

    async def children_of(self, parents: Sequence[str]) -> list[list[str] | None]:
        """List the children of many znodes; None for one that is not there."""
        return await self._session.multi_children(parents)

    async def ensure(self, wanted: Iterable[str]) -> None:
        """Make znodes without data where they are missing; that one is there already is no news."""
        for path in wanted:
            await self.transact([Create(path, None)])


@dataclass(slots=True)
class _Refusals:
    groups: list[Group] = field(default_factory=list)
    present: set[str] = field(default_factory=set)
    unknown: bool = False


def _group_at(groups: Sequence[Group], place: int) -> Group | None:
    """Find the group that holds the operation at a place, counted without the fence."""
    for group in groups:
        if place < len(group.operations):
            return group if place >= 0 else None
        place -= len(group.operations)
    return None


def _parent_created(operations: Sequence[Operation], place: int) -> str | None:
    """Name the znode that a refused create was for, if it is one that may well be there: no state, no topic."""
    operation = operations[place]
    if not isinstance(operation, Create):
        return None
    is_state = operation.path.endswith("/state")
    is_topic = (
        operation.path.startswith(f"{paths.TOPICS}/") and operation.path.count("/") == paths.TOPICS.count("/") + 1
    )
    return None if is_state or is_topic else operation.path
