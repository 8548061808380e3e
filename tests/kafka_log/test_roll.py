"""When a segment is full."""

from __future__ import annotations

import pytest

from kafka_log.format.roll import (
    LogSettings,
    RollReason,
    SegmentFill,
    drawn_jitter_ms,
    roll_reason,
)

SETTINGS = LogSettings(segment_bytes=1_000, segment_ms=500, segment_jitter_ms=100, index_max_bytes=64)
FILL = SegmentFill(
    base_offset=10,
    size_bytes=900,
    offset_index_bytes=0,
    time_index_bytes=0,
    first_timestamp_ms=5_000,
    created_ms=1_000,
)


def reason(
    fill: SegmentFill, *, size_bytes: int = 100, last_offset: int = 20, timestamp_ms: int = 5_000, now_ms: int = 1_000
) -> RollReason | None:
    """Ask for one batch."""
    return roll_reason(
        fill, SETTINGS, size_bytes=size_bytes, last_offset=last_offset, timestamp_ms=timestamp_ms, now_ms=now_ms
    )


@pytest.mark.parametrize(
    ("fill", "batch", "expected"),
    [
        (FILL, {}, None),
        (FILL, {"size_bytes": 101}, RollReason.SIZE),
        (FILL, {"timestamp_ms": 5_400, "now_ms": 9_000}, None),
        (FILL, {"timestamp_ms": 5_401}, RollReason.AGE),
        (FILL._replace(first_timestamp_ms=-1), {"timestamp_ms": 9_000, "now_ms": 1_400}, None),
        (FILL._replace(first_timestamp_ms=-1), {"now_ms": 1_401}, RollReason.AGE),
        (FILL._replace(size_bytes=0, first_timestamp_ms=-1), {"now_ms": 9_000}, None),
        (FILL._replace(offset_index_bytes=56), {}, None),
        (FILL._replace(offset_index_bytes=64), {}, RollReason.OFFSET_INDEX),
        (FILL._replace(time_index_bytes=36), {}, None),
        (FILL._replace(time_index_bytes=48), {}, RollReason.TIME_INDEX),
        (FILL, {"last_offset": 10 + 2**31 - 1}, None),
        (FILL, {"last_offset": 10 + 2**31}, RollReason.RELATIVE_OFFSET),
    ],
)
def test_a_segment_is_rolled_for_one_reason(
    fill: SegmentFill, batch: dict[str, int], expected: RollReason | None
) -> None:
    """LogSegment.shouldRoll. Of five index entries in 64 bytes the time index keeps the last one for the segment's end."""
    assert reason(fill, **batch) is expected


def test_a_jitter_is_below_its_limit_and_below_the_age() -> None:
    """LogConfig.randomSegmentJitter."""
    assert {drawn_jitter_ms(3, 100, drawn) for drawn in range(20)} == {0, 1, 2}
    assert {drawn_jitter_ms(100, 2, drawn) for drawn in range(20)} == {0, 1}
