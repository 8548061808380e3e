"""Responses with slices of files: read while the peer reads, by a disk thread where the page cache lacks them."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from kafka_wire import file_slice, page_cache
from kafka_wire.encoded_body import Response
from kafka_wire.file_slice import FileResponse, FileSlice, SharedFile
from kafka_wire.frames import SIZE_BYTES
from kafka_wire.net.file_chunks import FILE_CHUNK_BYTES
from kafka_wire.net.outflow import CHUNK_BYTES
from kafka_wire.net.server import Peer
from tests.kafka_wire.net.peers import RawPeer, request, response
from tests.waiting import until

CONTENT = b"".join(number.to_bytes(4, "big") for number in range(1_000_000))
"""4 MB in which every position is different."""


class Segment:
    """A file of which parts are sent, and what was done by its disk thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.disk_reads = 0
        self.path.write_bytes(CONTENT)
        self.file = SharedFile(os.open(path, os.O_RDONLY), "segment")
        self.run = self.read_on_thread

    async def read_on_thread(self, read) -> bytes:
        self.disk_reads += 1
        return await asyncio.to_thread(read)

    async def answer(self, _peer: Peer, frame: bytes) -> Response:
        """Return the correlation id, then the ranges that the request lists, with a letter in between."""
        pieces: list[file_slice.Piece] = [frame[4:8]]
        for begin in range(8, len(frame), 8):
            offset, length = (int.from_bytes(frame[at : at + 4], "big") for at in (begin, begin + 4))
            pieces += (FileSlice(self.file, offset, length, self.run), b"|")
        return FileResponse(pieces)


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """A file in the page cache."""
    return Segment(tmp_path / "00000000000000000000.log")


