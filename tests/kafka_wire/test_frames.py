"""Frames: sizes in front of messages, on a stream that may come in any pieces and from anybody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire.frames import MAX_FRAME_BYTES, FrameSplitter, FrameTooLarge, MalformedFrame, frame_size, with_size
from tests.kafka_wire.effort import examples

MESSAGES = st.lists(st.binary(min_size=4, max_size=40), max_size=5)


@examples(100)
@given(MESSAGES, st.lists(st.integers(1, 50), max_size=30))
def test_messages_come_out_whole_however_the_stream_is_cut(messages: list[bytes], cuts: list[int]) -> None:
    """TCP knows no messages."""
    stream = b"".join(map(with_size, messages))
    splitter = FrameSplitter()
    out: list[bytes] = []
    for cut in [*cuts, len(stream)]:
        out += splitter.feed(stream[:cut])
        stream = stream[cut:]

    assert messages == out
    assert 0 == splitter.held_bytes


def test_a_message_cut_off_is_held() -> None:
    """What is held at a stream's end says that the peer went away in the middle."""
    splitter = FrameSplitter()

    assert [] == list(splitter.feed(with_size(b"12345678")[:-1]))
    assert 11 == splitter.held_bytes


def test_a_size_over_the_limit_is_refused_before_it_is_read() -> None:
    """Kafka's InvalidReceiveException; nothing is set aside for the promise."""
    splitter = FrameSplitter(max_frame_bytes=100)

    with pytest.raises(FrameTooLarge, match="announces 101 bytes, the limit is 100"):
        list(splitter.feed((101).to_bytes(4, "big")))
    assert 100 == frame_size((100).to_bytes(4, "big"), 100)


@pytest.mark.parametrize("prefix", ["ffffffff", "80000000", "00000000", "00000003"])
def test_a_size_that_no_message_has_is_refused(prefix: str) -> None:
    """Negative, or too short for a correlation id."""
    with pytest.raises(MalformedFrame, match="the smallest message has 4"):
        frame_size(bytes.fromhex(prefix))


@pytest.mark.parametrize("hello", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01"])
def test_another_protocol_is_refused_at_its_first_bytes(hello: bytes) -> None:
    """An HTTP request and a TLS hello both read as sizes far over the limit."""
    with pytest.raises(FrameTooLarge, match="without TLS"):
        frame_size(hello)


def test_a_message_over_the_limit_is_not_sent() -> None:
    """The peer would close the connection, and every other request on it would be lost."""
    with pytest.raises(FrameTooLarge, match="split the request"):
        with_size(b"x" * 101, 100)
    assert MAX_FRAME_BYTES == 100 * 1024 * 1024
