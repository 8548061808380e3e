"""Variable-length integers, as in Kafka's ByteUtils."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire.failures import CodecError
from kafka_wire.varints import MAX_VARLONG_BYTES, read_uvarint, read_varint, write_uvarint, write_varint
from tests.effort import examples


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (16383, "ff7f"), (0xFFFFFFFF, "ffffffff0f")],
)
def test_unsigned(value: int, encoded: str) -> None:
    """Seven bits a byte, the least significant first."""
    assert encoded == write_uvarint(value).hex()
    assert read_uvarint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-64, "7f"),
        (64, "8001"),
        (2147483647, "feffffff0f"),
        (-2147483648, "ffffffff0f"),
    ],
)
def test_signed(value: int, encoded: str) -> None:
    """Zigzag: small negatives stay short."""
    assert encoded == write_varint(value).hex()
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@examples(200)
@given(st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=3))
def test_long(value: int, before: bytes) -> None:
    """64 bits take at most ten bytes; the returned position is that of the next value."""
    encoded = before + write_varint(value)

    assert read_varint(encoded + b"x", len(before), MAX_VARLONG_BYTES) == (value, len(encoded))


@pytest.mark.parametrize("encoded", ["ffffffffff", "ffffffff7f", "8080808080"])
def test_more_than_32_bits_are_rejected(encoded: str) -> None:
    """A sixth byte, or bits beyond the thirty-second, which Java drops silently."""
    with pytest.raises(CodecError):
        read_uvarint(bytes.fromhex(encoded + "00"), 0)


def test_a_truncated_varint_raises_index_error() -> None:
    """Callers convert IndexError into their own errors."""
    with pytest.raises(IndexError):
        read_uvarint(b"\xff\xff", 0)