@pytest.fixture(
    params=["cached", "without cachestat", "without RWF_NOWAIT", "not supported by the file system", "nothing cached"]
)
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Switch off what a platform may lack."""

    def refuse(number: int):
        def preadv(*_arguments: object) -> int:
            raise OSError(number, os.strerror(number))

        return preadv

    if request.param != "cached":
        monkeypatch.setattr(page_cache, "_syscall", None)
    if request.param == "without RWF_NOWAIT":
        monkeypatch.setattr(file_slice, "NOWAIT", None)
        monkeypatch.delattr(os, "posix_fadvise")
    elif request.param == "not supported by the file system":
        monkeypatch.setattr(os, "preadv", refuse(errno.EOPNOTSUPP))
    elif request.param == "nothing cached":
        monkeypatch.setattr(os, "preadv", refuse(errno.EAGAIN))
    return str(request.param)


def wanted(correlation_id: int, *ranges: tuple[int, int]) -> bytes:
    """Build a request of ranges (offset, length)."""
    return request(correlation_id, b"".join(value.to_bytes(4, "big") for part in ranges for value in part))


def expected(correlation_id: int, *ranges: tuple[int, int]) -> bytes:
    """Return the response to a request of ranges."""
    return response(correlation_id, b"".join(CONTENT[offset : offset + length] + b"|" for offset, length in ranges))


RANGES = {
    "a short one": [(5, 100)],
    "none": [],
    "an empty one": [(7, 0)],
    "a whole file": [(0, len(CONTENT))],
    "many": [(step * 10_007, step * 3_001) for step in range(30)],
    "the size of a chunk": [(0, FILE_CHUNK_BYTES - 9), (1, FILE_CHUNK_BYTES), (2, 1)],
}


@pytest.mark.parametrize("ranges", RANGES.values(), ids=RANGES)
async def test_slices_are_sent_whole_and_in_order(ranges, platform, segment, start_server, connect) -> None:
    """On every platform; with RWF_NOWAIT and cached bytes, without a disk thread."""
    peer = await connect(await start_server(segment.answer))
    await peer.send_frame(wanted(1, *ranges))
    await peer.send_frame(wanted(2, (3, 5)))

    assert await peer.read_frame() == expected(1, *ranges)
    assert await peer.read_frame() == expected(2, (3, 5))
    assert (segment.disk_reads == 0) == (platform in {"cached", "without cachestat"})


async def test_cached_bytes_are_sent_without_a_copy(segment, start_server, connect, monkeypatch) -> None:
    """By sendfile, where the kernel reports that they are cached: it would block the loop on others (KAFKA-7504)."""
    sent: list[int] = []
    sendfile = os.sendfile

    def noted(*arguments: int) -> int:
        sent.append(sendfile(*arguments))
        return sent[-1]

    monkeypatch.setattr(os, "sendfile", noted)
    peer = await connect(await start_server(segment.answer))
    await peer.send_frame(wanted(1, (0, len(CONTENT))))

    assert await peer.read_frame() == expected(1, (0, len(CONTENT)))
    assert bool(sent) == page_cache.is_cached(segment.file.descriptor, 0, len(CONTENT))


async def test_over_tls(segment, start_server, server_tls, client_tls) -> None:
    """Chunks are encrypted like any other response."""
    server = await start_server(segment.answer, ssl=server_tls)
    peer = RawPeer(*await asyncio.open_connection("localhost", server.port, ssl=client_tls, family=2))
    await peer.send_frame(wanted(1, (0, len(CONTENT))))

    assert await peer.read_frame() == expected(1, (0, len(CONTENT)))
    await peer.close()


async def test_a_peer_that_does_not_read_holds_no_slice_in_memory(segment, start_server, connect) -> None:
    """Of 10 responses of 4 MB only the chunk that was being sent is held, and no other client is disturbed."""
    server = await start_server(segment.answer)
    lazy, other = await connect(server), await connect(server)
    lazy.writer.transport.pause_reading()
    for number in range(10):
        await lazy.send_frame(wanted(number, (0, len(CONTENT))))
    await until(lambda: server.held_bytes > CHUNK_BYTES)
    await other.send_frame(wanted(1, (0, len(CONTENT))))
    assert await other.read_frame() == expected(1, (0, len(CONTENT)))

    assert server.held_bytes < 4 * FILE_CHUNK_BYTES
    lazy.writer.transport.resume_reading()
    for number in range(10):
        assert await lazy.read_frame() == expected(number, (0, len(CONTENT)))
    await until(lambda: server.held_bytes == 0)


async def test_a_cold_read_stops_no_other_client(segment, start_server, connect, monkeypatch) -> None:
    """The loop goes on while a disk thread reads (KAFKA-7504)."""
    disk, reading = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(file_slice, "NOWAIT", None)
    monkeypatch.setattr(page_cache, "_syscall", None)

    async def slow_disk(read) -> bytes:
        reading.set()
        await disk.wait()
        return await asyncio.to_thread(read)

    cold = SharedFile(os.open(segment.path, os.O_RDONLY), "segment")

    async def answer(_peer: Peer, frame: bytes) -> Response:
        if frame[7] == 1:
            return FileResponse([frame[4:8], FileSlice(cold, 0, 200_000, slow_disk)])
        return frame[4:8]

    server = await start_server(answer)
    waiting, other = await connect(server), await connect(server)
    await waiting.send_frame(request(1))
    await reading.wait()
    await other.send_frame(request(2))
    assert await other.read_frame() == response(2)

    disk.set()
    assert await waiting.read_frame() == response(1, CONTENT[:200_000])


@pytest.mark.parametrize("platform", ["cached", "without RWF_NOWAIT"], indirect=True)
@pytest.mark.usefixtures("platform")
async def test_a_truncated_file_closes_the_connection(segment, start_server, connect, caplog) -> None:
    """The announced size cannot be sent any more, as in Kafka's FileRecords.writeTo; other clients are served."""
    server = await start_server(segment.answer)
    os.truncate(segment.path, 1_000)
    peer = await connect(server)
    await peer.send_frame(wanted(1, (0, 300_000)))

    assert len(await peer.reader.read()) < 300_000
    (reason,) = [record.reason for record in caplog.records if hasattr(record, "reason")]
    assert reason == "Failed to read segment at byte offset 1000: the file was truncated."
    assert server.held_bytes == 0


