"""Frames come out of a stream as they went in, however it was cut."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire.frames import FrameTooLarge, MalformedFrame
from kafka_wire.net.assembler import FrameAssembler


def _framed(frames: list[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


@given(st.lists(st.binary(min_size=4, max_size=40), max_size=8), st.lists(st.integers(1, 50), max_size=30))
def test_any_cut_of_the_stream_gives_the_same_frames(frames: list[bytes], cuts: list[int]) -> None:
    """TCP keeps the order of bytes and nothing of their grouping."""
    stream, found = _framed(frames), []
    assembler = FrameAssembler(max_frame_bytes=40)
    for cut in [*cuts, len(stream)]:
        assembler.feed(stream[:cut])
        stream = stream[cut:]
        while (frame := assembler.pop()) is not None:
            found.append(frame)

    assert frames == found
    assert 0 == assembler.buffered


def test_frames_may_wait_while_more_arrives() -> None:
    """A reader without room takes its frames later, in order."""
    assembler = FrameAssembler(max_frame_bytes=100)
    assembler.feed(_framed([b"first", b"second"]))
    first = assembler.pop()
    assembler.feed(_framed([b"third"]))

    assert [b"first", b"second", b"third", None] == [first, assembler.pop(), assembler.pop(), assembler.pop()]


def test_only_what_arrived_is_held() -> None:
    """A size is a claim: no memory is set aside for it."""
    assembler = FrameAssembler(max_frame_bytes=100_000_000)
    assembler.feed(struct.pack(">i", 99_999_999) + b"x")

    assert None is assembler.pop()
    assert 5 == assembler.buffered


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 3])
def test_a_size_that_no_message_has_is_malformed(size: int) -> None:
    """Kafka's InvalidReceiveException; the smallest message is a correlation id."""
    assembler = FrameAssembler(max_frame_bytes=100)
    assembler.feed(struct.pack(">i", size))

    with pytest.raises(MalformedFrame):
        assembler.pop()


def test_a_size_over_the_limit_is_refused_before_its_bytes_arrive() -> None:
    """The limit is inclusive."""
    assembler = FrameAssembler(max_frame_bytes=100)
    assembler.feed(_framed([bytes(100)]) + struct.pack(">i", 101))

    assert bytes(100) == assembler.pop()
    with pytest.raises(FrameTooLarge):
        assembler.pop()
