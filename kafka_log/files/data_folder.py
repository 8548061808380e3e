"""Files of a broker's data folder that concern all of its partitions: offset checkpoints, and the mark of a clean shutdown."""

import logging
from collections.abc import Mapping
from pathlib import Path

from kafka_log.errors import LogWriteError, UnreadableFileError
from kafka_log.files.durable import flush_folder, replace_file
from kafka_log.files.text_files import read_decoded
from kafka_log.format.data_folder_files import (
    decode_clean_shutdown,
    decode_offsets,
    encode_clean_shutdown,
    encode_offsets,
)
from kafka_log.format.names import CLEAN_SHUTDOWN, CLEANED_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS
from kafka_wire.topic_partition import TopicPartition

log = logging.getLogger(__name__)

MAX_CHECKPOINT_BYTES = 64 * 1024 * 1024
"""200,000 partitions of topics with the longest name take 54 MB."""


def read_recovery_points(data_folder: Path) -> dict[TopicPartition, int]:
    """Return the offsets up to which the partitions' logs are on the disk; others are checked from their first segment."""
    return _read_offsets(data_folder / RECOVERY_POINTS)


def read_log_start_offsets(data_folder: Path) -> dict[TopicPartition, int]:
    """Return the start offsets of logs that start behind the start of their first segment (DeleteRecords)."""
    return _read_offsets(data_folder / LOG_START_OFFSETS)


def read_high_watermarks(data_folder: Path) -> dict[TopicPartition, int]:
    """Return the high watermarks."""
    return _read_offsets(data_folder / HIGH_WATERMARKS)


def read_cleaned_offsets(data_folder: Path) -> dict[TopicPartition, int]:
    """Return the offsets up to which logs are compacted."""
    return _read_offsets(data_folder / CLEANED_OFFSETS)


def write_recovery_points(data_folder: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the recovery points. Raises LogWriteError and FlushFailedError, as the others."""
    replace_file(data_folder / RECOVERY_POINTS, encode_offsets(offsets))


def write_log_start_offsets(data_folder: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the start offsets."""
    replace_file(data_folder / LOG_START_OFFSETS, encode_offsets(offsets))


def write_high_watermarks(data_folder: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the high watermarks."""
    replace_file(data_folder / HIGH_WATERMARKS, encode_offsets(offsets))


def write_cleaned_offsets(data_folder: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the offsets up to which logs are compacted."""
    replace_file(data_folder / CLEANED_OFFSETS, encode_offsets(offsets))


def mark_clean_shutdown(data_folder: Path, broker_epoch: int) -> None:
    """Write the mark, after all logs were closed and all checkpoints were written."""
    replace_file(data_folder / CLEAN_SHUTDOWN, encode_clean_shutdown(broker_epoch))


def take_clean_shutdown(data_folder: Path) -> int | None:
    """Remove the mark of the last shutdown and return its broker epoch; None after an unclean shutdown.

    When it returns, the mark is gone from the disk, so that a crash from now on is not taken for a clean shutdown. Raises LogWriteError.
    """
    path = data_folder / CLEAN_SHUTDOWN
    try:
        epoch = decode_clean_shutdown(path.read_bytes())
        path.unlink()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogWriteError(f"Failed to remove {path}: {error.strerror}") from error
    flush_folder(data_folder)
    return epoch


def _read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return a checkpoint's offsets. As in Kafka, a file that cannot be read has none: the logs are read instead."""
    try:
        return read_decoded(path, decode_offsets, MAX_CHECKPOINT_BYTES) or {}
    except UnreadableFileError as error:
        log.warning("Ignoring unreadable offset checkpoint", extra={"path": str(path), "error": str(error)})
        return {}
