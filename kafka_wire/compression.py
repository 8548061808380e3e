"""Compression of record batches: none and gzip.

snappy, lz4 and zstd are not supported: batches with them can be forwarded, and reading their records raises UnsupportedCompression.
"""

import zlib
from enum import IntEnum

from kafka_wire.failures import WireError

MAX_UNPACKED_BYTES = 100 * 1024 * 1024
"""As large as a frame (frames.MAX_FRAME_BYTES): records that decompress to more are a decompression bomb or a mistake."""

_GZIP = zlib.MAX_WBITS | 16
"""zlib's code for gzip header and trailer with the largest window."""


class Compression(IntEnum):
    """Compression codec of a batch: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class UnsupportedCompression(WireError):  # noqa: N818 -- Kafka's name: UNSUPPORTED_COMPRESSION_TYPE
    """The records are compressed by a codec that is not supported."""

    def __init__(self, compression: int) -> None:
        known = {one.value: one.name.lower() for one in Compression}
        name = known.get(compression, f"number {compression}")
        super().__init__(f"The records are compressed with {name}; only gzip and none are supported.")
        self.compression = compression


def pack(compression: Compression, records: bytes) -> bytes:
    """Compress encoded records; raises UnsupportedCompression."""
    if compression is Compression.NONE:
        return records
    if compression is not Compression.GZIP:
        raise UnsupportedCompression(compression)
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(records) + packer.flush()


def unpack(compression: int, packed: bytes, max_unpacked_bytes: int = MAX_UNPACKED_BYTES) -> bytes:
    """Decompress records; raises UnsupportedCompression, and WireError for invalid gzip or too many decompressed bytes."""
    if compression == Compression.NONE:
        return packed
    if compression != Compression.GZIP:
        raise UnsupportedCompression(compression)
    unpacker = zlib.decompressobj(wbits=_GZIP)
    try:
        records = unpacker.decompress(packed, max_unpacked_bytes)
    except zlib.error as error:
        raise WireError(f"The records are marked as gzip, but are not valid gzip: {error}") from None
    if unpacker.unconsumed_tail:
        raise WireError(f"The records decompress to more than {max_unpacked_bytes} bytes.")
    if not unpacker.eof:
        raise WireError("The gzip data of the records is truncated.")
    return records
