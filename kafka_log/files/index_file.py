"""One index of a segment as a file.

Entries of the active segment are kept in memory and written without fsync: a crash only costs their rebuilding. A closed segment's are mapped
from the file, so that they take no memory of the process; each mapping holds a file descriptor before Python 3.13. Kafka allocates
the whole file at once and trims it at the end; this writes what there is, which Kafka reads as well.
"""

import mmap
import os
import struct
from pathlib import Path

from kafka_log.errors import LogWriteError
from kafka_log.files.durable import flush_file
from kafka_log.format.index_entries import Entries, without_unused_space


class IndexFile:
    """Entries of one layout. `entries` is what lookups read."""

    def __init__(self, path: Path, layout: struct.Struct) -> None:
        self.path = path
        self.layout = layout
        self.entries: Entries = bytearray()
        self._saved_bytes = 0

    def replace(self, entries: bytes) -> None:
        """Replace all entries; `save` writes them."""
        self.entries = bytearray(entries)
        self._saved_bytes = -1

    def load(self) -> None:
        """Read the entries of an existing file into memory."""
        self.entries = bytearray(without_unused_space(self.path.read_bytes(), self.layout))
        self._saved_bytes = len(self.entries)

    def map(self) -> None:
        """Read the entries of an existing file on demand."""
        with self.path.open("rb") as file:
            # An empty file cannot be mapped.
            self.entries = (
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""
            )

    def append(self, *fields: int) -> None:
        """Add an entry."""
        if not isinstance(self.entries, bytearray):
            raise TypeError(f"The segment of {self.path} is closed.")
        self.entries += self.layout.pack(*fields)

    def truncate(self, size_bytes: int) -> None:
        """Keep the first `size_bytes` of the entries."""
        if size_bytes < len(self.entries):
            self.replace(bytes(self.entries[:size_bytes]))

    def save(self, *, flush: bool = False) -> None:
        """Write entries that the file lacks. Raises LogWriteError; the entries stay in memory for the next call."""
        if not flush and self._saved_bytes == len(self.entries):
            return
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                self._write(descriptor)
                if flush:
                    flush_file(descriptor, self.path)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise LogWriteError(f"Failed to write index {self.path}: {error.strerror}") from error

    def _write(self, descriptor: int) -> None:
        if self._saved_bytes < 0:
            os.ftruncate(descriptor, 0)
            self._saved_bytes = 0
        with memoryview(self.entries) as view:
            while self._saved_bytes < len(self.entries):
                self._saved_bytes += os.pwrite(descriptor, view[self._saved_bytes :], self._saved_bytes)
        # Kafka's allocated space behind the entries, if it was not trimmed
        os.ftruncate(descriptor, len(self.entries))
