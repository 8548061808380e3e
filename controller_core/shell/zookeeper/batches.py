"""Writing of many groups in few transactions: refused groups are removed from a transaction and the others are committed without them.

One transaction contains many partition states of one decision. When ZooKeeper refuses it because of one group, all of its znodes are
read once, which finds the other groups that would be refused as well. So even a transaction of stale groups only costs one read.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.shell.zookeeper.operations import Group
from kafka_zookeeper import paths, session, writes

MAX_RETRIES_PER_BATCH = 4
"""Times that a refused transaction is repeated without the groups whose znodes differ from the expected state. One read finds all of
them, unless other processes keep writing."""


class Transactor(Protocol):
    """Methods of the store that writing uses."""

    async def transact(self, operations: Sequence[writes.Operation]) -> writes.Committed | writes.Refused | None:
        """Commit operations in one transaction behind the fence, which is operation 0. None: the result is unknown."""

    async def nodes_of(self, wanted: Sequence[str]) -> list[session.Node | None]:
        """Read many znodes; None for one that does not exist."""


@dataclass(slots=True)
class RefusedGroups:
    """Groups that were not written."""

    groups: list[Group] = field(default_factory=list)
    present: set[str] = field(default_factory=set)
    """Znodes of these groups that were to be created and exist already; their groups can still be written in another form."""
    unknown: bool = False
    """The result of some groups is unknown: they may be written or not."""


async def write_groups(store: Transactor, groups: Sequence[Group]) -> RefusedGroups:
    """Write all groups that are not refused; returns the others."""
    # One operation less than the maximum, for the fence.
    batches = writes.plan_batches([group.operations for group in groups], None, writes.MAX_BATCH_OPERATIONS - 1)
    results = await asyncio.gather(*(_write_batch(store, batch, groups) for batch in batches))
    return RefusedGroups(
        [group for refusals in results for group in refusals.groups],
        {path for refusals in results for path in refusals.present},
        any(refusals.unknown for refusals in results),
    )


async def _write_batch(store: Transactor, batch: writes.Batch, groups: Sequence[Group]) -> RefusedGroups:
    left = [groups[index] for index in batch.groups]
    refusals = RefusedGroups()
    for _ in range(1 + MAX_RETRIES_PER_BATCH):
        result = await store.transact([operation for group in left for operation in group.operations])
        if isinstance(result, writes.Committed):
            return refusals
        culprit = _group_at(left, result.index - 1) if isinstance(result, writes.Refused) else None
        if culprit is None:
            refusals.unknown = result is None
            break
        left = await _without_stale(store, left, culprit, refusals)
        if not left:
            break
    refusals.groups += left
    return refusals


async def _without_stale(
    store: Transactor, groups: Sequence[Group], culprit: Group, refusals: RefusedGroups
) -> list[Group]:
    """Move the groups that would be refused as well to `refusals`; returns the others."""
    wanted = [operation.path for group in groups for operation in group.operations]
    nodes = dict(zip(wanted, await store.nodes_of(wanted), strict=True))
    left: list[Group] = []
    for group in groups:
        unexpected = [
            operation.path for operation in group.operations if not _is_possible(operation, nodes[operation.path])
        ]
        refusals.present |= {path for path in unexpected if nodes[path] is not None and may_be_there(path)}
        # The culprit is removed even if the read does not show why it was refused: it must not be tried forever.
        (refusals.groups if unexpected or group is culprit else left).append(group)
    return left


def _group_at(groups: Sequence[Group], place: int) -> Group | None:
    """Return the group of the operation at a place, counted without the fence."""
    for group in groups:
        if place < len(group.operations):
            return group if place >= 0 else None
        place -= len(group.operations)
    return None


def target_path(group: Group) -> str:
    """Return the path of a group's last operation, which identifies the group however many of its parents exist."""
    return group.operations[-1].path


def _is_possible(operation: writes.Operation, node: session.Node | None) -> bool:
    """Return whether an operation would be committed on the state that was read."""
    if isinstance(operation, writes.Create):
        return node is None
    return node is not None and operation.version in {writes.ANY_VERSION, node.version}


def may_be_there(path: str) -> bool:
    """Return whether a znode that is to be created may exist already, so that its group can be written without reading its data.

    False for a topic, a partition's state and the producer ids: their data must be read first.

    >>> [may_be_there(f"/brokers/topics/a{below}") for below in ("", "/partitions", "/partitions/0", "/partitions/0/state")]
    [False, True, True, False]
    """
    if path == paths.PRODUCER_ID_BLOCK:
        return False
    levels = path.removeprefix(f"{paths.TOPICS}/").count("/")
    return not path.startswith(f"{paths.TOPICS}/") or levels in {1, 2}
