"""Snapshots of the quorum's log: ids that are refused, and what a snapshot replaces (Kafka's KafkaRaftLogTest and MockLogTest)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_core.shell.quorum.metadata_log import MetadataLog
from kafka_log.errors import FlushFailedError, LogError
from kafka_log.files import snapshots
from kafka_log.files.snapshots import SnapshotWriter
from kafka_log.format.names import SnapshotId, snapshot_name
from kafka_log.format.roll import LogSettings
from tests.kafka_log.batches import batch, fast_folder


@pytest.fixture
def log() -> Iterator[MetadataLog]:
    """A log with five records of epoch 1, five of epoch 3, and ten of epoch 4, in batches of five."""
    with fast_folder() as folder:
        opened = MetadataLog(folder / "__cluster_metadata-0", LogSettings(segment_bytes=1_000))
        for epoch in (1, 3, 4, 4):
            opened.append_as_leader(batch(0, records=5), epoch)
        yield opened
        opened.close()


def written(log: MetadataLog, snapshot: SnapshotId) -> None:
    """Write an empty snapshot, whatever the log has."""
    writer = log.fetch_snapshot(snapshot)
    assert isinstance(writer, SnapshotWriter)
    log.finish_snapshot(writer)


@pytest.mark.parametrize("snapshot", [SnapshotId(5, 1), SnapshotId(10, 3), SnapshotId(15, 4), SnapshotId(20, 4)])
def test_a_snapshot_may_end_with_any_batch_in_the_epoch_of_its_last_record(
    log: MetadataLog, snapshot: SnapshotId
) -> None:
    """KafkaRaftLogTest.testCreateSnapshotFromEndOffset."""
    writer = log.create_snapshot(snapshot, high_watermark=20)

    assert writer is not None
    log.finish_snapshot(writer)
    assert log.latest_snapshot == snapshot


@pytest.mark.parametrize(
    "snapshot",
    [
        SnapshotId(1, 2),  # no such epoch
        SnapshotId(5, 2),
        SnapshotId(10, 2),
        SnapshotId(10, 1),  # an earlier epoch
        SnapshotId(20, 3),
        SnapshotId(20, 5),  # a later one
    ],
)
def test_a_snapshot_has_the_epoch_of_its_last_record(log: MetadataLog, snapshot: SnapshotId) -> None:
    """KafkaRaftLogTest.testCreateSnapshotMuchLaterEpoch, ...DivergingEpoch, ...OlderEpoch, ...WithMissingEpoch."""
    with pytest.raises(LogError, match="it is diverging from this log"):
        log.create_snapshot(snapshot, high_watermark=20)
    assert (log.snapshots, log.latest_snapshot) == ((), None)


def test_no_snapshot_of_records_that_are_not_committed_is_made(log: MetadataLog) -> None:
    """KafkaRaftClientSnapshotTest.testCreateSnapshotAsLeaderWithInvalidSnapshotId: also while nothing is known as committed."""
    for high_watermark in (0, 19):
        with pytest.raises(LogError, match=f"above the high watermark {high_watermark}"):
            log.create_snapshot(SnapshotId(20, 4), high_watermark=high_watermark)


def test_nothing_is_deleted_for_a_snapshot_that_does_not_exist_or_is_not_committed(log: MetadataLog) -> None:
    """KafkaRaftLogTest.testDeleteNonExistentSnapshot, MockLogTest.testFailToIncreaseLogStartPastHighWatermark."""
    written(log, SnapshotId(20, 4))

    assert not log.delete_before(SnapshotId(10, 3), high_watermark=20)
    assert not log.delete_before(SnapshotId(20, 4), high_watermark=19)
    assert (log.start_offset, log.end_offset, log.last_fetched_epoch) == (0, 20, 4)
    assert log.open_snapshot(SnapshotId(10, 3)) is None


@pytest.mark.parametrize("snapshot", [SnapshotId(20, 3), SnapshotId(15, 4), SnapshotId(20, 4)])
def test_a_snapshot_of_what_the_log_has_replaces_nothing(log: MetadataLog, snapshot: SnapshotId) -> None:
    """KafkaRaftLogTest.testDoesntTruncateFully."""
    written(log, snapshot)

    assert not log.truncate_to_latest_snapshot()
    assert (log.start_offset, log.end_offset) == (0, 20)


@pytest.mark.parametrize("snapshot", [SnapshotId(21, 4), SnapshotId(7, 5)])
def test_a_snapshot_that_is_longer_than_the_log_replaces_it_with_all_older_ones(
    log: MetadataLog, snapshot: SnapshotId
) -> None:
    """KafkaRaftLogTest.testTruncateFullyToLatestSnapshot, testTruncateWillRemoveOlderSnapshot: by epoch, then by offset."""
    for older in (SnapshotId(5, 1), SnapshotId(6, 3)):
        written(log, older)
    written(log, snapshot)

    assert log.truncate_to_latest_snapshot()
    assert (log.start_offset, log.end_offset, log.last_fetched_epoch) == (snapshot.offset, *snapshot)
    summary = log.summary()
    assert (log.snapshots, summary.high_watermark, summary.flushed_offset) == ((snapshot,), *[snapshot.offset] * 2)
    assert sorted(path.name for path in log.folder.glob("*-*.checkpoint*")) == [
        f"{snapshot.offset:020d}-{snapshot.epoch:010d}.checkpoint"
    ]


def test_a_snapshot_that_cannot_be_flushed_is_not_readable(log: MetadataLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """NotifyingRawSnapshotWriterTest.testFailingFreeze: it is known only once it is whole on disk."""
    writer = log.create_snapshot(SnapshotId(5, 1), high_watermark=20)
    assert writer is not None

    def fail(_: int, path: Path) -> None:
        raise FlushFailedError(f"Failed to flush {path}.")

    monkeypatch.setattr(snapshots, "flush_file", fail)
    with pytest.raises(FlushFailedError):
        log.finish_snapshot(writer)
    writer.close()

    assert (log.snapshots, log.open_snapshot(SnapshotId(5, 1))) == ((), None)
    assert list(log.folder.glob("*-*.checkpoint*")) == []


def test_a_snapshot_whose_file_was_deleted_is_not_opened(log: MetadataLog) -> None:
    """KafkaRaftLogTest.testReadMissingSnapshotFile."""
    written(log, SnapshotId(5, 1))
    (log.folder / snapshot_name(SnapshotId(5, 1))).unlink()

    assert log.open_snapshot(SnapshotId(5, 1)) is None
