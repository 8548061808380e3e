"""Frames: every message on a Kafka connection follows its size, a big-endian int32.

Pure functions over bytes; sockets are in `net`. Limits are checked on the four bytes of the size, before anything is read
or set aside for what they promise.
"""

import struct
from collections.abc import Iterator

from kafka_wire.failures import WireError

# Kafka's own default (socket.request.max.bytes): no stock peer sends more.
MAX_FRAME_BYTES = 100 * 1024 * 1024

# The smallest message is a response of version 0 with an empty body: its correlation id.
MIN_FRAME_BYTES = 4

SIZE_BYTES = 4
_SIZE = struct.Struct(">i")


class MalformedFrame(WireError):  # noqa: N818 -- named for what was found, as Kafka's InvalidReceiveException
    """The size in front of a message makes no sense: close the connection, nothing after it can be trusted."""


class FrameTooLarge(MalformedFrame):
    """The size in front of a message is over the limit: close the connection."""


def frame_size(prefix: bytes | bytearray | memoryview, max_frame_bytes: int = MAX_FRAME_BYTES) -> int:
    """Return the size, in bytes, that the first four bytes of `prefix` announce.

    Raises FrameTooLarge over the limit, MalformedFrame for a size that no message has. What speaks another protocol
    (TLS, HTTP) to a Kafka port ends here: its first bytes read as a huge or negative size.
    """
    (size,) = _SIZE.unpack_from(prefix)
    if size < MIN_FRAME_BYTES:
        raise MalformedFrame(
            f"A frame announces {size} bytes; the smallest message has {MIN_FRAME_BYTES}. Is the peer speaking Kafka's protocol?"
        )
    if size > max_frame_bytes:
        raise FrameTooLarge(
            f"A frame announces {size} bytes, the limit is {max_frame_bytes}. Is the peer speaking Kafka's protocol, without TLS?"
        )
    return int(size)


def with_size(message: bytes, max_frame_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """Return a message with its size in front; raises FrameTooLarge for one that no peer would take."""
    if len(message) > max_frame_bytes:
        raise FrameTooLarge(
            f"A message of {len(message)} bytes is over the limit of {max_frame_bytes}: split the request."
        )
    return _SIZE.pack(len(message)) + message


class FrameSplitter:
    """Cuts a stream that arrives in arbitrary pieces into whole messages, without their sizes.

    Holds at most one unfinished frame (`max_frame_bytes`) beside the piece just fed.
    """

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._held = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield each message that this piece completes; raises as frame_size. Exhaust it before feeding more."""
        self._held += piece
        start = 0
        try:
            while len(self._held) - start >= SIZE_BYTES:
                end = start + SIZE_BYTES + frame_size(self._held[start : start + SIZE_BYTES], self._max_frame_bytes)
                if end > len(self._held):
                    break
                message = bytes(self._held[start + SIZE_BYTES : end])
                start = end
                yield message
        finally:
            del self._held[:start]

    @property
    def held_bytes(self) -> int:
        """How much of an unfinished frame is held; not zero at a stream's end means that it was cut off."""
        return len(self._held)
