"""Setting of the C library's allocator for a process that takes and gives records: what it frees is used again.

By default glibc returns the memory of a request of 1 MiB to the kernel, and gets it back with a page fault for every 4 KiB of the next one: 40
percent of the processor time of such requests. Other C libraries are left as they are.
"""

import ctypes

KEPT_BYTES = 64 * 1024 * 1024
"""Freed memory at the end of the heap that is kept: two responses to a follower (replica.fetch.response.max.bytes, 10 MiB) and as many Produce
requests of 1 MiB in flight, with the copies of their records. With half of it a fifth of the time of replication is page faults."""
LARGEST_KEPT_BYTES = 16 * 1024 * 1024
"""Larger blocks are mapped one by one, and returned when they are freed: they are exceptional."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h."""


def keep_freed_memory() -> bool:
    """Let freed memory stay with the process, within a limit; return whether the C library can do that."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES) and mallopt(_MMAP_THRESHOLD, LARGEST_KEPT_BYTES)
    )
