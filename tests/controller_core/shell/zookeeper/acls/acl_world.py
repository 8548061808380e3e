"""An in-memory ZooKeeper that numbers sequential znodes, ACLs followed in it, and helpers that build ACLs."""

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
    """The server, with sequential znodes."""

    sequence = 0

    def session(self) -> "AclSession":
        """Open a session."""
        self._sessions += 1
        return AclSession(self, 0x1000 + self._sessions)

    def apply(self, operations, owner):
        """Number sequential znodes, then commit all operations or none."""
        return super().apply([self._numbered(operation) for operation in operations], owner)

    def _numbered(self, operation: Write) -> Write:
        if not isinstance(operation, Create) or not operation.sequential:
            return operation
        self.sequence += 1
        return replace(operation, path=f"{operation.path}{self.sequence:010}")


class AclSession(FakeSession):
    """A session that also creates parents."""

    async def ensure_path(self, path: str) -> None:
        """Create a missing znode with its parents."""
        await asyncio.sleep(0)
        if path not in self.server.znodes:
            self.server.put(path)


@asynccontextmanager
async def following(
    server: AclZooKeeper, known: AclCache | None = None, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[ZooKeeperAcls]:
    """Follow the server's ACLs within the context."""
    acls = ZooKeeperAcls(AclSession(server, 7), known or AclCache(), clock)
    task = asyncio.create_task(acls.follow())
    await acls.known.loaded.wait()
    await settled()
    try:
        yield acls
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


Following = AbstractAsyncContextManager[ZooKeeperAcls]


def topic(name: str, pattern_type: PatternType = PatternType.LITERAL) -> Pattern:
    """A pattern for topics."""
    return Pattern(ResourceType.TOPIC, name, pattern_type)


def allow(operation: Operation, principal: str = "User:alice") -> Entry:
    """An entry that allows an operation from every host."""
    return Entry(principal, "*", operation, Permission.ALLOW)
