"""Frame sizes: every message on a Kafka connection follows its size, a big-endian int32.

The limits are checked on the four bytes of the size, before any of the message is read and before memory is allocated for it.
"""

import struct

from kafka_wire.failures import WireError

MAX_FRAME_BYTES = 100 * 1024 * 1024
"""Kafka's default (socket.request.max.bytes): a peer with default settings sends no larger frame."""

MIN_FRAME_BYTES = 4
"""The smallest message is a response of version 0 with an empty body: its correlation id."""

SIZE_BYTES = 4
_SIZE = struct.Struct(">i")


class MalformedFrame(WireError):  # noqa: N818 -- names the condition, as Kafka's InvalidReceiveException
    """The size of a message is invalid. The connection must be closed: its stream has lost the frame boundaries."""


class FrameTooLarge(MalformedFrame):
    """The size of a message exceeds the limit. The connection must be closed."""


def frame_size(data: bytes | bytearray | memoryview, max_frame_bytes: int = MAX_FRAME_BYTES, position: int = 0) -> int:
    """Return the size in bytes that the four bytes at `position` announce.

    Raises FrameTooLarge over the limit, MalformedFrame for a size that no message has. A peer that sends another protocol
    (TLS, HTTP) to a Kafka port fails here: its first bytes decode to a huge or negative size.
    """
    (size,) = _SIZE.unpack_from(data, position)
    if size < MIN_FRAME_BYTES:
        raise MalformedFrame(
            f"A frame announces {size} bytes, the smallest message has {MIN_FRAME_BYTES}. Check that the peer uses Kafka's protocol."
        )
    if size > max_frame_bytes:
        raise FrameTooLarge(
            f"A frame announces {size} bytes, the limit is {max_frame_bytes}. Check that the peer uses Kafka's protocol without TLS."
        )
    return int(size)
