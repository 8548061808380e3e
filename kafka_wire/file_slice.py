"""Responses with slices of files: bytes that are read while the response is sent, and never held as a whole.

What the page cache has is sent or read on the event loop. Everything else is read by a disk thread first, so that a cold range never blocks
the loop (KAFKA-7504): `preadv` with RWF_NOWAIT reads only cached bytes. Where the platform or the file system lacks it, the disk thread reads
everything. net/response_writer.py sends these responses.
"""

import errno
import os
from collections.abc import Awaitable, Callable, Sequence

from kafka_wire.failures import WireError

NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)
"""Flag of `preadv` for reading only what is cached; None where the platform lacks it."""

READ_AHEAD_BYTES = 1024 * 1024
"""Bytes that the kernel is asked to read beyond a cold position, so that the next chunks are cached."""

_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL)

DiskRunner = Callable[[Callable[[], bytes]], Awaitable[bytes]]
"""Runs a blocking read on a disk thread, and returns its result."""


class SliceUnreadable(WireError):  # noqa: N818 -- names the condition
    """A slice of a file cannot be read as announced: the file was truncated, or the disk failed. The connection must be closed."""


class SharedFile:
    """Open file whose descriptor is closed when neither its owner nor a slice refers to it.

    So a log may drop the file of a deleted segment while a slow consumer still reads it, and no descriptor is used after another file has
    got its number. The object owns `descriptor`. An owner that cuts the file calls `cut`, and may write to it again: slices of what was removed
    are not read any more.
    """

    __slots__ = ("_reads_cached", "cuts", "descriptor", "name")

    def __init__(self, descriptor: int, name: str) -> None:
        self.descriptor = descriptor
        self.name = name
        self.cuts: list[int] = []
        """Positions at which the file was cut: one for each truncation of a log that ends in it."""
        self._reads_cached = NOWAIT is not None

    def __del__(self) -> None:
        os.close(self.descriptor)

    def cut(self, position: int) -> None:
        """Invalidate all present slices that reach beyond `position`."""
        self.cuts.append(position)

    def read_cached(self, into: memoryview, position: int) -> int:
        """Read cached bytes at `position`, at most as many as fit.

        Returns 0 if none are cached, if that cannot be found out, and after an error, which the blocking read repeats.
        """
        if not self._reads_cached or NOWAIT is None:
            return 0
        try:
            return os.preadv(self.descriptor, [into], position, NOWAIT)
        except OSError as error:
            if error.errno in _NOT_SUPPORTED:
                self._reads_cached = False
            return 0

    def read_blocking(self, size: int, position: int) -> bytes:
        """Read `size` bytes, waiting for the disk, and ask the kernel to read on.

        Raises SliceUnreadable if the file is shorter, and for an error of the disk, which is its cause.
        """
        try:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(self.descriptor, position, READ_AHEAD_BYTES, os.POSIX_FADV_WILLNEED)
            data = os.pread(self.descriptor, size, position)
        except OSError as error:
            raise self._unreadable(position, error.strerror) from error
        if not data:
            raise self.truncated(position)
        return data

    def truncated(self, position: int) -> SliceUnreadable:
        """Return the error of a read of bytes that the file had."""
        return self._unreadable(position, "the file was truncated")

    def _unreadable(self, position: int, reason: str | None) -> SliceUnreadable:
        return SliceUnreadable(f"Failed to read {self.name} at byte offset {position}: {reason}.")


class FileSlice:
    """`length` bytes of a file from `offset` on, as a part of a response.

    The bytes must not change until the response is sent. If the file is cut in the meantime, the connection is closed. `run` reads what is not
    cached on the disk thread of the file's directory.
    """

    __slots__ = ("_cut_count", "file", "length", "offset", "run")

    def __init__(self, file: SharedFile, offset: int, length: int, run: DiskRunner) -> None:
        if offset < 0 or length < 0:
            raise ValueError(f"offset and length must not be negative, found {offset} and {length}")
        self.file = file
        self.offset = offset
        self.length = length
        self.run = run
        self._cut_count = len(file.cuts)

    def is_cut(self) -> bool:
        """Return whether the file was cut below the end of the slice since it was made. Other bytes may be there now."""
        cuts = self.file.cuts
        return len(cuts) > self._cut_count and min(cuts[self._cut_count :]) < self.offset + self.length

    def read_cached(self, into: memoryview, position: int) -> int:
        """Read a part as SharedFile.read_cached. Returns 0 also if the slice was cut."""
        return 0 if self.is_cut() else self.file.read_cached(into, position)

    def read_blocking(self, size: int, position: int) -> bytes:
        """Read a part as SharedFile.read_blocking. Raises SliceUnreadable also if the slice was cut, before or while it is read."""
        data = self.file.read_blocking(size, position)
        if self.is_cut():
            raise self.file.truncated(position)
        return data

    def __len__(self) -> int:
        return self.length


Piece = bytes | memoryview | FileSlice


class FileResponse:
    """Response frame without its size, in pieces: bytes that belong to it, and slices of files."""

    __slots__ = ("_length", "own_bytes", "pieces")

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = pieces
        self._length = sum(map(len, pieces))
        self.own_bytes = self._length - sum(len(piece) for piece in pieces if isinstance(piece, FileSlice))
        """Memory that the response holds."""

    def __len__(self) -> int:
        return self._length
