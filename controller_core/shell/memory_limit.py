"""Share of the container's memory limit for requests and responses."""

from pathlib import Path

from kafka_node.memory_limit import CGROUP_ROOT, OWN_CGROUP, memory_limit_bytes

BUFFER_SHARE = 4
"""Requests and responses may take a fourth of the limit. Of the chart's 512 MiB that is 128 MiB, which holds one request of the largest
size. An idle controller of 200,000 partitions takes another half, and requests cost up to twice their bytes while they are handled."""
LEAST_BUFFER_BYTES = 16 * 1024 * 1024
"""Size of the largest AlterPartition, whatever the limit is: with less, brokers could not change ISRs."""


def buffer_bytes(usual_bytes: int, root: Path = CGROUP_ROOT, own: Path = OWN_CGROUP) -> int:
    """Return the maximum total size of buffered requests and responses: at most `usual_bytes`."""
    limit = memory_limit_bytes(root, own)
    return usual_bytes if limit is None else max(LEAST_BUFFER_BYTES, min(usual_bytes, limit // BUFFER_SHARE))
