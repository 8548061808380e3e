"""The quorum's log with its snapshots: where followers may fetch, what is deleted, and what a restart finds."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_core.quorum.batches import Position
from controller_core.quorum.log_view import Validity
from controller_core.quorum.retention import Retention
from controller_core.shell.quorum.metadata_log import MetadataLog
from kafka_log.errors import InvalidAppendError, LogError
from kafka_log.files.text_files import read_topic_id
from kafka_log.format.control_records import snapshot_batches
from kafka_log.format.names import SnapshotId
from kafka_log.format.roll import LogSettings
from tests.kafka_log.batches import batch, fast_folder

SETTINGS = LogSettings(segment_bytes=1_000)
FOREVER = Retention(max_bytes=-1, max_age_ms=-1)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that does not exist yet."""
    with fast_folder() as empty:
        yield empty / "__cluster_metadata-0"


def filled(folder: Path, *, retention: Retention = FOREVER, now_s: float = 0) -> MetadataLog:
    """Open a log with 10 records of epoch 1, 10 of epoch 3 and 10 of epoch 4, each in a batch of two."""
    log = MetadataLog(folder, SETTINGS, retention=retention, clock=lambda: now_s)
    for number in range(15):
        log.append_as_leader(batch(0, records=2, size_bytes=50), (1, 3, 4)[number // 5])
    return log


def add_snapshot(log: MetadataLog, offset: int, epoch: int, *, timestamp_ms: int = 0, size_bytes: int = 0) -> None:
    """Write a snapshot of the records before an offset."""
    writer = log.create_snapshot(SnapshotId(offset, epoch), high_watermark=log.end_offset)
    assert writer is not None
    for part in snapshot_batches(
        [bytes(size_bytes)], epoch=epoch, timestamp_ms=1, last_contained_timestamp_ms=timestamp_ms
    ):
        writer.append(part)
    log.finish_snapshot(writer)


def test_a_log_has_the_id_of_its_topic_and_refuses_another(folder: Path) -> None:
    """Inconsistent topic ids: a folder of another purpose, such as TestRaftServer's."""
    MetadataLog(folder).close()

    assert read_topic_id(folder) == uuid.UUID(int=1)
    with pytest.raises(LogError, match="belongs to the topic with id"):
        MetadataLog(folder, topic_id=uuid.UUID(int=2))


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (0, 0, (Validity.VALID, Position(0, 0))),
        (10, 1, (Validity.VALID, Position(10, 1))),
        (30, 4, (Validity.VALID, Position(30, 4))),
        (12, 1, (Validity.DIVERGING, Position(10, 1))),
        (12, 2, (Validity.DIVERGING, Position(10, 1))),
        (31, 4, (Validity.DIVERGING, Position(30, 4))),
        (30, 5, (Validity.DIVERGING, Position(30, 4))),
    ],
)
def test_a_follower_may_fetch_where_its_log_agrees_and_else_gets_the_divergence(
    folder: Path, offset: int, epoch: int, expected: tuple[Validity, Position]
) -> None:
    """Q8, Q10: RaftLog.validateOffsetAndEpoch."""
    log = filled(folder)

    assert log.summary().validate(Position(offset, epoch)) == expected
    log.close()


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (0, 0, (Validity.SNAPSHOT, Position(24, 4))),
        (19, 3, (Validity.SNAPSHOT, Position(24, 4))),
        (20, 1, (Validity.SNAPSHOT, Position(24, 4))),
        (22, 1, (Validity.SNAPSHOT, Position(24, 4))),
        (20, 3, (Validity.VALID, Position(20, 3))),
        (20, 4, (Validity.SNAPSHOT, Position(24, 4))),
        (22, 3, (Validity.DIVERGING, Position(20, 3))),
        (24, 4, (Validity.VALID, Position(24, 4))),
    ],
)
def test_a_follower_below_the_logs_start_gets_the_latest_snapshot(
    folder: Path, offset: int, epoch: int, expected: tuple[Validity, Position]
) -> None:
    """Also at the start itself, if its last epoch is not that of the oldest snapshot."""
    log = filled(folder)
    add_snapshot(log, 20, 3)
    add_snapshot(log, 24, 4)
    assert log.delete_before(SnapshotId(20, 3), high_watermark=30)

    assert log.summary().validate(Position(offset, epoch)) == expected
    log.close()


def test_what_a_fetch_response_cuts_or_has_of_a_later_epoch_is_not_appended(folder: Path) -> None:
    """KAFKA-18723: the leader may answer after it lost its place."""
    log = MetadataLog(folder, SETTINGS)
    first, second, later = batch(0, epoch=2), batch(1, epoch=2), batch(2, epoch=3)

    appended = log.append_as_follower(first + second + later[:-5], 3)
    assert appended is not None
    assert (appended.first_offset, appended.last_offset) == (0, 1)
    assert log.append_as_follower(later, 2) is None
    assert log.append_as_follower(later[:30], 3) is None
    assert log.append_as_follower(b"", 3) is None
    with pytest.raises(InvalidAppendError):
        log.append_as_follower(later[:-1] + b"?", 3)
    assert (log.end_offset, log.last_fetched_epoch) == (2, 2)
    log.close()


