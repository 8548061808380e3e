"""Check of a snapshot's bytes in order, in parts of any size: whole batches with right checksums, from a header to a footer.

The checksum of a batch is computed part by part, so that nothing is joined or read twice. Source: Kafka's Snapshots and RecordsSnapshotReader.
"""

import struct

import google_crc32c

from kafka_log.format.batches import CHECKED_FROM, CONTROL_BATCH, checksum_message, header_error
from kafka_log.format.control_records import control_type_of
from kafka_wire.records import HEADER_BYTES, MAGIC, ControlType, CorruptBatch

MAX_CONTROL_BATCH_BYTES = 8 * 1024 * 1024
"""A batch of control records is kept until its end; it is at most as large as any batch of the quorum."""

_HEADER = struct.Struct(">qiibIhi")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta."""
_PREFIX_BYTES = 12


class SnapshotCheck:
    """State of a check: `feed` takes the parts, then `error` is why the snapshot is not whole."""

    def __init__(self) -> None:
        self.size_bytes = 0
        """Bytes that were fed."""
        self.first_batch = b""
        """The first batch, once it is complete: it has the header, and the voters."""
        self._bad: str | None = None
        self._position = 0
        """Where the current batch begins."""
        self._next_offset = 0
        self._header = bytearray()
        """Header of the current batch, which may be incomplete."""
        self._missing_bytes = 0
        """Bytes of the current batch that follow what was fed, once its header is complete."""
        self._checksum = 0
        self._kept: bytearray | None = None
        """Content of the current batch if it is one of control records."""
        self._ends_with_footer = False

    def feed(self, data: bytes) -> None:
        """Check the next part. After an error, parts are only counted."""
        self.size_bytes += len(data)
        at = 0
        while self._bad is None and at < len(data):
            if len(self._header) < HEADER_BYTES:
                part = data[at : at + HEADER_BYTES - len(self._header)]
                self._header += part
                at += len(part)
                if len(self._header) == HEADER_BYTES:
                    self._begin_batch()
            else:
                part = data[at : at + self._missing_bytes]
                self._checksum = google_crc32c.extend(self._checksum, part)
                if self._kept is not None:
                    self._kept += part
                self._missing_bytes -= len(part)
                at += len(part)
            if len(self._header) == HEADER_BYTES and not self._missing_bytes and self._bad is None:
                self._end_batch()

    def error(self) -> str | None:
        """Return what is wrong with a snapshot that ends here, as the rest of a sentence about it; None if it is whole."""
        if self._bad is not None:
            return f"is invalid at position {self._position}: {self._bad}"
        if self._header:
            fed_bytes = self.size_bytes - self._position
            needed_bytes = max(HEADER_BYTES, fed_bytes + self._missing_bytes)
            return (
                f"is invalid at position {self._position}: the last batch is incomplete: {fed_bytes} of at least "
                f"{needed_bytes} bytes"
            )
        return None if self._ends_with_footer else "is cut short: it does not end with a footer"

    def _begin_batch(self) -> None:
        base_offset, length, _, magic, _, attributes, delta = _HEADER.unpack_from(self._header)
        if length < HEADER_BYTES - _PREFIX_BYTES or magic != MAGIC or delta < 0 or base_offset < 0:
            self._bad = header_error(base_offset, length, magic, delta)
        elif base_offset != self._next_offset:
            self._bad = f"base offset is {base_offset}, expected is {self._next_offset}"
        elif attributes & CONTROL_BATCH and length > MAX_CONTROL_BATCH_BYTES:
            self._bad = f"a batch of control records has {_PREFIX_BYTES + length} bytes"
        else:
            self._missing_bytes = _PREFIX_BYTES + length - HEADER_BYTES
            self._checksum = google_crc32c.value(bytes(self._header[CHECKED_FROM:]))
            self._kept = bytearray() if attributes & CONTROL_BATCH else None

    def _end_batch(self) -> None:
        base_offset, _, _, _, checksum, _, delta = _HEADER.unpack_from(self._header)
        if checksum != self._checksum:
            self._bad = checksum_message(checksum, self._checksum)
            return
        batch = b"" if self._kept is None else bytes(self._header + self._kept)
        try:
            kind = control_type_of(batch) if batch else None
        except CorruptBatch as error:
            self._bad = str(error)
            return
        if self._position == 0:
            if kind is not ControlType.SNAPSHOT_HEADER:
                self._bad = "it does not begin with a header"
                return
            self.first_batch = batch
        self._ends_with_footer = kind is ControlType.SNAPSHOT_FOOTER
        self._next_offset = base_offset + delta + 1
        self._position += _PREFIX_BYTES + _HEADER.unpack_from(self._header)[1]
        self._header.clear()
