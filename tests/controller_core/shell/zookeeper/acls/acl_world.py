"""A ZooKeeper in memory that numbers sequential znodes, a keeper of ACLs on it, and short ways to say an ACL."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from controller_core.shell.store import AclCache
from controller_core.shell.zookeeper.acls import ZooKeeperAcls
from kafka_node.authorization.acl import Entry, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_zookeeper.writes import Create
from kafka_zookeeper.writes import Operation as Write
from tests.controller_core.shell.terms import settled
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeSession, FakeZooKeeper


class AclZooKeeper(FakeZooKeeper):
    """The server, with sequence numbers."""

    sequence = 0

    def session(self) -> "AclSession":
        """Open a session."""
        self._sessions += 1
        return AclSession(self, 0x1000 + self._sessions)

    def apply(self, operations, owner):  # type: ignore[no-untyped-def]
        """Number what is to be numbered, then do all or nothing."""
        return super().apply([self._numbered(each) for each in operations], owner)

    def _numbered(self, operation: Write) -> Write:
        if not isinstance(operation, Create) or not operation.sequential:
            return operation
        self.sequence += 1
        return replace(operation, path=f"{operation.path}{self.sequence:010}")


class AclSession(FakeSession):
    """A session that makes znodes with all above them."""

    async def ensure_path(self, path: str) -> None:
        """Make what is missing."""
        await asyncio.sleep(0)
        if path not in self.server.znodes:
            self.server.put(path)


@asynccontextmanager
async def following(
    server: AclZooKeeper, known: AclCache | None = None, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[ZooKeeperAcls]:
    """Let a keeper follow what the server has, until it is left."""
    keeper = ZooKeeperAcls(AclSession(server, 7), known or AclCache(), clock)  # type: ignore[arg-type]
    task = asyncio.create_task(keeper.follow())
    await keeper.known.loaded.wait()
    await settled()
    try:
        yield keeper
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


Following = AbstractAsyncContextManager[ZooKeeperAcls]


def topic(name: str, pattern_type: PatternType = PatternType.LITERAL) -> Pattern:
    """A pattern of topics."""
    return Pattern(ResourceType.TOPIC, name, pattern_type)


def allow(operation: Operation, principal: str = "User:alice") -> Entry:
    """An entry that allows from everywhere."""
    return Entry(principal, "*", operation, Permission.ALLOW)