def test_nothing_below_the_high_watermark_is_truncated(folder: Path) -> None:
    """Q10."""
    log = filled(folder)

    with pytest.raises(LogError, match="Refused to truncate the log to offset 18, below the high watermark 20"):
        log.truncate_to(18, high_watermark=20)
    log.truncate_to(20, high_watermark=20)
    assert (log.end_offset, log.last_fetched_epoch) == (20, 3)
    log.close()


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (SnapshotId(30, 4), "above the high watermark 28"),
        (SnapshotId(12, 1), "it is diverging from this log"),
        (SnapshotId(13, 3), "in the middle of the batch at offset 12"),
    ],
)
def test_a_snapshot_is_of_committed_records_of_this_log_and_ends_with_a_batch(
    folder: Path, snapshot: SnapshotId, reason: str
) -> None:
    """Q18; KafkaRaftLog.createNewSnapshot."""
    log = filled(folder)

    with pytest.raises(LogError, match=reason):
        log.create_snapshot(snapshot, high_watermark=28)
    log.close()


def test_a_snapshot_that_exists_or_ends_below_the_logs_start_is_not_created(folder: Path) -> None:
    """Nothing is to be done for it."""
    log = filled(folder)
    add_snapshot(log, 10, 1)
    add_snapshot(log, 20, 3)
    log.delete_before(SnapshotId(20, 3), high_watermark=30)

    assert log.create_snapshot(SnapshotId(20, 3), high_watermark=30) is None
    assert log.create_snapshot(SnapshotId(8, 1), high_watermark=30) is None
    log.close()


def test_a_snapshot_is_read_by_position_until_it_is_deleted(folder: Path) -> None:
    """FetchSnapshot: SNAPSHOT_NOT_FOUND afterwards."""
    log = filled(folder)
    add_snapshot(log, 10, 1)
    add_snapshot(log, 20, 3)
    reader = log.open_snapshot(SnapshotId(10, 1))
    assert reader is not None
    log.delete_before(SnapshotId(20, 3), high_watermark=30)

    assert len(reader.read(10, 20)) == 20
    reader.close()
    assert log.open_snapshot(SnapshotId(10, 1)) is None
    assert [path.name for path in folder.glob("*.checkpoint*")] == ["00000000000000000020-0000000003.checkpoint"]
    log.close()


def test_a_fetched_snapshot_above_the_end_empties_the_log(folder: Path) -> None:
    """Also after a restart: a voter may be killed between the two steps."""
    log = filled(folder)
    writer = log.fetch_snapshot(SnapshotId(50, 6))
    assert writer is not None
    writer.append(b"".join(snapshot_batches([], epoch=6, timestamp_ms=1, last_contained_timestamp_ms=1)))
    log.finish_snapshot(writer)
    log.close()
    log = MetadataLog(folder, SETTINGS)

    assert (log.start_offset, log.end_offset, log.last_fetched_epoch) == (50, 50, 6)
    assert log.summary().validate(Position(50, 6)) == (Validity.VALID, Position(50, 6))
    log.append_as_leader(batch(0), 7)
    log.close()
    log = MetadataLog(folder, SETTINGS)
    assert (log.start_offset, log.end_offset, log.last_fetched_epoch) == (50, 51, 7)
    assert not log.truncate_to_latest_snapshot()
    log.close()


def test_a_log_that_starts_behind_its_latest_snapshot_is_refused(folder: Path) -> None:
    """The records between are missing: a file was deleted. What is left may still help, so the start deletes nothing."""
    log = filled(folder)
    add_snapshot(log, 20, 3)
    add_snapshot(log, 30, 4)
    log.delete_before(SnapshotId(30, 4), high_watermark=30)
    log.close()
    for path in folder.glob("*-*.checkpoint"):
        path.rename(path.with_suffix(".checkpoint.deleted"))
    before = sorted(folder.iterdir())

    with pytest.raises(LogError, match="but its latest snapshot is missing"):
        MetadataLog(folder, SETTINGS)
    assert sorted(folder.iterdir()) == before


def test_cleaning_by_size_deletes_the_oldest_snapshots_and_keeps_one(folder: Path) -> None:
    """metadata.max.retention.bytes counts log and snapshots."""
    log = filled(folder, retention=Retention(max_bytes=4_500, max_age_ms=-1))
    assert not log.clean(high_watermark=30)
    for offset, epoch in ((6, 1), (10, 1), (20, 3), (30, 4)):
        add_snapshot(log, offset, epoch, size_bytes=600)

    assert log.clean(high_watermark=20)
    assert (log.start_offset, log.snapshots[0], log.latest_snapshot) == (10, (10, 1), (30, 4))
    log.append_as_leader(batch(0, size_bytes=900), 5)
    log.append_as_leader(batch(0, size_bytes=900), 5)
    log.append_as_leader(batch(0, size_bytes=900), 5)
    assert log.clean(high_watermark=20)
    assert log.snapshots[0] == (20, 3)
    assert not log.clean(high_watermark=20)
    assert log.clean(high_watermark=30)
    assert (log.snapshots[0], log.latest_snapshot) == ((30, 4), (30, 4))
    assert not log.clean(high_watermark=30)
    log.close()


def test_cleaning_by_age_deletes_snapshots_whose_last_record_is_too_old(folder: Path) -> None:
    """metadata.max.retention.ms, by the timestamp in a snapshot's header."""
    log = filled(folder, retention=Retention(max_bytes=-1, max_age_ms=500), now_s=2)
    add_snapshot(log, 10, 1, timestamp_ms=1_000)
    add_snapshot(log, 20, 3, timestamp_ms=1_499)
    add_snapshot(log, 30, 4, timestamp_ms=1_500)

    assert log.snapshots == ((10, 1), (20, 3), (30, 4))
    assert log.clean(high_watermark=30)
    assert (log.start_offset, log.snapshots, log.epochs.entries) == (30, ((30, 4),), ((4, 30),))
    log.append(batch(30, epoch=5))
    assert log.last_fetched_epoch == 5
    log.close()
