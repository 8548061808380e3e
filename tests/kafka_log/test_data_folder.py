"""Files of a broker's data folder that concern all of its partitions."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.errors import UnreadableFileError
from kafka_log.files import data_folder
from kafka_log.format.data_folder_files import (
    UNKNOWN_BROKER_EPOCH,
    decode_clean_shutdown,
    decode_offsets,
    encode_offsets,
)

OFFSETS = {("orders", 0): 42, ("orders", 11): 0, ("a-topic.with_all", 3): 2**62}


@pytest.mark.parametrize(
    ("name", "write", "read"),
    [
        ("recovery-point-offset-checkpoint", data_folder.write_recovery_points, data_folder.read_recovery_points),
        ("log-start-offset-checkpoint", data_folder.write_log_start_offsets, data_folder.read_log_start_offsets),
        ("replication-offset-checkpoint", data_folder.write_high_watermarks, data_folder.read_high_watermarks),
    ],
)
def test_checkpoints_have_kafkas_names_and_are_replaced_as_a_whole(
    tmp_path: Path, name: str, write: object, read: object
) -> None:
    """OffsetCheckpointFile."""
    assert callable(write)
    assert callable(read)
    assert read(tmp_path) == {}
    write(tmp_path, OFFSETS)
    write(tmp_path, {("orders", 0): 43})

    assert (tmp_path / name).read_text() == "0\n1\norders 0 43\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert read(tmp_path) == {("orders", 0): 43}


@pytest.mark.parametrize(
    "content", ["1\n0\n", "0\n2\norders 0 1\n", "0\n1\norders 0\n", "0\n1\norders 0 x\n", "x", "0\n1\na b 0 1\n"]
)
def test_a_checkpoint_that_cannot_be_read_is_refused_and_ignored_at_the_start(tmp_path: Path, content: str) -> None:
    """LogManager.loadLogs: the logs are then read from their first segment."""
    with pytest.raises(UnreadableFileError):
        decode_offsets(content.encode())
    (tmp_path / "recovery-point-offset-checkpoint").write_text(content)

    assert data_folder.read_recovery_points(tmp_path) == {}


@given(st.binary(max_size=60))
def test_any_bytes_are_offsets_or_an_error(content: bytes) -> None:
    """Whatever a disk returns."""
    with contextlib.suppress(UnreadableFileError):
        decode_offsets(content)
    assert isinstance(decode_clean_shutdown(content), int)


def test_offsets_are_read_as_they_are_written() -> None:
    """Also none at all, and Kafka's empty file."""
    assert decode_offsets(encode_offsets(OFFSETS)) == OFFSETS
    assert decode_offsets(encode_offsets({})) == decode_offsets(b"") == {}


def test_the_mark_of_a_clean_shutdown_counts_once(tmp_path: Path) -> None:
    """CleanShutdownFileHandler; the epoch shows the controller that nothing was lost (KIP-966)."""
    assert data_folder.take_clean_shutdown(tmp_path) is None
    data_folder.mark_clean_shutdown(tmp_path, 7)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":7}'

    assert data_folder.take_clean_shutdown(tmp_path) == 7
    assert data_folder.take_clean_shutdown(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b'{"brokerEpoch":"7"}', b'{"version":0}'])
def test_a_mark_without_an_epoch_is_still_a_mark(tmp_path: Path, content: bytes) -> None:
    """Brokers before Kafka 3.7 leave it empty."""
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)

    assert data_folder.take_clean_shutdown(tmp_path) == UNKNOWN_BROKER_EPOCH
