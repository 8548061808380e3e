"""Reads of many znodes: concurrent multi-reads, sized by their responses; single reads on servers before 3.6.

A server rejects a request over jute.maxbuffer (1 MiB) by closing the connection. It does not limit a response, and a large one
(50 znodes of 900 kB) exhausts the memory of a small server. The size of znodes is unknown before they are read. Request sizes
therefore start small and grow by a factor of four while the responses are far below that limit: full size after three rounds.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, cast

from kafka_zookeeper.errors import ConnectionLostError, ZooKeeperError
from kafka_zookeeper.protocol import GET_CHILDREN, GET_DATA, NO_NODE, MultiReadResponse, Node, ResultError

MAX_PATHS_PER_REQUEST = 500
"""640,000 small znodes a second were measured at this size, 314,000 at 100 and 470,000 at 2,000."""
FIRST_PATHS_PER_REQUEST = 16
"""16 MiB if each znode has the maximum size."""
GROWTH = 4

MAX_REQUEST_BYTES = 524_288
"""Half of a server's limit."""
TARGET_RESPONSE_BYTES = 1_048_576
"""Size that every ZooKeeper client must accept (jute.maxbuffer)."""
REQUEST_OVERHEAD_BYTES = 14
"""Size of an entry without its path: header, length, watch flag."""

REQUESTS_IN_FLIGHT = 4
"""One is processed by the server, one is in transit, one is decoded here, and one is spare."""
SINGLE_READS_IN_FLIGHT = 100
"""On servers without multi-reads; see `session.MAX_REQUESTS_IN_FLIGHT`."""

MAX_LOSSES = 8
"""Lost connections, each of which makes the requests smaller, after which a read fails."""

Result = Node | list[str]


class MultiReadUnsupportedError(ZooKeeperError):
    """The server is older than 3.6."""


class Sender(Protocol):
    """Interface of the session for reads; paths are without the chroot."""

    chroot: str

    async def read_many(self, kind: int, paths: Sequence[str]) -> MultiReadResponse:
        """Send one multi-read. Raises MultiReadUnsupportedError, ConnectionLostError or SessionLostError."""

    async def get(self, path: str) -> Node | None:
        """Read one znode; None if it does not exist."""

    async def children(self, path: str) -> list[str] | None:
        """Read the names of a znode's children; None if the znode does not exist."""


class RequestSize:
    """Limit of the paths in the next request, from the sizes of the responses so far."""

    def __init__(self) -> None:
        self.paths = FIRST_PATHS_PER_REQUEST
        self._most = MAX_PATHS_PER_REQUEST
        self._largest_average_bytes = 1.0

    def record_response(self, paths: int, size_bytes: int) -> None:
        """Adapt to a response; the one with the largest average decides."""
        self._largest_average_bytes = max(self._largest_average_bytes, size_bytes / paths)
        fitting = int(TARGET_RESPONSE_BYTES / self._largest_average_bytes)
        self.paths = max(1, min(fitting, max(self.paths, paths * GROWTH), self._most))

    def record_loss(self, paths: int) -> None:
        """Adapt to a connection loss, which the request may have caused: lower the limit permanently."""
        self._most = max(1, min(self._most, paths // GROWTH))
        self.paths = min(self.paths, self._most)


def take_request(waiting: deque[int], paths: Sequence[str], most: int, chroot_bytes: int) -> list[int]:
    """Take the indexes of the next request's paths from `waiting`: at least one, at most `most`, within MAX_REQUEST_BYTES."""
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
    """Read many znodes in the order of `paths`; None for each that does not exist.

    This is not a consistent snapshot: znodes may change between two requests.
    """
    return cast("list[Node | None]", await _read(sender, GET_DATA, paths))


async def multi_children(sender: Sender, paths: Sequence[str]) -> list[list[str] | None]:
    """Read the sorted names of many znodes' children; None for each znode that does not exist."""
    found = cast("list[list[str] | None]", await _read(sender, GET_CHILDREN, paths))
    return [None if names is None else sorted(names) for names in found]


async def _read(sender: Sender, kind: int, paths: Sequence[str]) -> list[Result | None]:
    results: list[Result | None] = [None] * len(paths)
    waiting, size, losses = deque(range(len(paths))), RequestSize(), 0
    chroot_bytes = len(sender.chroot.encode())

    async def work() -> None:
        nonlocal losses
        while waiting:
            indexes = take_request(waiting, paths, size.paths, chroot_bytes)
            requested = [paths[index] for index in indexes]
            try:
                response = await sender.read_many(kind, requested)
            except ConnectionLostError:
                losses += 1
                size.record_loss(len(indexes))
                waiting.extendleft(reversed(indexes))
                if losses > MAX_LOSSES:
                    raise
                continue
            size.record_response(len(indexes), response.size_bytes)
            for index, path, result in zip(indexes, requested, response.results, strict=True):
                results[index] = _outcome(path, result)

    try:
        await _run_workers(work, min(REQUESTS_IN_FLIGHT, len(paths)))
    except MultiReadUnsupportedError:
        return await _read_one_by_one(sender, kind, paths)
    return results


def _outcome(path: str, result: Result | ResultError) -> Result | None:
    if not isinstance(result, ResultError):
        return result
    if result.code == NO_NODE:
        return None
    raise ZooKeeperError(f"ZooKeeper rejected the read of {path} with error code {result.code}")


async def _read_one_by_one(sender: Sender, kind: int, paths: Sequence[str]) -> list[Result | None]:
    results: list[Result | None] = [None] * len(paths)
    waiting = deque(range(len(paths)))

    async def work() -> None:
        while waiting:
            index = waiting.popleft()
            results[index] = await (sender.get if kind == GET_DATA else sender.children)(paths[index])

    await _run_workers(work, min(SINGLE_READS_IN_FLIGHT, len(paths)))
    return results


async def _run_workers(work: Callable[[], Awaitable[None]], workers: int) -> None:
    """Run `work` concurrently as often as `workers`; the first error cancels the others and is raised."""
    tasks = [asyncio.ensure_future(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
