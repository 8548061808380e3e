"""Frame assembly from a stream of bytes that arrives in pieces of any size.

Sans-I/O: `feed` takes bytes, `pop` returns whole frames one at a time, so that the reader limits how many it handles. Memory is
only allocated for bytes that have arrived, never for the size that a peer announces (unlike Kafka's NetworkReceive; protocol notes,
Z102).
"""

import io
import struct
from collections.abc import Callable

from kafka_wire.frames import SIZE_BYTES, FrameTooLarge, frame_size

LARGE_FRAME_BYTES = 256 * 1024
"""A larger frame is assembled in its own buffer and returned without a copy: a copy of 100 MiB blocks the event loop for 30 ms."""

_REQUEST_PREFIX = struct.Struct(">hh")

RequestLimit = Callable[[int, int], int]
"""Returns the largest frame, in bytes, of an API key and version."""


class FrameAssembler:
    """Splits a stream into frames by their 4-byte big-endian size, which is removed.

    `max_frame_bytes` limits a frame without its size field. `request_limit` limits the frame of a request by its API, as soon as size,
    key and version have arrived. After a size over a limit the stream is unusable: its frame boundaries are unknown.
    """

    __slots__ = ("_buffer", "_large", "_max_frame_bytes", "_missing", "_request_limit", "_start")

    def __init__(self, max_frame_bytes: int, request_limit: RequestLimit | None = None) -> None:
        self._buffer = bytearray()
        self._start = 0
        """Position of the first byte that was not popped."""
        self._max_frame_bytes = max_frame_bytes
        self._request_limit = request_limit
        self._large: io.BytesIO | None = None
        """An incomplete large frame; `_buffer` is empty until it is complete."""
        self._missing = 0
        """Bytes of the large frame that have not arrived."""

    def allow(self, max_frame_bytes: int) -> None:
        """Change the limit of the frames that were not popped yet."""
        self._max_frame_bytes = max_frame_bytes

    @property
    def buffered(self) -> int:
        """Bytes that have arrived and were not popped yet, size fields included."""
        large = 0 if self._large is None else SIZE_BYTES + self._large.tell()
        return large + len(self._buffer) - self._start

    def feed(self, data: bytes) -> None:
        """Add bytes that have arrived."""
        if self._missing:
            assert self._large is not None
            taken = min(self._missing, len(data))
            with memoryview(data) as view:
                self._large.write(view[:taken])
            self._missing -= taken
            data = data[taken:]
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def pop(self) -> bytes | None:
        """Return the next whole frame without its size, or None if it is incomplete.

        Raises MalformedFrame, or its subclass FrameTooLarge, as soon as an invalid size has arrived.
        """
        if self._large is not None:
            return self._pop_large()
        body = self._start + SIZE_BYTES
        if len(self._buffer) < body:
            return None
        size = frame_size(self._buffer[self._start : body], self._max_frame_bytes)
        if not self._check_request(body, size):
            return None
        end = body + size
        if len(self._buffer) < end:
            if size > LARGE_FRAME_BYTES:
                self._begin_large(body, end)
            return None
        with memoryview(self._buffer) as view:  # one copy; a slice of the bytearray itself would make two
            frame = bytes(view[body:end])
        if end == len(self._buffer):
            self._buffer.clear()
            self._start = 0
        else:
            self._start = end
        return frame

    def _check_request(self, body: int, size: int) -> bool:
        """Check a frame against the limit of its API; False if its key and version have not arrived."""
        if self._request_limit is None:
            return True
        if len(self._buffer) < body + _REQUEST_PREFIX.size:
            return False
        key, version = _REQUEST_PREFIX.unpack_from(self._buffer, body)
        limit = self._request_limit(key, version)
        if size > limit:
            raise FrameTooLarge(
                f"A request of API key {key}, version {version}, announces {size} bytes, the limit is {limit}."
            )
        return True

    def _begin_large(self, body: int, end: int) -> None:
        self._large = io.BytesIO()
        with memoryview(self._buffer) as view:
            self._large.write(view[body:])
        self._missing = end - len(self._buffer)
        self._buffer.clear()
        self._start = 0

    def _pop_large(self) -> bytes | None:
        assert self._large is not None
        if self._missing:
            return None
        frame = self._large.getvalue()  # CPython returns the buffer itself
        self._large = None
        return frame
