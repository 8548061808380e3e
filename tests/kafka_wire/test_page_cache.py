"""Pages in the page cache, as cachestat(2) reports them."""

import os
import platform
from pathlib import Path

import pytest

from kafka_wire import page_cache

SIZE = 1_000_000
IS_KNOWN = platform.system() == "Linux" and tuple(map(int, platform.release().split(".")[:2])) >= (6, 5)
"""Whether this kernel has the system call: otherwise nothing is known to be cached, and slices are copied."""


@pytest.fixture
def descriptor(tmp_path: Path) -> int:
    """A file whose pages are on the disk, and cached."""
    path = tmp_path / "segment"
    path.write_bytes(bytes(SIZE))
    opened = os.open(path, os.O_RDONLY)
    os.fsync(opened)
    return opened


def test_what_was_written_is_cached(descriptor: int) -> None:
    """Also a range that begins and ends within pages."""
    found = [page_cache.is_cached(descriptor, *part) for part in [(0, SIZE), (4_095, 2), (5, 10), (SIZE - 1, 1)]]

    assert found == [IS_KNOWN] * 4


def test_nothing_is_cached_behind_the_end(descriptor: int) -> None:
    """A file that was cut: the read finds that out."""
    assert not page_cache.is_cached(descriptor, 0, 2 * SIZE)
    assert not page_cache.is_cached(descriptor, 0, 0)


def test_a_file_that_cannot_be_examined_is_not_known_to_be_cached() -> None:
    """A closed descriptor."""
    assert not page_cache.is_cached(-1, 0, SIZE)


def test_one_page_that_is_missing_is_noticed(tmp_path: Path) -> None:
    """Sending the range would wait for the disk."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(bytes(SIZE))
        file.truncate(2 * SIZE)  # a hole, which is in no page of the cache until it is read
    opened = os.open(path, os.O_RDONLY)

    assert not page_cache.is_cached(opened, SIZE - 10, 100_000)
