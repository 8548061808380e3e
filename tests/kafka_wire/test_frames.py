"""Frames: sizes in front of messages, from anybody who can open a connection."""

import pytest

from kafka_wire.frames import MAX_FRAME_BYTES, FrameTooLarge, MalformedFrame, frame_size


def test_a_size_over_the_limit_is_refused_before_it_is_read() -> None:
    """Kafka's InvalidReceiveException; nothing is set aside for the promise."""
    with pytest.raises(FrameTooLarge, match="announces 101 bytes, the limit is 100"):
        frame_size((101).to_bytes(4, "big"), 100)
    assert frame_size((100).to_bytes(4, "big"), 100) == 100


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


def test_the_limit_is_kafkas_own() -> None:
    """socket.request.max.bytes: what stock peers hold themselves to."""
    assert MAX_FRAME_BYTES == 104_857_600
