"""Optimistic updates: read, compute, write at the version that was read; repeated when another process wrote in between.

For znodes that brokers and tools write as well, so that no controller epoch fences them: ACLs, entity configurations, features.
`store_errors` translates ZooKeeper's errors for code that runs within an active term.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller_core.shell.store import StoreError
from kafka_zookeeper.session import ZooKeeperError, ZooKeeperSession
from kafka_zookeeper.writes import Committed, MultiResult, Operation

T = TypeVar("T")

MAX_ATTEMPTS = 10
"""Attempts of an update while other processes change the same znode (AclAuthorizer.maxUpdateRetries)."""


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T]):
    """One computation of an update from what was read."""

    operations: Sequence[Operation]
    """One transaction; empty if there is nothing to write."""
    result: T
    """Result of the update once the transaction is committed."""


async def optimistic_update(
    session: ZooKeeperSession,
    attempt: Callable[[], Awaitable[Attempt[T]]],
    is_retried: Callable[[MultiResult], Awaitable[bool]],
    pause_s: float = 0.0,
) -> tuple[T, MultiResult]:
    """Attempt an update until it is committed, or ends in a way for which `is_retried` returns False.

    `attempt` reads and computes. `is_retried` may repair the cause of the failure, such as a missing parent. Returns the last
    attempt's result and the result of its transaction. Raises ZooKeeperError and the exceptions of `attempt`.
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


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise StoreError, which the controller's loop handles, in place of ZooKeeperError."""
    try:
        yield
    except ZooKeeperError as error:
        raise StoreError(str(error)) from error
