"""Bounds of the memory that stays in a process; its callers' tests show that page faults go."""

import pytest

from kafka_node.freed_memory import MAX_KEPT_BLOCK_BYTES, keep_freed_memory


@pytest.mark.parametrize("block_bytes", [0, MAX_KEPT_BLOCK_BYTES + 1])
def test_a_block_that_the_allocator_cannot_keep_is_refused(block_bytes: int) -> None:
    """Glibc ignores a block above DEFAULT_MMAP_THRESHOLD_MAX: the call would have no effect."""
    with pytest.raises(ValueError, match="can be kept"):
        keep_freed_memory(block_bytes)
