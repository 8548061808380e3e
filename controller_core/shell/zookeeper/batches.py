"""Writing many groups in few transactions: what is refused is sorted out, and the others go through without it.

Partition states of one decision travel many in a transaction. When ZooKeeper refuses it for one of them, one look at all of
its znodes tells which others it would be refused for, so that even a transaction in which everything is stale costs one look.

Leaves out the fence (store) and what the groups say (operations).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.shell.zookeeper.operations import Group
from kafka_zookeeper import paths, writes
from kafka_zookeeper.session import Node

MAX_LOOKS_PER_BATCH = 4
"""Times that a refused transaction is looked at and tried again without what is not as it was thought to be. One look finds
all of it, unless others go on writing."""


class Transactor(Protocol):
    """What writing needs of the store."""

    async def transact(self, operations: Sequence[writes.Operation]) -> writes.Committed | writes.Refused | None:
        """Do operations at once behind the fence, which counts as the first of them. None: done or not."""

    async def nodes_of(self, wanted: Sequence[str]) -> list[Node | None]:
        """Read many znodes; None for one that is not there."""


@dataclass(slots=True)
class Refusals:
    """What was not written."""

    groups: list[Group] = field(default_factory=list)
    present: set[str] = field(default_factory=set)
    """Znodes that were to be created and were there, which is no reason not to write what belongs to them."""
    unknown: bool = False
    """Some of the groups are written, or not."""


async def write_groups(store: Transactor, groups: Sequence[Group]) -> Refusals:
    """Write all groups that are not refused."""
    # One less than fits: the fence comes in front.
    batches = writes.plan_batches([group.operations for group in groups], None, writes.MAX_BATCH_OPERATIONS - 1)
    results = await asyncio.gather(*(_write_batch(store, batch, groups) for batch in batches))
    return Refusals(
        [group for refusals in results for group in refusals.groups],
        {path for refusals in results for path in refusals.present},
        any(refusals.unknown for refusals in results),
    )


async def _write_batch(store: Transactor, batch: writes.Batch, groups: Sequence[Group]) -> Refusals:
    left = [groups[index] for index in batch.groups]
    refusals = Refusals()
    for _ in range(1 + MAX_LOOKS_PER_BATCH):
        result = await store.transact([operation for group in left for operation in group.operations])
        if isinstance(result, writes.Committed):
            return refusals
        culprit = _group_at(left, result.index - 1) if isinstance(result, writes.Refused) else None
        if culprit is None:
            refusals.unknown = result is None
            break
        left = await _look(store, left, culprit, refusals)
        if not left:
            break
    refusals.groups += left
    return refusals


async def _look(store: Transactor, groups: Sequence[Group], culprit: Group, refusals: Refusals) -> list[Group]:
    """Sort out the groups that would be refused as well; returns the others."""
    wanted = [operation.path for group in groups for operation in group.operations]
    nodes = dict(zip(wanted, await store.nodes_of(wanted), strict=True))
    left: list[Group] = []
    for group in groups:
        unexpected = [one.path for one in group.operations if not _is_as_thought(one, nodes[one.path])]
        refusals.present |= {path for path in unexpected if nodes[path] is not None and may_be_there(path)}
        # What is refused for a reason that a look does not show must not be tried for ever.
        (refusals.groups if unexpected or group is culprit else left).append(group)
    return left


def _group_at(groups: Sequence[Group], place: int) -> Group | None:
    """Find the group that holds the operation at a place, counted without the fence."""
    for group in groups:
        if place < len(group.operations):
            return group if place >= 0 else None
        place -= len(group.operations)
    return None


def last_path(group: Group) -> str:
    """Name what a group is about, however much of it is there already."""
    return group.operations[-1].path


def _is_as_thought(operation: writes.Operation, node: Node | None) -> bool:
    """Whether an operation of a group would go through on what was found."""
    if isinstance(operation, writes.Create):
        return node is None
    return node is not None and operation.version in {writes.ANY_VERSION, node.version}


def may_be_there(path: str) -> bool:
    """Tell whether a znode that is to be created may as well be there already, and what belongs to it be written at once.

    Not so for a topic, a partition's state and the producer ids: these say something, which must be read first.

    >>> [may_be_there(f"/brokers/topics/a{below}") for below in ("", "/partitions", "/partitions/0", "/partitions/0/state")]
    [False, True, True, False]
    """
    if path == paths.PRODUCER_ID_BLOCK:
        return False
    levels = path.removeprefix(f"{paths.TOPICS}/").count("/")
    return not path.startswith(f"{paths.TOPICS}/") or levels in {1, 2}
