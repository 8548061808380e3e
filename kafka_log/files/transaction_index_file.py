"""Transaction index of a segment as a file.

The file is created with its first entry and never kept open: few segments have one. Its segment's flush writes it to the disk; until
then, recovery builds it again from the end markers in the segment.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kafka_log.errors import FlushFailedError, LogWriteError, UnreadableFileError
from kafka_log.files.durable import flush_file, write_at
from kafka_log.format.names import TRANSACTION_INDEX_SUFFIX, segment_name
from kafka_log.format.transaction_index import (
    TRANSACTION_ENTRY,
    AbortedTransaction,
    CollectedTransactions,
    collect_transactions,
    decode_transactions,
    encode_transaction,
    transaction_bytes_before,
)


class TransactionIndexFile:
    """The aborted transactions that end in the segment from `base_offset`."""

    def __init__(self, folder: Path, base_offset: int, file_suffix: str = "") -> None:
        self.path = folder / segment_name(base_offset, TRANSACTION_INDEX_SUFFIX + file_suffix)
        self.base_offset = base_offset

    def append(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add entries in the order of their last offsets. Raises LogWriteError, and then the file is as it was before."""
        data = b"".join(map(encode_transaction, transactions))
        if not data:
            return
        with self._opened(os.O_WRONLY | os.O_CREAT) as descriptor:
            whole = os.fstat(descriptor).st_size // TRANSACTION_ENTRY.size * TRANSACTION_ENTRY.size
            write_at(descriptor, [data], whole, self.path)

    def flush(self) -> None:
        """Write the file to the disk. Raises FlushFailedError."""
        try:
            with self._opened(os.O_RDONLY) as descriptor:
                flush_file(descriptor, self.path)
        except LogWriteError as error:
            raise FlushFailedError(f"{error} The process must exit and recover.") from error

    def collect(self, fetch_offset: int, upper_bound_offset: int) -> CollectedTransactions:
        """Return the transactions of a range of offsets. Raises UnreadableFileError."""
        try:
            return collect_transactions(self._content(), fetch_offset, upper_bound_offset)
        except UnreadableFileError as error:
            raise UnreadableFileError(f"Failed to read {self.path}: {error}. It is rebuilt by a recovery.") from None

    def truncate(self, offset: int) -> None:
        """Remove the transactions that end at `offset` or above it. Raises LogWriteError."""
        content = self._content()
        kept = transaction_bytes_before(content, offset)
        if kept == len(content):
            return
        try:
            os.truncate(self.path, kept)
        except OSError as error:
            raise LogWriteError(f"Failed to cut transaction index {self.path}: {error.strerror}") from error

    def reset(self) -> None:
        """Remove all entries; a file that exists stays, as Kafka's does. Raises LogWriteError."""
        try:
            if self.path.exists():
                os.truncate(self.path, 0)
        except OSError as error:
            raise LogWriteError(f"Failed to empty transaction index {self.path}: {error.strerror}") from error

    def error(self) -> str | None:
        """Return why the file is no transaction index of its segment, None if it is one or is missing."""
        try:
            for _ in decode_transactions(self._stored(), self.base_offset):
                pass
        except UnreadableFileError as error:
            return str(error)
        return None

    def _content(self) -> bytes:
        """Return the whole entries; a torn entry at the end is of a crash."""
        content = self._stored()
        return content[: len(content) // TRANSACTION_ENTRY.size * TRANSACTION_ENTRY.size]

    def _stored(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise UnreadableFileError(f"Failed to read {self.path}: {error.strerror}") from error

    @contextlib.contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        try:
            descriptor = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise LogWriteError(f"Failed to open transaction index {self.path}: {error.strerror}") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)
