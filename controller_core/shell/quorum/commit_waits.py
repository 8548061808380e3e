"""Waits for the commit of records that this node has appended as the leader."""

import asyncio
import heapq
from itertools import count


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
