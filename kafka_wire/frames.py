"""Frames: every message on a Kafka connection follows its size, a big-endian int32.

The limits are checked on the four bytes of the size, before anything is read or set aside for what they promise. Left out:
streams and sockets (net).
"""

import struct

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
