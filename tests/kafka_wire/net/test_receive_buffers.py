"""Reused receive buffers: reused only when nothing views them, and limited."""

import struct

import pytest

from kafka_wire.net.assembler import FrameAssembler
from kafka_wire.net.receive_buffers import KEPT_BUFFER_BYTES, KEPT_BYTES, MAX_KEPT, ReceiveBuffers

MIB = 1024 * 1024


def test_a_returned_buffer_is_reused() -> None:
    """The one that was used last comes first: it is most likely in the processor's cache."""
    buffers = ReceiveBuffers()
    first, second = buffers.take(MIB), buffers.take(MIB)
    buffers.give(first)
    buffers.give(second)

    assert buffers.take(10) is second
    assert buffers.take(10) is first


@pytest.mark.parametrize("keep", [lambda view: view, lambda view: view[5:6]], ids=["view", "slice"])
def test_a_buffer_that_is_still_viewed_is_not_reused(keep) -> None:
    """A handler that keeps a part of its request never sees the bytes of another request."""
    buffers = ReceiveBuffers()
    buffer = buffers.take(MIB)
    kept = keep(memoryview(buffer))
    buffers.give(buffer)

    assert buffers.take(MIB) is not buffer
    del kept
    assert buffers.take(MIB) is buffer


def test_kept_buffers_are_limited() -> None:
    """In bytes, in number, and in the size of each."""
    buffers = ReceiveBuffers()
    for _ in range(100):
        buffers.give(bytearray(MIB))
    assert buffers.kept_bytes == KEPT_BYTES

    buffers.give(bytearray(KEPT_BUFFER_BYTES + 1))
    assert buffers.kept_bytes == KEPT_BYTES

    for _ in range(1_000):
        buffers.give(bytearray(1))
    assert buffers.kept_bytes <= MAX_KEPT * MIB
    assert buffers.kept_bytes == MAX_KEPT


def receive(assembler: FrameAssembler, data: bytes) -> list[int]:
    """Receive bytes as from a transport; returns the sizes of the buffers that were offered."""
    offered = []
    while data:
        buffer = assembler.get_buffer()
        offered.append(len(buffer))
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        buffer = memoryview(b"")
        assembler.received(count)
        assembler.pop()
        assembler.keep()
    return offered


def test_a_buffer_grows_with_the_bytes_received() -> None:
    """A frame that claims 100 MiB is offered at most as many bytes as have arrived, and never more than are missing."""
    assembler = FrameAssembler(100 * MIB, ReceiveBuffers())
    offered = receive(assembler, struct.pack(">i", 100 * MIB) + bytes(10 * MIB))
    received = 0
    for size in offered[1:]:
        received += offered[0] if not received else 0
        assert size <= received
        received += size


def test_a_large_frame_is_received_into_a_reused_buffer() -> None:
    """Only its first bytes pass through the shared buffer."""
    buffers = ReceiveBuffers()
    assembler = FrameAssembler(100 * MIB, buffers)
    reused = bytearray(2 * MIB)
    buffers.give(reused)
    data = struct.pack(">i", MIB) + bytes(MIB)
    for part in (data[:40_000], data[40_000:]):
        buffer = assembler.get_buffer()
        buffer[: len(part)] = part
        assembler.received(len(part))
        assembler.keep()
        frame = assembler.pop()

    assert isinstance(frame, memoryview)
    assert frame.obj is reused
    assert len(frame) == MIB


def test_the_buffer_of_an_incomplete_frame_is_returned_when_the_connection_ends() -> None:
    """A peer that leaves within a frame takes no buffer with it."""
    buffers = ReceiveBuffers()
    assembler = FrameAssembler(100 * MIB, buffers)
    receive(assembler, struct.pack(">i", MIB) + bytes(MIB // 2))
    assert buffers.kept_bytes == 0

    assembler.close()
    assert buffers.kept_bytes >= MIB // 2
    assert assembler.buffered == 0
