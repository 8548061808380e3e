"""Removing what belongs to a deleted topic: from the leaves up, its name in the queue last.

The topic's own znode, its configuration and its name in the queue go at once, when nothing is below it any more: so a controller
that dies half-way leaves both the topic and its name in the queue, and the next one goes on. What is gone already is no error.
What is below the topic is read first, since nobody vouches for what others wrote there.

Leaves out when a topic may be removed.
"""

from collections.abc import Sequence
from typing import Protocol

from kafka_zookeeper import paths, writes

MAX_DEPTH = 8
"""Levels below a topic's znode: Kafka has three. Deeper ones are somebody's mistake, and the topic stays queued."""
MAX_TRIES = 8
"""Times that a removal is read and tried anew, should someone write below the topic meanwhile."""
MAX_DELETES = writes.MAX_BATCH_OPERATIONS - 1
"""Deletes in one transaction: the fence comes in front."""


class Transactor(Protocol):
    """What a removal needs of the store."""

    async def transact(self, operations: Sequence[writes.Operation]) -> writes.Committed | writes.Refused | None:
        """Do operations at once behind the fence."""

    async def children_of(self, parents: Sequence[str]) -> list[list[str] | None]:
        """List the children of many znodes; None for one that is not there."""


async def remove_topic(store: Transactor, topic: str) -> bool:
    """Remove all that is written of a topic; False when it is not known to be all gone."""
    last = [paths.topic(topic), paths.topic_config(topic), paths.delete_topic(topic)]
    for _ in range(MAX_TRIES):
        _, *below = await _tree(store, paths.topic(topic)) or [""]
        if await _delete(store, below[::-1]) and await _delete(store, last):
            return True
    return False


async def forget_deletions(store: Transactor, names: Sequence[str]) -> bool:
    """Take names out of the queue of deletions."""
    return await _delete(store, [paths.delete_topic(name) for name in names])


async def remove_notices(store: Transactor, notices: Sequence[str]) -> bool:
    """Remove znodes that are heeded, with what somebody may have put below them."""
    if await _delete(store, notices):
        return True
    doomed = [path for notice in notices for path in reversed(await _tree(store, notice))]
    return await _delete(store, doomed)


async def _tree(store: Transactor, root: str) -> list[str]:
    """List a znode and all below it, parents before children; nothing where it is not there."""
    found: list[str] = []
    level = [root]
    for _ in range(MAX_DEPTH):
        children = await store.children_of(level)
        there = [(path, names) for path, names in zip(level, children, strict=True) if names is not None]
        found += [path for path, _ in there]
        level = [f"{path}/{name}" for path, names in there for name in names]
        if not level:
            break
    return found


async def _delete(store: Transactor, doomed: Sequence[str]) -> bool:
    """Delete znodes in order; those that are gone are passed over. False: unknown, or one has children again."""
    left = list(doomed)
    while left:
        batch = left[:MAX_DELETES]
        result = await store.transact([writes.Delete(path, writes.ANY_VERSION) for path in batch])
        if isinstance(result, writes.Committed):
            left = left[len(batch) :]
        elif isinstance(result, writes.Refused) and result.reason is writes.RefusedReason.NO_NODE and result.index > 0:
            del left[result.index - 1]  # Counted with the fence.
        else:
            return False
    return True
