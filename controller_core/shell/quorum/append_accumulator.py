"""Appends of several callers, collected for the linger time into one batch, so that one flush and one Fetch serve all of them.

Without linger time, appends that callers make before the event loop continues are one batch, as those between two polls of Kafka's
IO thread are. Source: BatchAccumulator of Kafka (controller.quorum.append.linger.ms). The records of one append stay in one batch.
`CommitWaits` has what waits for their commit.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count

from controller_core.quorum.ready import AppendResult
from kafka_wire import ErrorCode

BATCH_OVERHEAD = 61
"""Bytes of a batch's header."""

RECORD_OVERHEAD_MAX = 21
"""Bytes of a record in addition to its value, at most: attributes, and the variable-length numbers of a record without a key."""

Append = Callable[[int, list[bytes]], Awaitable[AppendResult]]


class AppendAccumulator:
    """Batches of one node. `append` appends the records of a batch in an epoch, in the order of its calls."""

    def __init__(self, append: Append, *, linger_ms: int, max_bytes: int) -> None:
        self._append = append
        self._linger_s = linger_ms / 1000
        self._max_bytes = max_bytes
        self._epoch = -1
        self._size_bytes = 0
        self._collected: list[tuple[list[bytes], asyncio.Future[AppendResult]]] = []
        self._timer: asyncio.Handle | None = None
        self._appending: set[asyncio.Task[None]] = set()

    async def append(self, epoch: int, values: list[bytes]) -> AppendResult:
        """Append records; return the offset of the first, or the error of the batch that has them. Raises as the node's append."""
        size_bytes = sum(map(len, values)) + RECORD_OVERHEAD_MAX * len(values)
        if epoch != self._epoch or self._size_bytes + size_bytes > self._max_bytes:
            self.drain()
        loop = asyncio.get_running_loop()
        if not self._collected:
            self._epoch, self._size_bytes = epoch, BATCH_OVERHEAD
            self._timer = loop.call_later(self._linger_s, self.drain) if self._linger_s else loop.call_soon(self.drain)
        future: asyncio.Future[AppendResult] = loop.create_future()
        self._collected.append((values, future))
        self._size_bytes += size_bytes
        if self._size_bytes >= self._max_bytes:
            self.drain()
        return await future

    def drain(self) -> None:
        """Append what was collected."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        collected, self._collected = self._collected, []
        if collected:
            task = asyncio.create_task(self._append_batch(self._epoch, collected))
            self._appending.add(task)
            task.add_done_callback(self._appending.discard)

    async def _append_batch(
        self, epoch: int, collected: list[tuple[list[bytes], asyncio.Future[AppendResult]]]
    ) -> None:
        try:
            result = await self._append(epoch, [value for values, _ in collected for value in values])
        except Exception as error:  # noqa: BLE001 - each caller gets it
            for _, future in collected:
                if not future.done():
                    future.set_exception(error)
            return
        offset = result.base_offset
        for values, future in collected:
            is_appended = result.error is ErrorCode.NONE
            if not future.done():
                future.set_result(AppendResult(result.error, offset) if is_appended else result)
            offset += len(values)


class CommitWaits:
    """Futures by offset: True once the record is committed, False when another leader or epoch makes that uncertain."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, asyncio.Future[bool]]] = []
        self._numbers = count()

    def add(self, offset: int) -> asyncio.Future[bool]:
        """Return a future of the commit of the record at an offset."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (offset, next(self._numbers), future))
        return future

    def committed(self, high_watermark: int) -> None:
        """Complete the waits for offsets before the high watermark."""
        while self._waiting and self._waiting[0][0] < high_watermark:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(True)

    def abandon(self) -> None:
        """Complete all waits: whether their records are committed is not known."""
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_result(False)
