"""Compression of record batches: gzip by Python itself; snappy, lz4 and zstd by the optional package `cramjam`.

    snappy    blocks of snappy-java, each with its length, behind a header of 16 bytes; librdkafka writes one block without them
    lz4       LZ4 frames with independent blocks of 64 KiB, as Kafka reads no others
    gzip, zstd    as their standards

Batches of a codec that is not installed can be forwarded and stored; reading their records raises UnsupportedCompression. Source: Kafka's
SnappyCompression (snappy-java), Lz4BlockOutputStream and Lz4BlockInputStream.
"""

import importlib
import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import cache
from types import ModuleType

from kafka_wire.failures import WireError

MAX_UNPACKED_BYTES = 100 * 1024 * 1024
"""As large as a frame (frames.MAX_FRAME_BYTES): records that decompress to more are a decompression bomb or a mistake."""

LIBRARY = "cramjam"
"""Package with snappy, lz4 and zstd (`pip install 'kafka-steward[compression]'`)."""

_GZIP = zlib.MAX_WBITS | 16
"""zlib's code for gzip header and trailer with the largest window."""

_SNAPPY_MAGIC = b"\x82SNAPPY\0"
_SNAPPY_HEADER = _SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
"""Version 1, readable by version 1 on."""
_SNAPPY_LENGTH = struct.Struct(">i")
_SNAPPY_BLOCK_BYTES = 32 * 1024
"""Block of snappy-java."""

_LZ4_HEADER = bytes.fromhex("04224d18604082")
"""Magic, independent blocks without checksums, of at most 64 KiB, and the checksum of these two bytes."""
_LZ4_LENGTH = struct.Struct("<I")
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 0x8000_0000
"""Flag of a block that is not compressed."""

_FIRST_GUESS = 4
"""Records usually decompress to at most this many times their size; the guess grows by this factor up to the limit."""
_LEAST_GUESS_BYTES = 64 * 1024
_NO_ROOM = "failed to write whole buffer"
"""Error of the library for output that is larger than its buffer."""


