"""Reused buffers for large frames and for chunks of files, shared by the connections of an event loop.

A fresh buffer for each frame costs a page fault for every 4 KiB and a copy; a reused one is received into directly (ADR 51). A buffer that
something still views is never reused: a handler may keep a view of its request for as long as it likes.
"""

import asyncio
import weakref

SCRATCH_BYTES = 256 * 1024
"""Size of the buffer that all connections of a loop receive into: 16 requests of 16 KiB, whose responses are written together. More of the
beginning of a large frame would have to be copied into its own buffer."""

KEPT_BYTES = 32 * 1024 * 1024
"""Limit of the buffers that are kept for reuse: 5 requests in flight of six producers with batches of 1 MiB."""

KEPT_BUFFER_BYTES = 16 * 1024 * 1024
"""A larger buffer is not kept: it holds an exceptional frame. A follower's fetch response has 10 MiB (replica.fetch.response.max.bytes)."""

MAX_KEPT = 256
"""Count of kept buffers: the time to find one that nothing views is limited."""


class ReceiveBuffers:
    """Buffers of one event loop. `scratch` must be emptied before another connection receives."""

    def __init__(self) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._kept: list[bytearray] = []
        self._kept_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """Bytes of the buffers that are kept for reuse, including those that are still viewed."""
        return self._kept_bytes

    def take(self, least_bytes: int) -> bytearray:
        """Return a buffer of at least `least_bytes` that nothing views; the one that was used last, if there is one."""
        for place in range(len(self._kept) - 1, -1, -1):
            buffer = self._kept[place]
            if _is_viewed(buffer):
                continue
            del self._kept[place]
            self._kept_bytes -= len(buffer)
            return grown(buffer, least_bytes)
        return bytearray(least_bytes)

    def give(self, buffer: bytearray) -> None:
        """Keep a buffer for reuse, once nothing views it."""
        if len(buffer) <= KEPT_BUFFER_BYTES:
            self._kept.append(buffer)
            self._kept_bytes += len(buffer)
            while self._kept_bytes > KEPT_BYTES or len(self._kept) > MAX_KEPT:
                self._kept_bytes -= len(self._kept.pop(0))

    def give_back(self, view: memoryview) -> None:
        """Keep the buffer of a view for reuse, once nothing views it."""
        buffer = view.obj
        assert isinstance(buffer, bytearray)
        self.give(buffer)

    def copied(self, view: memoryview) -> bytes:
        """Return the bytes of a view, and keep its buffer for reuse."""
        self.give_back(view)
        return bytes(view)


def grown(buffer: bytearray, least_bytes: int) -> bytearray:
    """Return the buffer with at least `least_bytes`, or a copy of it if the transport still views it."""
    if len(buffer) >= least_bytes:
        return buffer
    if _is_viewed(buffer):
        larger = bytearray(least_bytes)
        larger[: len(buffer)] = buffer
        return larger
    buffer.extend(bytes(least_bytes - len(buffer)))
    return buffer


_OF_LOOPS: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, ReceiveBuffers]" = weakref.WeakKeyDictionary()


def buffers_of_loop() -> ReceiveBuffers:
    """Return the buffers of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _OF_LOOPS.get(loop)
    if found is None:
        found = _OF_LOOPS[loop] = ReceiveBuffers()
    return found


def _is_viewed(buffer: bytearray) -> bool:
    """Return whether a memoryview of the buffer exists: Python then refuses to change its size."""
    try:
        last = buffer.pop()
    except BufferError:
        return True
    buffer.append(last)
    return False
