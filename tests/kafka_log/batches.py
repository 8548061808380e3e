"""Batches and folders for the tests of kafka_log."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kafka_wire.records import Record, encode_batch

SHARED_MEMORY = Path("/dev/shm")
"""A file system in memory."""


@contextlib.contextmanager
def fast_folder() -> Iterator[Path]:
    """Yield an empty folder in memory where there is one, since tests flush thousands of times."""
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def batch(offset: int, *, records: int = 1, size_bytes: int = 10, epoch: int = 0, timestamp_ms: int = 1_000) -> bytes:
    """Encode a batch; each record has a value of `size_bytes`, and all have the same timestamp."""
    value = bytes(index % 251 for index in range(size_bytes))
    return encode_batch(
        [Record(offset + index, timestamp_ms, None, value) for index in range(records)], partition_leader_epoch=epoch
    )
