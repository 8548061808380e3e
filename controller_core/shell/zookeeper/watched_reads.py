"""Reads that arm a watch, one at a time for each znode.

ZooKeeper's watches fire once, but one that did not fire stays: whoever looks every few seconds and arms a watch with each look
would gather them without end. Leaves out what is done when something changed.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kafka_zookeeper.session import Node, ZooKeeperSession
from kafka_zookeeper.watches import WatchCallback

_T = TypeVar("_T")


class ArmedReads:
    """Reads of one session; `changed` is called when what was read may be no longer true."""

    def __init__(self, session: ZooKeeperSession, changed: Callable[[], None]) -> None:
        self._session = session
        self._changed = changed
        self._armed: set[tuple[str, str]] = set()

    async def get(self, path: str) -> Node | None:
        """Read a znode; None where there is none."""
        return await self._read("data", path, self._session.get)

    async def children(self, path: str) -> list[str] | None:
        """Read the names of a znode's children; None where there is no such znode."""
        return await self._read("children", path, self._session.children)

    async def _read(self, kind: str, path: str, read: Callable[[str, WatchCallback | None], Awaitable[_T]]) -> _T:
        key = (kind, path)
        if key in self._armed:
            return await read(path, None)

        def fired(_event: object) -> None:
            self._armed.discard(key)
            self._changed()

        self._armed.add(key)
        try:
            return await read(path, fired)
        except BaseException:
            self._armed.discard(key)
            raise
