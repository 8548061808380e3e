"""Recognition of message formats 0 and 1, which brokers wrote before Kafka 0.11 or with an old log.message.format.version.

    offset int64 | size int32 | CRC-32 uint32 of what follows | format int8 | ...

Such messages are not read here. They are recognized, so that a log that has them is not taken for a damaged one. Source: Kafka's LegacyRecord.
"""

import struct
import zlib

OLD_FORMATS = (0, 1)

_MESSAGE = struct.Struct(">qiIb")
HEAD_BYTES = _MESSAGE.size
_CHECKED_FROM = 16
_LENGTH_FROM = 12
_MIN_BYTES = 14
"""Least size of a message: checksum, format, attributes, and the lengths of key and value."""


def announced_bytes(head: bytes) -> int | None:
    """Return the size of the message of format 0 or 1 that `head` begins, None if it begins none."""
    if len(head) < HEAD_BYTES:
        return None
    _, size, _, message_format = _MESSAGE.unpack_from(head)
    return _LENGTH_FROM + size if message_format in OLD_FORMATS and size >= _MIN_BYTES else None


def old_format(message: bytes) -> int | None:
    """Return the format of a whole message of format 0 or 1 with a right checksum, None for anything else."""
    if announced_bytes(message) != len(message):
        return None
    _, _, crc, message_format = _MESSAGE.unpack_from(message)
    return int(message_format) if zlib.crc32(message[_CHECKED_FROM:]) == crc else None
