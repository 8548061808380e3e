"""Reading many znodes: multi-reads sized by what they bring back, several in flight; one by one on servers before 3.6.

A server refuses a request over jute.maxbuffer (1 MiB) by closing the connection; it does not limit an answer, and a careless
one (50 znodes of 900 kB) takes a small server's memory. How large znodes are is not known before they are read. So sizes
begin small and grow by four as long as the answers stay far below that limit: three rounds to full size.
Left out: sessions and sending, which `Sender` stands for.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, cast

from kafka_zookeeper.errors import ConnectionLostError, ZooKeeperError
from kafka_zookeeper.protocol import GET_CHILDREN, GET_DATA, NO_NODE, Answer, Node, ResultError

MAX_PATHS_PER_REQUEST = 500
"""640,000 small znodes a second were measured at this size, 314,000 at 100 and 470,000 at 2,000."""
FIRST_PATHS_PER_REQUEST = 16
"""Even if each znode is as large as one can be, so many of them are 16 MiB."""
GROWTH = 4

MAX_REQUEST_BYTES = 524_288
"""Half of what a server takes."""
TARGET_ANSWER_BYTES = 1_048_576
"""What every client of ZooKeeper must be ready to take (jute.maxbuffer)."""
REQUEST_OVERHEAD_BYTES = 14
"""Beside each path: header, length, watch flag."""

REQUESTS_IN_FLIGHT = 4
"""One is being read by the server, one is on its way, one is being taken apart here, and one to spare."""
SINGLE_READS_IN_FLIGHT = 100
"""On servers without multi-reads; see `session.MAX_REQUESTS_IN_FLIGHT`."""

MAX_LOSSES = 8
"""Connections that may break under one multi-read, each making the requests smaller, before it is given up."""

Result = Node | list[str]


class MultiReadUnsupportedError(ZooKeeperError):
    """The server is older than 3.6."""


class Sender(Protocol):
    """What reading needs of a session; paths are without the chroot."""

    chroot: str

    async def read_many(self, kind: int, paths: Sequence[str]) -> Answer:
        """Send one multi-read. Raises MultiReadUnsupportedError, ConnectionLostError or SessionLostError."""

    async def get(self, path: str) -> Node | None:
        """Read one znode, None where there is none."""

    async def children(self, path: str) -> list[str] | None:
        """Read the names of a znode's children, None where there is no such znode."""


class RequestSize:
    """How many paths the next request may hold, by what the answers so far weighed."""

    def __init__(self) -> None:
        self.paths = FIRST_PATHS_PER_REQUEST
        self._most = MAX_PATHS_PER_REQUEST
        self._largest_average_bytes = 1.0

    def answered(self, paths: int, size_bytes: int) -> None:
        """Learn from an answer; the heaviest one so far decides."""
        self._largest_average_bytes = max(self._largest_average_bytes, size_bytes / paths)
        fitting = int(TARGET_ANSWER_BYTES / self._largest_average_bytes)
        self.paths = max(1, min(fitting, max(self.paths, paths * GROWTH), self._most))

    def lost(self, paths: int) -> None:
        """Learn from a connection that broke under a request, perhaps because of it: never again so many."""
        self._most = max(1, min(self._most, paths // GROWTH))
        self.paths = min(self.paths, self._most)


def take_request(waiting: deque[int], paths: Sequence[str], most: int, chroot_bytes: int) -> list[int]:
    """Take the places of the next request's paths off `waiting`: at least one, at most `most`, within MAX_REQUEST_BYTES."""
    taken: list[int] = []
    size = 0
    while waiting and len(taken) < most:
        path = paths[waiting[0]]
        size += REQUEST_OVERHEAD_BYTES + chroot_bytes + (len(path) if path.isascii() else len(path.encode()))
        if taken and size > MAX_REQUEST_BYTES:
            break
        taken.append(waiting.popleft())
    return taken


async def multi_get(sender: Sender, paths: Sequence[str]) -> list[Node | None]:
    """Read many znodes, None where there is none, in the order asked for.

    They are not read at one instant: between two requests others may write.
    """
    return cast("list[Node | None]", await _read(sender, GET_DATA, paths))


async def multi_children(sender: Sender, paths: Sequence[str]) -> list[list[str] | None]:
    """Read the names of many znodes' children, sorted; None where there is no such znode."""
    found = cast("list[list[str] | None]", await _read(sender, GET_CHILDREN, paths))
    return [None if names is None else sorted(names) for names in found]


async def _read(sender: Sender, kind: int, paths: Sequence[str]) -> list[Result | None]:
    results: list[Result | None] = [None] * len(paths)
    waiting, size, losses = deque(range(len(paths))), RequestSize(), 0
    chroot_bytes = len(sender.chroot.encode())

    async def work() -> None:
        nonlocal losses
        while waiting:
            places = take_request(waiting, paths, size.paths, chroot_bytes)
            wanted = [paths[place] for place in places]
            try:
                answer = await sender.read_many(kind, wanted)
            except ConnectionLostError:
                losses += 1
                size.lost(len(places))
                waiting.extendleft(reversed(places))
                if losses > MAX_LOSSES:
                    raise
                continue
            size.answered(len(places), answer.size_bytes)
            for place, path, result in zip(places, wanted, answer.results, strict=True):
                results[place] = _outcome(path, result)

    try:
        await _together(work, min(REQUESTS_IN_FLIGHT, len(paths)))
    except MultiReadUnsupportedError:
        return await _read_one_by_one(sender, kind, paths)
    return results


def _outcome(path: str, result: Result | ResultError) -> Result | None:
    if not isinstance(result, ResultError):
        return result
    if result.code == NO_NODE:
        return None
    raise ZooKeeperError(f"reading {path} was refused by ZooKeeper with the error code {result.code}")


async def _read_one_by_one(sender: Sender, kind: int, paths: Sequence[str]) -> list[Result | None]:
    results: list[Result | None] = [None] * len(paths)
    waiting = deque(range(len(paths)))

    async def work() -> None:
        while waiting:
            place = waiting.popleft()
            results[place] = await (sender.get if kind == GET_DATA else sender.children)(paths[place])

    await _together(work, min(SINGLE_READS_IN_FLIGHT, len(paths)))
    return results


async def _together(work: Callable[[], Awaitable[None]], workers: int) -> None:
    """Run so many of the same at once; the first error ends all and is raised as it is."""
    tasks = [asyncio.ensure_future(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
