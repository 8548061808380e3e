"""Frame assembly returns the frames of a stream unchanged, for any split of the stream."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire.frames import FrameTooLarge, MalformedFrame
from kafka_wire.net.assembler import FrameAssembler, RequestLimit
from kafka_wire.net.receive_buffers import SCRATCH_BYTES, ReceiveBuffers


class Stream:
    """An assembler that is fed as by a transport, into the buffers that it returns."""

    def __init__(self, max_frame_bytes: int, request_limit: RequestLimit | None = None) -> None:
        self.buffers = ReceiveBuffers()
        self.assembler = FrameAssembler(max_frame_bytes, self.buffers, request_limit)

    @property
    def buffered(self) -> int:
        """Bytes that were not popped."""
        return self.assembler.buffered

    def feed(self, data: bytes) -> None:
        """Receive bytes, without popping frames."""
        while data:
            buffer = self.assembler.get_buffer()
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self.assembler.received(count)
            self.assembler.keep()
            self.buffers.scratch[:] = SCRATCH_OF_ANOTHER
            data = data[count:]

    def pop(self) -> bytes | None:
        """Return the next frame as bytes."""
        frame = self.assembler.pop()
        return frame if frame is None or isinstance(frame, bytes) else self.buffers.copied(frame)


SCRATCH_OF_ANOTHER = b"\xee" * SCRATCH_BYTES
"""What another connection leaves in the shared buffer."""


def _framed(frames: list[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


@given(st.lists(st.binary(min_size=4, max_size=40), max_size=8), st.lists(st.integers(1, 50), max_size=30))
def test_any_split_of_the_stream_returns_the_same_frames(frames: list[bytes], cuts: list[int]) -> None:
    """TCP keeps the order of bytes, but not their grouping."""
    stream, found = _framed(frames), []
    assembler = Stream(max_frame_bytes=40)
    for cut in [*cuts, len(stream)]:
        assembler.feed(stream[:cut])
        stream = stream[cut:]
        while (frame := assembler.pop()) is not None:
            found.append(frame)

    assert frames == found
    assert assembler.buffered == 0


def test_unread_frames_are_kept_while_more_bytes_arrive() -> None:
    """A reader at its limit takes its frames later, in order."""
    assembler = Stream(max_frame_bytes=100)
    assembler.feed(_framed([b"first", b"second"]))
    first = assembler.pop()
    assembler.feed(_framed([b"third"]))

    assert [first, assembler.pop(), assembler.pop(), assembler.pop()] == [b"first", b"second", b"third", None]


def test_only_received_bytes_are_buffered() -> None:
    """No memory is allocated for an announced size."""
    assembler = Stream(max_frame_bytes=100_000_000)
    assembler.feed(struct.pack(">i", 99_999_999) + b"x")

    assert assembler.pop() is None
    assert assembler.buffered == 5


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 3])
def test_an_impossible_frame_size_is_malformed(size: int) -> None:
    """Kafka's InvalidReceiveException; the smallest message is a correlation id."""
    assembler = Stream(max_frame_bytes=100)
    assembler.feed(struct.pack(">i", size))

    with pytest.raises(MalformedFrame):
        assembler.pop()


def test_a_frame_size_over_the_limit_is_rejected_before_its_bytes_arrive() -> None:
    """The limit is inclusive."""
    assembler = Stream(max_frame_bytes=100)
    assembler.feed(_framed([bytes(100)]) + struct.pack(">i", 101))

    assert bytes(100) == assembler.pop()
    with pytest.raises(FrameTooLarge):
        assembler.pop()


def _limit(key: int, _version: int) -> int:
    return 1_000 if key == 19 else 10_000_000


def test_a_request_over_the_limit_of_its_api_is_rejected_at_its_first_eight_bytes() -> None:
    """Size, key and version are enough: no byte of the body has to arrive."""
    assembler = Stream(max_frame_bytes=100_000_000, request_limit=_limit)
    assembler.feed(struct.pack(">ih", 1_001, 19))

    assert assembler.pop() is None
    assembler.feed(struct.pack(">h", 7))
    with pytest.raises(FrameTooLarge):
        assembler.pop()


def test_a_request_within_the_limit_of_its_api_is_accepted() -> None:
    """Each API has its own limit."""
    small, large = struct.pack(">hh", 19, 7) + bytes(996), struct.pack(">hh", 0, 9) + bytes(2_000_000)
    assembler = Stream(max_frame_bytes=100_000_000, request_limit=_limit)
    assembler.feed(_framed([small, large, small]))

    assert [assembler.pop(), assembler.pop(), assembler.pop(), assembler.pop()] == [small, large, small, None]


@pytest.mark.parametrize("cut", [1, 7, 65_536, 300_000, 1_000_003])
def test_large_frames_are_returned_unchanged(cut: int) -> None:
    """They are assembled in a separate buffer, and bytes after them in the same piece of the stream are kept."""
    frames = [b"tiny", bytes(range(256)) * 4_000, b"next", bytes(range(256)) * 2_000, b"last"]
    stream, found, held = _framed(frames), [], []
    assembler = Stream(max_frame_bytes=100_000_000)
    begin, step = 0, cut if cut > 7 else 200_000 + cut
    while begin < len(stream):
        assembler.feed(stream[begin : begin + step])
        begin += step
        while (frame := assembler.pop()) is not None:
            found.append(frame)
        held.append(assembler.buffered + sum(4 + len(frame) for frame in found) - min(begin, len(stream)))

    assert found == frames
    assert set(held) == {0}
