"""Frame sizes, which any client can send."""

import pytest

from kafka_wire.frames import MAX_FRAME_BYTES, FrameTooLarge, MalformedFrame, frame_size


def test_a_frame_over_the_limit_is_rejected_before_it_is_read() -> None:
    """Kafka's InvalidReceiveException; no memory is allocated for it."""
    with pytest.raises(FrameTooLarge, match="announces 101 bytes, the limit is 100"):
        frame_size((101).to_bytes(4, "big"), 100)
    assert frame_size((100).to_bytes(4, "big"), 100) == 100


@pytest.mark.parametrize("prefix", ["ffffffff", "80000000", "00000000", "00000003"])
def test_an_impossible_frame_size_is_rejected(prefix: str) -> None:
    """Negative, or too short for a correlation id."""
    with pytest.raises(MalformedFrame, match="the smallest message has 4"):
        frame_size(bytes.fromhex(prefix))


@pytest.mark.parametrize("hello", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01"])
def test_another_protocol_is_rejected_at_its_first_bytes(hello: bytes) -> None:
    """An HTTP request and a TLS hello both decode to sizes far over the limit."""
    with pytest.raises(FrameTooLarge, match="without TLS"):
        frame_size(hello)


def test_the_limit_is_kafkas_default() -> None:
    """socket.request.max.bytes: the limit of peers with default settings."""
    assert MAX_FRAME_BYTES == 104_857_600
