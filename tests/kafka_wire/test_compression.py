"""Codecs of record batches, and hostile compressed bytes."""

from __future__ import annotations

import struct
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire.compression import Compression, TooManyUnpackedBytes, UnsupportedCompression, is_supported, pack, unpack
from kafka_wire.failures import WireError

CODECS = st.sampled_from(list(Compression))
COMPRESSED = list(Compression)[1:]

NOISE = bytes(struct.pack(">I", number * 2_654_435_761 % 2**32)[1] for number in range(100_000))
"""Bytes that no codec makes smaller: lz4 stores such blocks as they are."""


@given(CODECS, st.binary(max_size=300), st.integers(0, 2_000))
def test_records_are_the_same_after_compression(compression: Compression, records: bytes, times: int) -> None:
    """Of several blocks, too: those of snappy have 32 KiB, those of lz4 64 KiB."""
    assert unpack(compression, pack(compression, records * times)) == records * times


@pytest.mark.parametrize("compression", COMPRESSED)
def test_bytes_that_cannot_be_compressed_are_kept(compression: Compression) -> None:
    """They may take a little more room."""
    packed = pack(compression, NOISE)

    assert unpack(compression, packed) == NOISE
    assert len(packed) < len(NOISE) + 200


@pytest.mark.parametrize("compression", COMPRESSED)
def test_a_decompression_bomb_is_refused_at_its_limit(compression: Compression) -> None:
    """A few kilobytes can hold megabytes of zeros. Exactly the limit is allowed."""
    bomb = pack(compression, bytes(3_000_000))

    assert len(bomb) < 150_000
    assert len(unpack(compression, bomb, 3_000_000)) == 3_000_000
    for limit in (2_999_999, 1_000, 0):
        with pytest.raises(TooManyUnpackedBytes, match=f"more than {limit} bytes"):
            unpack(compression, bomb, limit)


def test_a_block_of_snappy_without_the_header_of_snappy_java_is_read() -> None:
    """As librdkafka writes it; and no more than the limit."""
    packed = bytes(cramjam.snappy.compress_raw(bytes(100_000)))

    assert unpack(Compression.SNAPPY, packed) == bytes(100_000)
    with pytest.raises(TooManyUnpackedBytes):
        unpack(Compression.SNAPPY, packed, 99_999)


@given(st.sampled_from(COMPRESSED), st.binary(max_size=200), st.data())
def test_hostile_bytes_only_raise_wire_errors(compression: Compression, records: bytes, data: st.DataObject) -> None:
    """Cut, changed and random bytes."""
    packed = bytearray(pack(compression, records))
    for _ in range(data.draw(st.integers(0, 2))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    for hostile in (bytes(packed[: data.draw(st.integers(0, len(packed)))]), records):
        try:
            assert len(unpack(compression, hostile, 1_000)) <= 1_000
        except WireError:
            continue


def test_codecs_of_the_optional_package_are_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gzip is part of Python."""
    monkeypatch.setattr("kafka_wire.compression._library", lambda: None)

    assert [is_supported(codec) for codec in range(6)] == [True, True, False, False, False, False]
    for codec in COMPRESSED[1:]:
        with pytest.raises(UnsupportedCompression, match=f"with {codec.name.lower()}, which needs the Python package"):
            pack(codec, b"")
    assert zlib.decompress(pack(Compression.GZIP, b"records"), wbits=31) == b"records"


def test_an_unknown_codec_is_not_supported() -> None:
    """Attributes have room for seven."""
    assert not is_supported(7)
    with pytest.raises(UnsupportedCompression, match="with number 7, which is unknown"):
        unpack(7, b"")
