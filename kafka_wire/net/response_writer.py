"""Responses of one connection: written in the order of its requests, and only while the peer reads.

Short responses are joined into one write. Long ones are written in chunks, in turns with those of other connections (outflow.py); chunks
of files that are not cached are read by a disk thread first.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from kafka_wire.encoded_body import PiecewiseResponse, Response
from kafka_wire.file_slice import FileResponse, SliceUnreadable
from kafka_wire.frames import SIZE_BYTES
from kafka_wire.net.file_chunks import ColdRead, FileChunks, whole_if_small
from kafka_wire.net.outflow import CHUNK_BYTES, Outflow
from kafka_wire.net.receive_buffers import ReceiveBuffers

_WRITE_BATCH_BYTES = 64 * 1024
"""Responses joined into one write. Larger batches are not faster, and copy more."""


class Slot:
    """A request being handled. Responses are sent in the order of the slots."""

    __slots__ = ("done", "is_queued", "request_bytes", "response", "task")

    def __init__(self, request_bytes: int, *, is_queued: bool) -> None:
        self.request_bytes = request_bytes
        self.is_queued = is_queued
        """Whether its handler has not started yet."""
        self.done = False
        self.response: Response | None = None
        self.task: asyncio.Task[None] | None = None


class Link(Protocol):
    """Interface of the connection for its writer."""

    is_closed: bool
    active_at: float

    def abort(self, reason: str, level: int = logging.INFO) -> None:
        """Close the connection now."""

    def hold(self, byte_count: int) -> None:
        """Add bytes to the connection's memory; a negative count releases them."""

    def start_requests(self) -> None:
        """Start further requests, now that responses were written."""


