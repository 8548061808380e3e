"""Frames out of a stream of bytes that arrives in pieces of any size.

Sans-I/O: bytes go in by `feed`, whole frames come out by `pop`. What is held is only what has really arrived, never
a buffer of the size that a peer claims (seed 000: network threads must not be taken down by a peer's bytes).

frames.FrameSplitter gives all it has at once; here the reader takes frames one by one, as it has room for them.

Left out: what a frame holds.
"""

from kafka_wire.frames import SIZE_BYTES, frame_size


class FrameAssembler:
    """Splits a stream into frames by their 4-byte big-endian size, which is cut off.

    `max_frame_bytes` bounds a frame without its size field. A stream that broke a bound is broken for good: nothing
    behind the bad size can be told apart any more.
    """

    __slots__ = ("_buffer", "_max_frame_bytes", "_start")

    def __init__(self, max_frame_bytes: int) -> None:
        self._buffer = bytearray()
        self._start = 0  # what lies before it has been popped
        self._max_frame_bytes = max_frame_bytes

    def allow(self, max_frame_bytes: int) -> None:
        """Change the bound for the frames that were not popped yet."""
        self._max_frame_bytes = max_frame_bytes

    @property
    def buffered(self) -> int:
        """How many bytes have arrived and were not popped yet, size fields included."""
        return len(self._buffer) - self._start

    def feed(self, data: bytes) -> None:
        """Take what has arrived."""
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def pop(self) -> bytes | None:
        """Give the next whole frame without its size, or None when more has to arrive.

        Raises MalformedFrame, or its subclass FrameTooLarge, at a size out of bounds as soon as the size is here.
        """
        body = self._start + SIZE_BYTES
        if len(self._buffer) < body:
            return None
        end = body + frame_size(self._buffer[self._start : body], self._max_frame_bytes)
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:  # one copy; a slice of the bytearray itself would make two
            frame = bytes(view[body:end])
        if end == len(self._buffer):
            self._buffer.clear()
            self._start = 0
        else:
            self._start = end
        return frame