@pytest.mark.parametrize("platform", ["cached", "without cachestat", "without RWF_NOWAIT"], indirect=True)
@pytest.mark.usefixtures("platform")
async def test_what_was_cut_and_written_again_is_not_sent(segment, start_server, connect, caplog) -> None:
    """A leader that becomes a follower truncates its log, and appends what the next leader has (KAFKA-18723)."""
    server = await start_server(segment.answer)
    peer = await connect(server)
    await peer.send_frame(wanted(1, *[(0, len(CONTENT))] * 5))
    begin = await peer.reader.readexactly(1_000)
    segment.file.cut(500)
    segment.path.write_bytes(CONTENT[:500] + bytes(len(CONTENT) - 500))
    whole = response(1, b"".join([CONTENT, b"|"] * 5))
    received = begin[SIZE_BYTES:] + await peer.reader.read()

    assert len(received) < len(whole)
    assert received == whole[: len(received)]
    (reason,) = [record.reason for record in caplog.records if hasattr(record, "reason")]
    assert reason.endswith("the file was truncated.")

    later = await connect(server)
    await later.send_frame(wanted(2, (0, 200_000)))
    assert await later.read_frame() == response(2, CONTENT[:500] + bytes(199_500) + b"|")


@pytest.mark.parametrize(("cuts", "expected"), [([], False), ([100], False), ([99], True), ([99, 100], True)])
def test_a_slice_is_cut_if_the_file_was_cut_below_its_end_since(cuts: list[int], expected: bool, segment) -> None:
    """Cuts before do not concern it."""
    segment.file.cut(50)
    part = FileSlice(segment.file, 0, 100, segment.run)
    for position in cuts:
        segment.file.cut(position)

    assert part.is_cut() is expected


async def test_a_cold_read_during_which_its_slice_is_cut_is_not_sent(
    segment, start_server, connect, monkeypatch
) -> None:
    """The disk thread may have read what was written behind the cut."""
    monkeypatch.setattr(file_slice, "NOWAIT", None)
    monkeypatch.setattr(page_cache, "_syscall", None)

    async def cut_before(read) -> bytes:
        segment.file.cut(0)
        return await asyncio.to_thread(read)

    segment.run = cut_before
    peer = await connect(await start_server(segment.answer))
    await peer.send_frame(wanted(1, (0, 300_000)))

    assert len(await peer.reader.read()) == 2 * SIZE_BYTES


async def test_a_failed_disk_closes_the_connection(segment, start_server, connect, caplog, monkeypatch) -> None:
    """The reason names the file and the position."""

    def fail(*_arguments: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(page_cache, "_syscall", None)
    monkeypatch.setattr(os, "preadv", fail)
    monkeypatch.setattr(os, "pread", fail)
    peer = await connect(await start_server(segment.answer))
    await peer.send_frame(wanted(1, (0, 300_000)))

    assert len(await peer.reader.read()) == 2 * SIZE_BYTES  # the size of the response, and its correlation id
    (reason,) = [record.reason for record in caplog.records if hasattr(record, "reason")]
    assert reason == "Failed to read segment at byte offset 0: Input/output error."


async def test_a_lost_connection_ends_a_cold_read(segment, start_server, connect, monkeypatch) -> None:
    """Nothing is left of the response, and its file is closed."""
    monkeypatch.setattr(file_slice, "NOWAIT", None)
    monkeypatch.setattr(page_cache, "_syscall", None)
    reading = asyncio.Event()

    async def hang(_read) -> bytes:
        reading.set()
        await asyncio.Event().wait()
        return b""

    segment.run = hang
    server = await start_server(segment.answer)
    peer = await connect(server)
    await peer.send_frame(wanted(1, (0, 300_000)))
    await reading.wait()
    await peer.reset()
    await until(lambda: server.connection_count == 0)

    assert server.held_bytes == 0


def test_a_file_is_closed_when_neither_owner_nor_slice_refers_to_it(tmp_path: Path) -> None:
    """A deleted segment is read to its end by those that have begun, and no descriptor is used after its file was closed."""
    path = tmp_path / "segment"
    path.write_bytes(b"content")
    file = SharedFile(os.open(path, os.O_RDONLY), "segment")
    descriptor = file.descriptor
    part = FileSlice(file, 0, 7, asyncio.to_thread)
    del file
    path.unlink()
    assert part.file.read_blocking(7, 0) == b"content"

    del part
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize(("offset", "length"), [(-1, 5), (5, -1)])
def test_negative_slices_are_rejected(offset: int, length: int, segment: Segment) -> None:
    """Before anything is sent."""
    with pytest.raises(ValueError, match="must not be negative"):
        FileSlice(segment.file, offset, length, segment.run)