class ResponseWriter:
    """Slots of one connection, and what is written of the first of them."""

    def __init__(self, link: Link, outflow: Outflow, buffers: ReceiveBuffers) -> None:
        self._link = link
        self._outflow = outflow
        self._buffers = buffers
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._socket: int | None = None
        """Descriptor of a socket without TLS, which files are sent to."""
        self.slots: deque[Slot] = deque()
        self.handled_bytes = 0
        """Bytes of the requests in slots."""
        self.stalled_since: float | None = None
        """Time since which the peer has not read its responses."""
        self.shared_since: float | None = None
        """Time since which a long response is written from memory that it shares with others."""
        self._unsent_bytes = 0
        """Bytes of responses that the transport could not send."""
        self._chunks: Iterator[bytes | memoryview] | FileChunks | None = None
        """Remaining chunks of the long response that is being written."""
        self._is_scheduled = False
        """Whether the outflow calls `_write_chunk`, or a disk thread reads the next chunk."""
        self._cold_read: asyncio.Task[None] | None = None

    def connect(self, transport: asyncio.Transport) -> None:
        """Set the transport to write to."""
        self._transport = transport
        if (
            transport.get_extra_info("sslcontext") is None
            and (socket := transport.get_extra_info("socket")) is not None
        ):
            self._socket = socket.fileno()

    def begin(self, request_bytes: int, *, is_queued: bool) -> Slot:
        """Add a request, whose response is sent after those of all earlier requests."""
        slot = Slot(request_bytes, is_queued=is_queued)
        self.slots.append(slot)
        self.handled_bytes += request_bytes
        return slot

    def complete(self, slot: Slot, response: Response | None) -> None:
        """Take the response of a request; None if it has none. `flush` or `write_ready` writes it."""
        slot.response = response
        slot.done = True
        if response is not None:
            self._link.hold(_own_bytes(response))

    def pause(self) -> None:
        """Stop writing: the peer does not read its responses."""
        assert self._transport is not None
        self.stalled_since = self._loop.time()
        self._unsent_bytes = self._transport.get_write_buffer_size()
        self._link.hold(self._unsent_bytes)

    def resume(self) -> None:
        """Continue writing: the peer has read its responses."""
        self.stalled_since = None
        self._link.hold(-self._unsent_bytes)
        self._unsent_bytes = 0
        if not self._link.is_closed:
            self.flush()

    def close(self) -> list["asyncio.Task[None]"]:
        """Cancel the running handlers and the read of a file; returns their tasks."""
        self._chunks = self.shared_since = None
        tasks = [slot.task for slot in self.slots if slot.task is not None and not slot.task.done()]
        if self._cold_read is not None and not self._cold_read.done():
            tasks.append(self._cold_read)
        for task in tasks:
            task.cancel()
        return tasks

    @property
    def is_ready(self) -> bool:
        """Whether `write_ready` would write a response now."""
        slots = self.slots
        return bool(slots) and slots[0].done and self.stalled_since is None and not self._is_scheduled

    def flush(self) -> None:
        """Write the responses that are next in order, unless the peer does not read, and start further requests."""
        if self.write_ready():
            self._link.start_requests()

    def write_ready(self) -> bool:
        """Write the responses that are next in order, unless the peer does not read; return whether the connection is still open."""
        assert self._transport is not None
        while not self._link.is_closed and self.is_ready:
            parts, size, freed = self._joined()
            if parts or freed:
                self._transport.write(b"".join(parts))
                self._link.active_at = self._loop.time()
                self._link.hold(-(freed + size))
            else:
                self._write_long(self.slots[0].response)
                break
        return not self._link.is_closed

    def _joined(self) -> tuple[list[bytes | memoryview], int, int]:
        """Remove the slots whose responses are written together; returns their parts, and the bytes that they and their requests hold."""
        parts: list[bytes | memoryview] = []
        written = size = freed = 0
        while self.slots and self.slots[0].done and written < _WRITE_BATCH_BYTES:
            response = self.slots[0].response
            if isinstance(response, bytes):
                parts += (len(response).to_bytes(SIZE_BYTES, "big"), response)
                written += SIZE_BYTES + len(response)
            elif isinstance(response, FileResponse) and self._chunks is None:
                whole = whole_if_small(response, self._buffers)
                if whole is None:
                    break
                parts.append(whole)
                written += len(whole)
            elif response is not None:
                break
            size += 0 if response is None else _own_bytes(response)
            freed += self._end_slot()
        return parts, size, freed

    def _end_slot(self) -> int:
        slot = self.slots.popleft()
        self.handled_bytes -= slot.request_bytes
        return slot.request_bytes

    def _write_long(self, response: Response | None) -> None:
        """Start or continue to write a long response in chunks; its slot is kept until the last chunk is written."""
        assert self._transport is not None
        if self._chunks is None:
            if isinstance(response, FileResponse):
                self._chunks = FileChunks(response, self._buffers, self._socket)
            elif isinstance(response, PiecewiseResponse):
                self._chunks = response.chunks(CHUNK_BYTES)
                self.shared_since = self._loop.time()
                self._transport.write(len(response).to_bytes(SIZE_BYTES, "big"))
        if not self._is_scheduled:
            self._is_scheduled = True
            self._outflow.add(self._write_chunk)

    def _write_chunk(self) -> bool:
        """Write one chunk of a long response; False after the last one, if the peer must read first, or a disk thread."""
        chunks = self._chunks
        if self._link.is_closed or self.stalled_since is not None or chunks is None:
            self._is_scheduled = False
            return False
        if isinstance(chunks, FileChunks) and self._send_file(chunks):
            return True
        try:
            chunk = chunks.next() if isinstance(chunks, FileChunks) else next(chunks, None)
        except SliceUnreadable as error:
            self._link.abort(str(error), logging.WARNING)
            return False
        if isinstance(chunk, ColdRead):
            self._cold_read = self._loop.create_task(self._read_cold(chunk))
            return False
        if chunk is not None:
            self._write(chunk)
            return True
        self._chunks = self.shared_since = None
        self._is_scheduled = False
        response = self.slots[0].response
        assert response is not None
        self._link.hold(-(self._end_slot() + _own_bytes(response)))
        self.flush()
        return False

    def _send_file(self, chunks: FileChunks) -> bool:
        """Send the next part of a file to the socket, which must not overtake what the transport still has; return whether it was sent."""
        assert self._transport is not None
        if self._transport.is_closing() or self._transport.get_write_buffer_size() or not chunks.send_file():
            return False
        self._link.active_at = self._loop.time()
        return True

    async def _read_cold(self, cold: ColdRead) -> None:
        """Read a chunk on a disk thread and write it, then continue."""
        try:
            data = await cold.run(cold.read)
        except (SliceUnreadable, OSError) as error:
            self._link.abort(str(error), logging.WARNING)
            return
        if isinstance(self._chunks, FileChunks) and not self._link.is_closed:
            self._write(self._chunks.done(data))
            self._outflow.add(self._write_chunk)

    def _write(self, chunk: bytes | memoryview) -> None:
        assert self._transport is not None
        self._transport.write(chunk)
        self._link.active_at = self._loop.time()


def _own_bytes(response: Response) -> int:
    """Return the memory of a response that only its connection uses: the pieces of a long one are shared, those of files are not in memory."""
    if isinstance(response, bytes):
        return SIZE_BYTES + len(response)
    return SIZE_BYTES + (response.own_bytes if isinstance(response, FileResponse) else len(response.header))
