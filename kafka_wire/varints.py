"""Variable-length integers as in Kafka's ByteUtils (KIP-482, record format v2).

Unsigned: seven bits a byte, least significant first, at most five bytes for 32 bits and ten for 64.
Signed ("zigzag"): 0, -1, 1, -2 … as unsigned 0, 1, 2, 3 …, so that small negatives stay short.
"""

from kafka_wire.failures import CodecError

MAX_VARINT_BYTES = 5
"""A 32-bit value never needs more bytes; a longer varint is malformed."""
MAX_VARLONG_BYTES = 10

Buffer = bytes | bytearray | memoryview

ONE_BYTE = tuple(bytes([value]) for value in range(0x80))


def write_uvarint(value: int) -> bytes:
    """Encode an unsigned integer.

    >>> write_uvarint(300).hex()
    'ac02'
    """
    if value < 0x80:
        return ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: Buffer, position: int, max_bytes: int = MAX_VARINT_BYTES) -> tuple[int, int]:
    """Decode an unsigned integer; returns it and the position after it.

    Raises IndexError at the end of the bytes, CodecError if the number does not end within `max_bytes`.
    """
    value = data[position]
    if value < 0x80:
        return value, position + 1
    value &= 0x7F
    for index in range(1, max_bytes):
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >> (7 * max_bytes // 8 * 8):
                raise CodecError("a varint is too large for its type")
            return value, position + index + 1
    raise CodecError(f"a varint is longer than {max_bytes} bytes")


def write_varint(value: int) -> bytes:
    """Encode a signed integer of up to 64 bits in zigzag form.

    >>> write_varint(-1).hex(), write_varint(64).hex()
    ('01', '8001')
    """
    return write_uvarint((value << 1) ^ (value >> 63))


def read_varint(data: Buffer, position: int, max_bytes: int = MAX_VARINT_BYTES) -> tuple[int, int]:
    """Decode a signed integer in zigzag form; returns it and the position after it. Raises as read_uvarint."""
    value, position = read_uvarint(data, position, max_bytes)
    return (value >> 1) ^ -(value & 1), position
