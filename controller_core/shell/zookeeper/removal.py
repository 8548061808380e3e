"""Removal of a deleted topic's znodes: from the leaves up, its name in the queue of deletions last.

The topic's own znode, its configuration and its name in the queue are deleted in one transaction, once the topic's znode has no
children. If the controller fails before, topic and name both remain and the next controller continues. A znode that does not exist
is not an error. The children are read first, since other processes may have created any.
"""

from collections.abc import Sequence
from typing import Protocol

from kafka_zookeeper import paths, writes

MAX_DEPTH = 8
"""Levels below a topic's znode: Kafka has three. Deeper ones were created by mistake, and the topic stays queued."""
MAX_TRIES = 8
"""Attempts to read and remove a topic, in case another process writes below it in the meantime."""
MAX_DELETES = writes.MAX_BATCH_OPERATIONS - 1
"""Deletes in one transaction, in addition to the fence."""


class Transactor(Protocol):
    """Methods of the store that a removal uses."""

    async def transact(self, operations: Sequence[writes.Operation]) -> writes.Committed | writes.Refused | None:
        """Commit operations in one transaction behind the fence."""

    async def children_of(self, parents: Sequence[str]) -> list[list[str] | None]:
        """Read the names of many znodes' children; None for one that does not exist."""


async def remove_topic(store: Transactor, topic: str) -> bool:
    """Remove all znodes of a topic; False if it is not known that all are deleted."""
    last = [paths.topic(topic), paths.topic_config(topic), paths.delete_topic(topic)]
    for _ in range(MAX_TRIES):
        _, *below = await _tree(store, paths.topic(topic)) or [""]
        if await _delete(store, below[::-1]) and await _delete(store, last):
            return True
    return False


async def forget_deletions(store: Transactor, names: Sequence[str]) -> bool:
    """Remove names from the queue of deletions."""
    return await _delete(store, [paths.delete_topic(name) for name in names])


async def remove_notifications(store: Transactor, notifications: Sequence[str]) -> bool:
    """Remove processed notifications, with any children that other processes created."""
    if await _delete(store, notifications):
        return True
    found = [path for notification in notifications for path in reversed(await _tree(store, notification))]
    return await _delete(store, found)


async def _tree(store: Transactor, root: str) -> list[str]:
    """List a znode and its descendants, parents before children; empty if it does not exist."""
    found: list[str] = []
    level = [root]
    for _ in range(MAX_DEPTH):
        children = await store.children_of(level)
        existing = [(path, names) for path, names in zip(level, children, strict=True) if names is not None]
        found += [path for path, _ in existing]
        level = [f"{path}/{name}" for path, names in existing for name in names]
        if not level:
            break
    return found


async def _delete(store: Transactor, znodes: Sequence[str]) -> bool:
    """Delete znodes in order; missing ones are skipped. False: the result is unknown, or a znode has children again."""
    left = list(znodes)
    while left:
        batch = left[:MAX_DELETES]
        result = await store.transact([writes.Delete(path, writes.ANY_VERSION) for path in batch])
        if isinstance(result, writes.Committed):
            left = left[len(batch) :]
        elif isinstance(result, writes.Refused) and result.reason is writes.RefusedReason.NO_NODE and result.index > 0:
            del left[result.index - 1]  # The fence is operation 0.
        else:
            return False
    return True
