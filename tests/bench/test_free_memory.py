"""The memory that the page cache occupies before a measured load."""

import pytest

from bench import free_memory
from bench.free_memory import CHUNK_BYTES, LEFT_FREE_BYTES, occupy_free_memory
from kafka_wire.page_cache import is_cached


def test_what_is_free_beyond_a_rest_is_filled_with_pages_that_were_not_read_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page that is read twice would be kept longer than those of the measured load."""
    begin = next(free_memory._positions())
    monkeypatch.setattr(free_memory, "_free_bytes", lambda: LEFT_FREE_BYTES + 2 * CHUNK_BYTES)
    occupy_free_memory()

    assert not is_cached(free_memory._holes().fileno(), begin, CHUNK_BYTES)
    assert is_cached(free_memory._holes().fileno(), begin + CHUNK_BYTES, 2 * CHUNK_BYTES)
    assert next(free_memory._positions()) == begin + 3 * CHUNK_BYTES


def test_where_little_is_free_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel would drop pages that a load needs."""
    begin = next(free_memory._positions())
    monkeypatch.setattr(free_memory, "_free_bytes", lambda: LEFT_FREE_BYTES - 1)
    occupy_free_memory()

    assert next(free_memory._positions()) == begin + CHUNK_BYTES
