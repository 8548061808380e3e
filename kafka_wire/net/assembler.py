"""Frame assembly from a stream of bytes that arrives in pieces of any size.

Sans-I/O: the transport receives into `get_buffer`, `received` takes note of the bytes, `pop` returns whole frames one at a time, so that the
reader limits how many it handles, and `keep` saves the rest of the shared buffer.

    small frame    scratch of the loop ──one copy──► bytes
    large frame    its first bytes: scratch ──copy──► a reused buffer, which receives the rest directly ──► a view, without a copy

Memory is only allocated for bytes that have arrived, never for the size that a peer announces (unlike Kafka's NetworkReceive; protocol
notes, Z102): a new buffer has at most twice the size of what has arrived.
"""

import struct
from collections.abc import Callable

from kafka_wire.frames import SIZE_BYTES, FrameTooLarge, frame_size
from kafka_wire.net.peer import Frame
from kafka_wire.net.receive_buffers import ReceiveBuffers, grown

LARGE_FRAME_BYTES = 64 * 1024
"""A larger frame gets a buffer of its own. One that has arrived as a whole is copied nevertheless."""

FIRST_LARGE_BYTES = 16 * 1024
"""Bytes of a large frame that must have arrived before it gets a buffer, so that a peer that only announces frames gets none."""

_REQUEST_PREFIX = struct.Struct(">hh")

RequestLimit = Callable[[int, int], int]
"""Returns the largest frame, in bytes, of an API key and version."""


class FrameAssembler:
    """Splits a stream into frames by their 4-byte big-endian size, which is removed.

    `max_frame_bytes` limits a frame without its size field. `request_limit` limits the frame of a request by its API, as soon as size,
    key and version have arrived. After a size over a limit the stream is unusable: its frame boundaries are unknown.
    """

    __slots__ = (
        "_buffers",
        "_end",
        "_filled",
        "_kept",
        "_large",
        "_max_frame_bytes",
        "_request_limit",
        "_size",
        "_source",
        "_start",
    )

    def __init__(
        self, max_frame_bytes: int, buffers: ReceiveBuffers, request_limit: RequestLimit | None = None
    ) -> None:
        self._buffers = buffers
        self._max_frame_bytes = max_frame_bytes
        self._request_limit = request_limit
        self._kept = bytearray()
        """Bytes that were not popped, from earlier calls of `received`."""
        self._source: memoryview | bytearray = self._kept
        """The scratch buffer between `received` and `keep`, otherwise `_kept`."""
        self._start = self._end = 0
        """Positions in `_source` of the bytes that were not popped."""
        self._large: bytearray | None = None
        """Buffer of a large frame that is not popped yet; `_kept` is empty until it is complete."""
        self._filled = 0
        """Bytes of the large frame that have arrived."""
        self._size = 0
        """Size of the large frame."""

    def allow(self, max_frame_bytes: int) -> None:
        """Change the limit of the frames that were not popped yet."""
        self._max_frame_bytes = max_frame_bytes

    @property
    def buffered(self) -> int:
        """Bytes that have arrived and were not popped yet, size fields included."""
        large = 0 if self._large is None else SIZE_BYTES + self._filled
        return large + self._end - self._start

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next bytes. Its content is lost with the next call for another assembler, unless `keep` is called."""
        large = self._large
        if large is None or self._filled == self._size:
            return self._buffers.scratch
        if self._filled == len(large):
            self._large = large = grown(large, min(self._size, 2 * self._filled))
        return memoryview(large)[self._filled : min(self._size, len(large))]

    def received(self, count: int) -> None:
        """Take note of the `count` bytes that were written to the buffer returned last."""
        if self._large is not None and self._filled < self._size:
            self._filled += count
        elif self._start == self._end:
            self._source, self._start, self._end = self._buffers.scratch, 0, count
        else:
            self.keep()
            self._kept += self._buffers.scratch[:count]
            self._end = len(self._kept)

    def keep(self) -> None:
        """Save what was not popped, and release the scratch buffer."""
        if self._source is not self._kept:
            self._kept[:] = self._source[self._start : self._end]
            self._source = self._kept
        elif self._start:
            del self._kept[: self._start]
        self._start, self._end = 0, len(self._kept)

    def pop(self) -> Frame | None:
        """Return the next whole frame without its size, or None if it is incomplete.

        Raises MalformedFrame, or its subclass FrameTooLarge, as soon as an invalid size has arrived.
        """
        if self._large is not None:
            return self._pop_large()
        body = self._start + SIZE_BYTES
        if self._end < body:
            return None
        size = frame_size(self._source, self._max_frame_bytes, self._start)
        if not self._check_request(body, size):
            return None
        end = body + size
        if self._end < end:
            if size > LARGE_FRAME_BYTES and self._end - body >= FIRST_LARGE_BYTES:
                self._begin_large(body, size)
            return None
        with memoryview(self._source) as view:  # one copy; a slice of the bytearray itself would make two
            frame = bytes(view[body:end])
        self._start = end
        return frame

    def close(self) -> None:
        """Return the buffer of an incomplete frame."""
        if self._large is not None:
            self._buffers.give(self._large)
            self._large = None

    def _check_request(self, body: int, size: int) -> bool:
        """Check a frame against the limit of its API; False if its key and version have not arrived."""
        if self._request_limit is None:
            return True
        if self._end < body + _REQUEST_PREFIX.size:
            return False
        key, version = _REQUEST_PREFIX.unpack_from(self._source, body)
        limit = self._request_limit(key, version)
        if size > limit:
            raise FrameTooLarge(
                f"A request of API key {key}, version {version}, announces {size} bytes, the limit is {limit}."
            )
        return True

    def _begin_large(self, body: int, size: int) -> None:
        """Move the first bytes of a large frame, which are the last that have arrived, to a buffer of its own."""
        self._filled, self._size = self._end - body, size
        self._large = self._buffers.take(min(size, 2 * self._filled))
        with memoryview(self._source) as view:
            self._large[: self._filled] = view[body : self._end]
        self._start = self._end
        self.keep()

    def _pop_large(self) -> memoryview | None:
        large = self._large
        if large is None or self._filled < self._size:
            return None
        self._large = None
        return memoryview(large)[: self._size]