class Compression(IntEnum):
    """Compression codec of a batch: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class UnsupportedCompression(WireError):  # noqa: N818 -- Kafka's name: UNSUPPORTED_COMPRESSION_TYPE
    """The records are compressed by a codec that is unknown, or not installed."""

    def __init__(self, compression: int) -> None:
        known = {codec.value: codec.name.lower() for codec in Compression}
        if compression in known:
            reason = f"{known[compression]}, which needs the Python package {LIBRARY}"
        else:
            reason = f"number {compression}, which is unknown"
        super().__init__(f"The records are compressed with {reason}.")
        self.compression = compression


class TooManyUnpackedBytes(WireError):  # noqa: N818 -- names the condition
    """Records that decompress to more bytes than their reader allows."""

    def __init__(self, max_unpacked_bytes: int) -> None:
        super().__init__(f"The records decompress to more than {max_unpacked_bytes} bytes.")


def is_supported(compression: int) -> bool:
    """Return whether records of this codec can be read and written here."""
    return compression in {Compression.NONE, Compression.GZIP} or (
        compression in Compression.__members__.values() and _library() is not None
    )


def pack(compression: Compression, records: bytes) -> bytes:
    """Compress encoded records; raises UnsupportedCompression."""
    if compression is Compression.NONE:
        return records
    if compression is Compression.GZIP:
        packer = zlib.compressobj(wbits=_GZIP)
        return packer.compress(records) + packer.flush()
    library = _required(compression)
    if compression is Compression.SNAPPY:
        blocks = (bytes(library.snappy.compress_raw(block)) for block in _blocks(records, _SNAPPY_BLOCK_BYTES))
        return _SNAPPY_HEADER + b"".join(_SNAPPY_LENGTH.pack(len(block)) + block for block in blocks)
    if compression is Compression.LZ4:
        parts = (_lz4_block(library, block) for block in _blocks(records, _LZ4_BLOCK_BYTES))
        return _LZ4_HEADER + b"".join(parts) + _LZ4_LENGTH.pack(0)
    return bytes(library.zstd.compress(records))


def unpack(compression: int, packed: bytes, max_unpacked_bytes: int = MAX_UNPACKED_BYTES) -> bytes:
    """Decompress records.

    Raises UnsupportedCompression, TooManyUnpackedBytes, and another WireError for bytes that the codec cannot read. At most
    `max_unpacked_bytes` are ever written.
    """
    if compression == Compression.NONE:
        return packed
    if compression == Compression.GZIP:
        return _unpack_gzip(packed, max_unpacked_bytes)
    library = _required(compression)
    if compression == Compression.SNAPPY:
        return _unpack_snappy(library, packed, max_unpacked_bytes)
    codec = library.lz4 if compression == Compression.LZ4 else library.zstd
    return _unpack_into(codec.decompress_into, compression, packed, max_unpacked_bytes)


@cache
def _library() -> ModuleType | None:
    try:
        return importlib.import_module(LIBRARY)
    except ImportError:
        return None


def _required(compression: int) -> ModuleType:
    library = _library()
    if library is None or compression not in Compression.__members__.values():
        raise UnsupportedCompression(compression)
    return library


def _blocks(records: bytes, block_bytes: int) -> list[bytes]:
    return [records[start : start + block_bytes] for start in range(0, len(records), block_bytes)]


def _lz4_block(library: ModuleType, block: bytes) -> bytes:
    packed = bytes(library.lz4.compress_block(block, store_size=False))
    if len(packed) < len(block):
        return _LZ4_LENGTH.pack(len(packed)) + packed
    return _LZ4_LENGTH.pack(len(block) | _LZ4_STORED) + block


def _unpack_gzip(packed: bytes, max_unpacked_bytes: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=_GZIP)
    try:
        # One byte more than allowed shows that there are more; a limit of 0 would be none.
        records = unpacker.decompress(packed, max_unpacked_bytes + 1)
    except zlib.error as error:
        raise _invalid(Compression.GZIP, error) from None
    if len(records) > max_unpacked_bytes:
        raise TooManyUnpackedBytes(max_unpacked_bytes)
    if not unpacker.eof:
        raise WireError("The gzip data of the records is truncated.")
    return records


def _unpack_snappy(library: ModuleType, packed: bytes, max_unpacked_bytes: int) -> bytes:
    """Decompress the blocks of snappy-java, or one block without its header."""
    records = bytearray()
    for block in _snappy_blocks(packed):
        try:
            # The block announces its size, and the library checks that it has this size.
            if len(records) + library.snappy.decompress_raw_len(block) > max_unpacked_bytes:
                raise TooManyUnpackedBytes(max_unpacked_bytes)
            records += library.snappy.decompress_raw(block)
        except library.DecompressionError as error:
            raise _invalid(Compression.SNAPPY, error) from None
    return bytes(records)


def _snappy_blocks(packed: bytes) -> Iterator[bytes]:
    if not packed.startswith(_SNAPPY_MAGIC):
        yield packed
        return
    position = len(_SNAPPY_HEADER)
    while position < len(packed):
        end = position + _SNAPPY_LENGTH.size
        length = _SNAPPY_LENGTH.unpack_from(packed, position)[0] if end <= len(packed) else -1
        if not 0 <= length <= len(packed) - end:
            raise WireError("The snappy data of the records is truncated.")
        yield packed[end : end + length]
        position = end + length


def _unpack_into(
    decompress_into: Callable[[bytes, bytearray], int], compression: int, packed: bytes, max_unpacked_bytes: int
) -> bytes:
    """Decompress into a buffer that is never larger than the limit, and usually not much larger than the records."""
    size = min(max(len(packed) * _FIRST_GUESS, _LEAST_GUESS_BYTES), max_unpacked_bytes)
    while True:
        buffer = bytearray(size)
        try:
            return bytes(memoryview(buffer)[: decompress_into(packed, buffer)])
        except _required(compression).DecompressionError as error:
            if str(error) != _NO_ROOM:
                raise _invalid(compression, error) from None
        if size >= max_unpacked_bytes:
            raise TooManyUnpackedBytes(max_unpacked_bytes)
        size = min(size * _FIRST_GUESS, max_unpacked_bytes)


def _invalid(compression: int, error: Exception) -> WireError:
    name = Compression(compression).name.lower()
    return WireError(f"The records are marked as {name}, but are not valid {name}: {error}")
