"""File names in a partition's folder, and which of them name a snapshot (Kafka's SnapshotsTest)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.files.snapshots import SnapshotWriter, delete_snapshot, write_snapshot
from kafka_log.format.names import (
    CHECKPOINT_SUFFIX,
    DELETED_CHECKPOINT_SUFFIX,
    SnapshotId,
    snapshot_name,
    snapshot_of,
)

IDS = st.builds(SnapshotId, st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1))


@given(IDS, st.sampled_from([CHECKPOINT_SUFFIX, DELETED_CHECKPOINT_SUFFIX]))
def test_a_snapshots_name_is_read_as_it_is_written(snapshot: SnapshotId, suffix: str) -> None:
    """testValidSnapshotFilename, testValidDeletedSnapshotFilename: an offset of 64 bits has 19 digits at most."""
    assert snapshot_of(snapshot_name(snapshot, suffix)) == (snapshot, suffix)


def test_a_partial_snapshot_is_recognized(tmp_path: Path) -> None:
    """Case testValidPartialSnapshotFilename: its name has a random part."""
    with SnapshotWriter(tmp_path, SnapshotId(2**31, 7)) as writer:
        assert snapshot_of(writer.path.name) == (SnapshotId(2**31, 7), ".checkpoint.part")


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000000.log",
        "00000000000000000000.snapshot",
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "bootstrap.checkpoint",
        "00000000000000000001-0000000001.checkpoint.old",
    ],
)
def test_other_files_are_no_snapshots(name: str) -> None:
    """Case testInvalidSnapshotFilenames."""
    assert snapshot_of(name) is None


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_deleted_snapshot_leaves_no_file(tmp_path: Path, *, is_renamed: bool) -> None:
    """Case testDeleteSnapshot: also where a crash came between the renaming and the deletion; the next start removes that one."""
    snapshot = SnapshotId(20, 2)
    path = write_snapshot(tmp_path, snapshot, [b"content"])
    if is_renamed:
        path.rename(tmp_path / snapshot_name(snapshot, DELETED_CHECKPOINT_SUFFIX))
    delete_snapshot(tmp_path, snapshot)

    assert [path.name for path in tmp_path.iterdir()] == (
        [snapshot_name(snapshot, DELETED_CHECKPOINT_SUFFIX)] if is_renamed else []
    )
