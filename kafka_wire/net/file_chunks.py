"""Chunks of a response with slices of files, read one at a time while the peer reads.

Sans-asyncio: `next` returns a chunk, or the blocking read that a disk thread must do first. Small pieces are joined into one chunk, so that
a fetch of many partitions is not sent in as many packets.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from kafka_wire.file_slice import DiskRunner, FileResponse, FileSlice
from kafka_wire.frames import SIZE_BYTES
from kafka_wire.net.receive_buffers import ReceiveBuffers
from kafka_wire.page_cache import is_cached

FILE_CHUNK_BYTES = 128 * 1024
"""Size of a chunk: memory that a connection holds while it sends a slice."""
SENT_AT_ONCE_BYTES = 1024 * 1024
"""Most that is sent from a file before other connections have their turn."""
LEAST_SENT_BYTES = 32 * 1024
"""Less is copied, which takes no longer than the question whether it is cached."""


@dataclass(frozen=True, slots=True)
class ColdRead:
    """A read that blocks: the bytes are not cached, or the platform does not report it. `run` runs it on a disk thread."""

    read: Callable[[], bytes]
    run: DiskRunner


class FileChunks:
    """Chunks of one response frame, with its size in front. Raises SliceUnreadable if a file is shorter than its slice, or was cut."""

    def __init__(self, response: FileResponse, buffers: ReceiveBuffers, socket: int | None = None) -> None:
        """With the descriptor of a `socket`, long slices are left to `send_file`, and `next` is for what it cannot send."""
        self._socket = socket
        self._pieces = iter((len(response).to_bytes(SIZE_BYTES, "big"), *response.pieces))
        self._buffers = buffers
        self._piece: memoryview | FileSlice | None = None
        self._position = 0
        """Bytes of the current piece that were returned."""
        self._advance()

    def next(self) -> bytes | memoryview | ColdRead | None:
        """Return the next chunk, a read that must be done first (its result goes to `done`), or None at the end.

        A view is valid until the next call; what the transport has not sent before it, it has copied, or it still views the buffer.
        """
        piece = self._piece
        if piece is None:
            return None
        if isinstance(piece, memoryview) and len(piece) - self._position >= FILE_CHUNK_BYTES:
            chunk = piece[self._position : self._position + FILE_CHUNK_BYTES]
            self._skip(len(chunk))
            return chunk
        return self._filled_chunk()

    def send_file(self) -> bool:
        """Send the next part of a file from the page cache to the socket, which copies nothing; return whether anything was sent.

        Nothing is where the next bytes are few, belong to no file or are not cached, and while the socket takes none.
        """
        piece = self._long_slice()
        if self._socket is None or piece is None:
            return False
        position, size = piece.offset + self._position, min(len(piece) - self._position, SENT_AT_ONCE_BYTES)
        if piece.is_cut() or not is_cached(piece.file.descriptor, position, size):
            return False
        try:
            sent = os.sendfile(self._socket, piece.file.descriptor, position, size)
        except OSError:  # the socket is full, or closed: the transport finds that out as well
            return False
        if sent:
            self._skip(sent)
        return sent > 0

    def done(self, data: bytes) -> bytes:
        """Take note of the result of a ColdRead, and return it as the next chunk."""
        self._skip(len(data))
        return data

    def _filled_chunk(self) -> memoryview | ColdRead:
        """Fill a buffer with the next pieces until it is full or the next bytes are not cached."""
        buffer = self._buffers.take(FILE_CHUNK_BYTES)
        view = memoryview(buffer)
        filled = 0
        while self._piece is not None and filled < FILE_CHUNK_BYTES:
            if filled and self._socket is not None and self._long_slice() is not None:
                break
            piece, left = self._piece, min(len(self._piece) - self._position, FILE_CHUNK_BYTES - filled)
            if isinstance(piece, FileSlice):
                position = piece.offset + self._position
                count = piece.read_cached(view[filled : filled + left], position)
                if count == 0 and filled == 0:
                    self._buffers.give(buffer)
                    return _cold_read(piece, left, position)
                if count == 0:
                    break
            else:
                count = left
                view[filled : filled + count] = piece[self._position : self._position + count]
            filled += count
            self._skip(count)
        self._buffers.give(buffer)
        return view[:filled]

    def _long_slice(self) -> FileSlice | None:
        """Return the current piece if its next bytes are worth the question whether they are cached."""
        piece = self._piece
        if isinstance(piece, FileSlice) and len(piece) - self._position >= LEAST_SENT_BYTES:
            return piece
        return None

    def _skip(self, count: int) -> None:
        self._position += count
        assert self._piece is not None
        if self._position == len(self._piece):
            self._advance()

    def _advance(self) -> None:
        """Go to the next piece that is not empty."""
        self._position = 0
        for piece in self._pieces:
            if len(piece):
                self._piece = piece if isinstance(piece, FileSlice) else memoryview(piece)
                return
        self._piece = None


def _cold_read(piece: FileSlice, size: int, position: int) -> ColdRead:
    return ColdRead(lambda: piece.read_blocking(size, position), piece.run)


def whole_if_small(response: FileResponse, buffers: ReceiveBuffers) -> memoryview | None:
    """Return a response that fits into one chunk and is cached, with its size in front; None for any other."""
    if SIZE_BYTES + len(response) > FILE_CHUNK_BYTES:
        return None
    chunk = FileChunks(response, buffers).next()
    return chunk if isinstance(chunk, memoryview) and len(chunk) == SIZE_BYTES + len(response) else None
