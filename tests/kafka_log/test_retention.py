"""Retention of a partition's log, and deletion after a delay."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_log.errors import OffsetOutOfRangeError
from kafka_log.files.partition_log import PartitionLog
from kafka_log.files.partition_settings import PartitionSettings, broker_log_settings
from kafka_log.format.retention import RetentionReason, RetentionSettings, SegmentAge, deletable_segments
from kafka_wire.records import encode_batch
from tests.kafka_log.judge import NOW_MS
from tests.kafka_log.test_leader_append import record

START, SIZE, AGE = RetentionReason.START_OFFSET, RetentionReason.SIZE, RetentionReason.AGE

SEGMENTS = [
    SegmentAge(0, 10, 100, NOW_MS - 500),
    SegmentAge(10, 20, 100, NOW_MS - 900),
    SegmentAge(20, 30, 100, NOW_MS - 300, is_active=True),
]


@pytest.mark.parametrize(
    ("start_offset", "high_watermark", "settings", "expected"),
    [
        (0, 30, RetentionSettings(retention_ms=-1), []),
        (9, 30, RetentionSettings(retention_ms=-1), []),
        (10, 30, RetentionSettings(retention_ms=-1), [START]),
        (30, 30, RetentionSettings(retention_ms=-1), [START, START]),
        (0, 30, RetentionSettings(retention_ms=-1, retention_bytes=201), []),
        (0, 30, RetentionSettings(retention_ms=-1, retention_bytes=200), [SIZE]),
        (10, 30, RetentionSettings(retention_ms=-1, retention_bytes=200), [START]),
        (0, 30, RetentionSettings(retention_ms=-1, retention_bytes=0), [SIZE, SIZE, SIZE]),
        (0, 29, RetentionSettings(retention_ms=-1, retention_bytes=0), [SIZE, SIZE]),
        (0, 30, RetentionSettings(retention_ms=500), []),
        (0, 30, RetentionSettings(retention_ms=499), [AGE, AGE]),
        (0, 30, RetentionSettings(retention_ms=200), [AGE, AGE, AGE]),
        (0, 30, RetentionSettings(retention_ms=200, deletes=False), []),
        (10, 30, RetentionSettings(retention_ms=200, deletes=False), [START]),
        (10, 30, RetentionSettings(retention_ms=200, retention_bytes=100), [START, SIZE, AGE]),
        (0, 0, RetentionSettings(retention_ms=0), []),
    ],
)
def test_the_oldest_segments_are_deleted_by_start_size_and_age(
    start_offset: int, high_watermark: int, settings: RetentionSettings, expected: list[RetentionReason]
) -> None:
    """UnifiedLog.deleteOldSegments: nothing at or above the high watermark, and by size only what keeps the log at least that large."""
    found = deletable_segments(
        SEGMENTS, settings, log_start_offset=start_offset, high_watermark=high_watermark, now_ms=NOW_MS
    )

    assert found == expected


def test_an_empty_active_segment_stays() -> None:
    """It would only be replaced by its like."""
    segments = [*SEGMENTS[:2], SegmentAge(20, 20, 0, NOW_MS - 9_000, is_active=True)]
    found = deletable_segments(
        segments, RetentionSettings(retention_ms=1), log_start_offset=0, high_watermark=20, now_ms=NOW_MS
    )

    assert found == [AGE, AGE]


class Partition:
    """A log of three segments with a clock."""

    def __init__(self, folder: Path) -> None:
        self.now_ms = NOW_MS
        settings = PartitionSettings(
            log=broker_log_settings(), retention=RetentionSettings(retention_ms=1_000), file_delete_delay_ms=60
        )
        self.log = PartitionLog(folder / "t-0", settings, clock=lambda: self.now_ms / 1_000)
        for _ in range(3):
            self.log.roll()
            self.log.append_as_leader(encode_batch([record(), record(1)]), 0)


def names(folder: Path, suffix: str) -> list[str]:
    """Return the names of files without their suffixes, as numbers."""
    return sorted(path.name.removesuffix(suffix).lstrip("0") or "0" for path in folder.glob(f"*{suffix}"))


def test_deleted_segments_can_be_read_until_the_delay_is_over(tmp_path: Path) -> None:
    """A consumer's fetch may be in progress (file.delete.delay.ms); no file of them is left afterwards."""
    partition = Partition(tmp_path)
    fetched = partition.log.log.locate(0, 1_000)
    partition.now_ms += 1_001
    reasons = partition.log.delete_old_segments(high_watermark=4)

    assert reasons == [AGE, AGE]
    assert (partition.log.start_offset, names(tmp_path / "t-0", ".log.deleted")) == (4, ["0", "2"])
    assert len(fetched.read()) == fetched.size_bytes
    partition.now_ms += 59
    assert partition.log.run_deletions() == 0
    partition.now_ms += 1
    assert partition.log.run_deletions() == 2
    assert [path.name for path in (tmp_path / "t-0").glob("*.deleted")] == []
    partition.log.close()


def test_a_log_whose_segments_are_all_deleted_begins_another_one(tmp_path: Path) -> None:
    """A log always has a segment to append to."""
    partition = Partition(tmp_path)
    partition.now_ms += 1_001

    assert partition.log.delete_old_segments(high_watermark=6) == [AGE, AGE, AGE]
    assert (partition.log.start_offset, partition.log.end_offset, partition.log.log.segment_offsets) == (6, 6, [6])
    assert partition.log.append_as_leader(encode_batch([record()]), 0).first_offset == 6
    partition.log.close()


def test_records_are_deleted_up_to_an_offset_and_segments_below_it_later(tmp_path: Path) -> None:
    """DeleteRecords (KIP-107): not above the high watermark."""
    partition = Partition(tmp_path)

    assert partition.log.raise_start_offset(3, high_watermark=5)
    assert not partition.log.raise_start_offset(2, high_watermark=5)
    with pytest.raises(OffsetOutOfRangeError, match="above the high watermark 5"):
        partition.log.raise_start_offset(6, high_watermark=5)
    with pytest.raises(OffsetOutOfRangeError):
        partition.log.log.read(2, 1)
    assert partition.log.delete_old_segments(high_watermark=5) == [START]
    assert (partition.log.start_offset, partition.log.log.segment_offsets) == (3, [2, 4])
    partition.log.close()


def test_files_of_segments_under_deletion_are_gone_when_the_log_is_opened_again(tmp_path: Path) -> None:
    """A crash, or a shutdown, during the delay."""
    partition = Partition(tmp_path)
    partition.now_ms += 1_001
    partition.log.delete_old_segments(high_watermark=4)
    partition.log.close()

    assert names(tmp_path / "t-0", ".log.deleted") == ["0", "2"]
    PartitionLog(tmp_path / "t-0").close()
    assert [path.name for path in (tmp_path / "t-0").glob("*.deleted")] == []
