"""Optimistic updates: read, compute, write at the version that was read; again when another process wrote in between.

For znodes that brokers and tools write as well, so that no controller epoch fences them: ACLs, entity configurations, features.
"""

# MERGED controller_core.shell.zookeeper.optimistic: """ZooKeeper's errors as the store's: what runs within a term reports errors that the controller's loop knows."""
import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller_core.shell.store import StoreError
from kafka_zookeeper.errors import ZooKeeperError
from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.writes import Committed, MultiResult, Operation


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise StoreError for a ZooKeeperError."""
    try:
        yield
    except ZooKeeperError as error:
        raise StoreError(str(error)) from error


T = TypeVar("T")

MAX_ATTEMPTS = 10
"""Times that an update is tried while other processes change the same znode (AclAuthorizer.maxUpdateRetries)."""


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T]):
    """One computation of an update from what was read."""

    operations: Sequence[Operation]
    """One transaction; empty where nothing is to be written."""
    result: T
    """Result of the update once that is written."""


async def optimistic_update(
    session: ZooKeeperSession,
    attempt: Callable[[], Awaitable[Attempt[T]]],
    is_retried: Callable[[MultiResult], Awaitable[bool]],
    pause_s: float = 0.0,
) -> tuple[T, MultiResult]:
    """Read and write until it is committed, or refused for a reason that `is_retried` does not accept.

    `attempt` reads and computes. `is_retried` may repair what made the transaction fail, such as a missing parent. Returns the last
    attempt's result and how its transaction ended. Raises ZooKeeperError, and what `attempt` raises.
    """
    for _ in range(MAX_ATTEMPTS):
        tried = await attempt()
        if not tried.operations:
            return tried.result, Committed(())
        ended = await session.multi(tried.operations)
        if isinstance(ended, Committed) or not await is_retried(ended):
            break
        if pause_s:
            await asyncio.sleep(pause_s)
    return tried.result, ended
