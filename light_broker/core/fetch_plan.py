"""Bytes that a Fetch request gets from each partition, and the offset up to which it may read.

Partitions are read in their order until max.bytes is used up. The first partition with records gives at least one whole batch, however large,
so that each client gets on; a later one gives nothing if its first batch exceeds what is left. Source: Kafka's ReplicaManager.readFromLog.
"""

from dataclasses import dataclass

from kafka_wire import ErrorCode
from light_broker.core.replica_requests import FetchParams, ReadLimit, ReadResult


def last_stable_offset(first_unstable_offset: int | None, high_watermark: int) -> int:
    """Return the offset below which every transaction is decided and replicated.

    >>> last_stable_offset(5, 9), last_stable_offset(12, 9), last_stable_offset(None, 9)
    (5, 9, 9)
    """
    return high_watermark if first_unstable_offset is None else min(first_unstable_offset, high_watermark)


def limit_offset(limit: ReadLimit, *, end_offset: int, high_watermark: int, stable_offset: int) -> int:
    """Return the offset below which a read sees records (B3)."""
    if limit is ReadLimit.LOG_END:
        return end_offset
    return stable_offset if limit is ReadLimit.LAST_STABLE_OFFSET else high_watermark


@dataclass(slots=True)
class Budget:
    """Bytes that a request may still get."""

    remaining_bytes: int
    is_empty: bool = True
    """Whether no partition has given records yet."""

    def limit(self, partition_max_bytes: int) -> int:
        """Return how much a partition gives at most, apart from its first batch."""
        return max(min(self.remaining_bytes, partition_max_bytes), 0)

    def takes(self, size_bytes: int, limit_bytes: int) -> bool:
        """Return whether records of a partition are returned, and subtract them.

        A log returns its first batch whole: records above the limit are that one batch.
        """
        if size_bytes == 0 or (size_bytes > limit_bytes and not self.is_empty):
            return False
        self.is_empty = False
        self.remaining_bytes = max(self.remaining_bytes - size_bytes, 0)
        return True


def answers_at_once(params: FetchParams, results: list[ReadResult], size_bytes: int) -> bool:
    """Return whether a request is answered without waiting for more records. Source: Kafka's ReplicaManager.fetchMessages."""
    return (
        params.max_wait_ms <= 0
        or not results
        or size_bytes >= params.min_bytes
        or any(
            result.error is not ErrorCode.NONE or result.diverging is not None or result.preferred_read_replica >= 0
            for result in results
        )
    )
