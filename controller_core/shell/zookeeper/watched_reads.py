"""Reads that set a watch, at most one for each znode.

A watch of ZooKeeper fires once and stays set until then. A reader that polls every few seconds and sets a watch with each read would
accumulate them without limit.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kafka_zookeeper.session import Node, ZooKeeperSession
from kafka_zookeeper.watches import WatchCallback

_T = TypeVar("_T")


class WatchedReads:
    """Reads of one session; `changed` is called when a value that was read may have changed."""

    def __init__(self, session: ZooKeeperSession, changed: Callable[[], None]) -> None:
        self._session = session
        self._changed = changed
        self._watched: set[tuple[str, str]] = set()

    async def get(self, path: str) -> Node | None:
        """Read a znode; None if it does not exist."""
        return await self._read("data", path, self._session.get)

    async def children(self, path: str) -> list[str] | None:
        """Read the names of a znode's children; None if it does not exist."""
        return await self._read("children", path, self._session.children)

    async def _read(self, kind: str, path: str, read: Callable[[str, WatchCallback | None], Awaitable[_T]]) -> _T:
        key = (kind, path)
        if key in self._watched:
            return await read(path, None)

        def fired(_event: object) -> None:
            self._watched.discard(key)
            self._changed()

        self._watched.add(key)
        try:
            return await read(path, fired)
        except BaseException:
            self._watched.discard(key)
            raise
