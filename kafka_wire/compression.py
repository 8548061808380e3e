"""Compression of record batches: none and gzip, and a clear refusal of the others.

Left out: snappy, lz4 and zstd, which nothing here has to open; batches with them pass through unopened.
"""

import zlib
from enum import IntEnum

from kafka_wire.failures import WireError

# A batch that unpacks to more than a frame may carry is a bomb or a mistake (frames.MAX_FRAME_BYTES).
MAX_UNPACKED_BYTES = 100 * 1024 * 1024

# zlib's code for "gzip header and trailer, largest window".
_GZIP = zlib.MAX_WBITS | 16


class Compression(IntEnum):
    """The codec of a batch's records: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class UnsupportedCompression(WireError):  # noqa: N818 -- Kafka's name for it: UNSUPPORTED_COMPRESSION_TYPE
    """The records are packed in a way that this package cannot open."""

    def __init__(self, compression: int) -> None:
        known = {one.value: one.name.lower() for one in Compression}
        name = known.get(compression, f"number {compression}")
        super().__init__(f"The records are compressed with {name}; only gzip and none are opened here.")
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
    """Undo pack; raises UnsupportedCompression, and WireError for what is no gzip or too large once unpacked."""
    if compression == Compression.NONE:
        return packed
    if compression != Compression.GZIP:
        raise UnsupportedCompression(compression)
    unpacker = zlib.decompressobj(wbits=_GZIP)
    try:
        records = unpacker.decompress(packed, max_unpacked_bytes)
    except zlib.error as error:
        raise WireError(f"The records are marked as gzip and are not: {error}") from None
    if unpacker.unconsumed_tail:
        raise WireError(f"The records unpack to more than {max_unpacked_bytes} bytes.")
    if not unpacker.eof:
        raise WireError("The gzip of the records is cut off.")
    return records
