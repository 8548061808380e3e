"""Record batches: round trips, and the errors for invalid ones."""

import struct
import zlib
from typing import Any

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import records as wire
from kafka_wire.compression import Compression, UnsupportedCompression
from kafka_wire.failures import WireError
from kafka_wire.records import ControlType, CorruptBatch, Record
from tests.effort import examples
from tests.kafka_wire.batches import PRODUCERS, records

ONE = (Record(7, 1_700_000_000_000, b"key", b"value", (("trace", b"1"),)),)

GOLDEN = bytes.fromhex(
    "0000000000000007"  # base offset
    "00000048"  # length of the rest
    "ffffffff02"  # no leader epoch, format 2
    "fe4e12c0"  # CRC-32C
    "0000"  # attributes
    "00000000"  # last offset delta
    "0000018bcfe568000000018bcfe56800"  # base and highest timestamp
    "ffffffffffffffffffffffffffff"  # no producer id, epoch, sequence
    "00000001"  # records
    "2c000000"  # one of 22 bytes, no attributes, no deltas
    "066b65790a76616c7565"  # key, value
    "020a747261636502"  # one header
    "31"
)


def test_a_batch_has_exactly_these_bytes() -> None:
    """The layout of DefaultRecordBatch; test_records_java.py compares batches with Kafka."""
    assert wire.encode_batch(ONE) == GOLDEN


@examples(60)
@given(batches=st.lists(st.tuples(records(), PRODUCERS | st.just({})), max_size=3), gzip=st.booleans())
def test_batches_are_decoded_in_order(batches: list[tuple[tuple[Record, ...], dict[str, Any]]], gzip: bool) -> None:
    """Consecutive batches, as Fetch returns them, with all header fields."""
    compression = Compression.GZIP if gzip else Compression.NONE
    encoded = [
        wire.encode_batch(batch_records, compression=compression, **producer) for batch_records, producer in batches
    ]
    read = list(wire.decode_batches(b"".join(encoded)))

    assert [batch_records for batch_records, _ in batches] == [batch.records for batch in read]
    assert [len(batch_bytes) for batch_bytes in encoded] == [batch.header.size_bytes for batch in read]
    assert [batch_records[-1].offset for batch_records, _ in batches] == [batch.header.last_offset for batch in read]
    for (_, producer), batch in zip(batches, read, strict=True):
        for name, value in producer.items():
            assert value == getattr(batch.header, name)


def test_a_truncated_last_batch_is_ignored() -> None:
    """Fetch truncates at its maximum of bytes (KIP-74)."""
    whole = wire.encode_batch(ONE)

    for cut in range(len(whole)):
        assert len(list(wire.decode_batches(whole + whole[:cut]))) == 1


def test_a_wrong_checksum_is_rejected() -> None:
    """CORRUPT_MESSAGE: one flipped bit in any byte that the checksum covers."""
    whole = wire.encode_batch(ONE)

    for position in range(21, len(whole)):
        broken = bytearray(whole)
        broken[position] ^= 1
        with pytest.raises(CorruptBatch, match="checksum"):
            list(wire.decode_batches(bytes(broken)))


def test_another_format_is_rejected() -> None:
    """Formats 0 and 1 are older than all supported brokers."""
    broken = bytearray(wire.encode_batch(ONE))
    broken[16] = 1

    with pytest.raises(CorruptBatch, match="format 1"):
        list(wire.decode_batches(bytes(broken)))


def test_a_length_shorter_than_a_header_is_rejected() -> None:
    """Otherwise the position would not advance, and decoding would never end."""
    broken = bytearray(wire.encode_batch(ONE))
    broken[8:12] = struct.pack(">i", -12)

    with pytest.raises(CorruptBatch, match="announces 0 bytes"):
        list(wire.decode_batches(bytes(broken)))


@pytest.mark.parametrize("compression", [Compression.SNAPPY, Compression.LZ4, Compression.ZSTD, 7])
def test_an_unsupported_compression_is_rejected_by_name(compression: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the optional package. The header is still readable, which is enough for a relay or a log."""
    monkeypatch.setattr("kafka_wire.compression._library", lambda: None)
    broken = with_checksum(wire.encode_batch(ONE), attributes=compression)

    with pytest.raises(UnsupportedCompression) as refusal:
        list(wire.decode_batches(broken))
    assert compression == refusal.value.compression
    assert [header.compression for _, header in wire.batch_headers(broken)] == [compression]


def test_too_many_decompressed_bytes_are_rejected() -> None:
    """A kilobyte of gzip can hold a megabyte of zeros."""
    bomb = wire.encode_batch((Record(0, 0, None, bytes(1_000_000)),), compression=Compression.GZIP)
    assert len(bomb) < 2000

    with pytest.raises(WireError, match="more than 1000 bytes"):
        list(wire.decode_batches(bomb, max_unpacked_bytes=1000))


@examples(300)
@given(st.data())
def test_hostile_bytes_only_raise_wire_errors(data: st.DataObject) -> None:
    """With a changed byte and a correct checksum, as from a hostile producer."""
    broken = bytearray(
        wire.encode_batch(data.draw(records()), compression=data.draw(st.sampled_from([0, 1]).map(Compression)))
    )
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))

    try:
        list(wire.decode_batches(with_checksum(bytes(broken))))
    except WireError:
        return


def test_the_type_of_a_control_record() -> None:
    """Its key: int16 version, int16 type (LeaderChange is 2)."""
    batch = wire.encode_batch((Record(3, 4, b"\0\0\0\2", b""),), is_control=True)
    (read,) = wire.decode_batches(batch)

    assert read.records[0].key == b"\0\0\0\2"
    assert read.header.is_control
    assert wire.control_type(read.records[0]) is ControlType.LEADER_CHANGE
    assert wire.control_type(Record(0, 0, b"\0\0\0\x63", None)) is None
    with pytest.raises(CorruptBatch):
        wire.control_type(Record(0, 0, None, None))


def test_an_empty_batch_is_rejected() -> None:
    """Without a record there is no base offset."""
    with pytest.raises(WireError, match="at least one record"):
        wire.encode_batch(())


def test_gzip_records_are_standard_gzip() -> None:
    """The records after the 61 bytes of the header are one gzip member."""
    packed = wire.encode_batch(ONE, compression=Compression.GZIP)

    assert wire.encode_batch(ONE)[wire.HEADER_BYTES :] == zlib.decompress(packed[wire.HEADER_BYTES :], wbits=31)


def with_checksum(batch: bytes, *, attributes: int | None = None) -> bytes:
    """Return a batch with a correct checksum and, if given, other attributes."""
    changed = bytearray(batch)
    if attributes is not None:
        changed[21:23] = struct.pack(">h", attributes)
    changed[17:21] = struct.pack(">I", google_crc32c.value(bytes(changed[21:])))
    return bytes(changed)
