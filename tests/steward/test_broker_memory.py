"""Memory of a light broker: that of requests is used again without page faults."""

import platform
import subprocess
import sys

import pytest

ROUNDS = 50
BLOCKS = 3
PROGRAM = f"""
import resource
from steward.broker_command import KEPT_BLOCK_BYTES, keep_freed_memory

keep_freed_memory(KEPT_BLOCK_BYTES)
for round in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range({ROUNDS}):
        blocks = [b"x" * 2**20 for _ in range({BLOCKS})]
        del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
"""Prints the page faults of rounds that each take and free some MiB, after as many rounds to warm up."""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no mallopt")
def test_freed_memory_of_requests_is_used_again() -> None:
    """By default each round returns its memory to the kernel, and gets it back with a fault for each page of 4 KiB."""
    faults = int(subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True).stdout)

    assert faults < ROUNDS  # 24,000 by default
