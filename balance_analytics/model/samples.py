"""One sample of a cluster, in columns: a row for each partition, ordered by topic and partition.

200,000 partitions need 25 MB in columns; as objects they would need half a gigabyte. Unknown values are UNKNOWN here, and null in
messages and files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

UNKNOWN = -1
"""An offset, size or sum that could not be read; those of Kafka are never negative."""
NO_BROKER = -1
"""The leader of a partition without one, and the padding of lists of broker ids on the right."""


class TopicSpan(NamedTuple):
    """One topic's rows, from `begin` to `end`, which is excluded."""

    name: str
    sampled_at_ms: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """One sample. Columns have shape (n,), except lists of brokers and of sizes, which have shape (n, longest)."""

    cluster_id: str
    round_ms: int
    """Planned time of the sample, in Unix milliseconds."""
    topics: tuple[str, ...]
    first_row: Longs
    """Shape (topics + 1,): first row of each topic, and the number of rows."""
    sampled_at_ms: Longs
    """Shape (topics,): time at which the last of a topic's end offsets was read, or the start of the sample if none was."""
    partition: Ints
    leader: Ints
    leader_epoch: Ints
    replicas: Ints
    isr: Ints
    start_offset: Longs
    end_offset: Longs
    size_bytes: Longs
    """Of each replica, in the order of `replicas`."""
    committed_offset_sum: Longs
    """Over all consumer groups; UNKNOWN if one of them could not be read."""
    committed_groups: Ints

    def __post_init__(self) -> None:
        count = int(self.first_row[-1])
        if len(self.first_row) != len(self.topics) + 1 or len(self.sampled_at_ms) != len(self.topics):
            raise ValueError(
                f"{len(self.topics)} topics, {len(self.first_row)} bounds, {len(self.sampled_at_ms)} times"
            )
        by_row = (self.leader, self.leader_epoch, self.replicas, self.isr, self.start_offset, self.end_offset)
        for column in (self.partition, *by_row, self.size_bytes, self.committed_offset_sum, self.committed_groups):
            if len(column) != count:
                raise ValueError(f"a column has {len(column)} rows, expected {count}")
        if self.size_bytes.shape != self.replicas.shape:
            raise ValueError(f"sizes of shape {self.size_bytes.shape} for replicas of shape {self.replicas.shape}")

    def __len__(self) -> int:
        return len(self.partition)

    def spans(self) -> Iterator[TopicSpan]:
        """Yield the span of each topic's rows."""
        bounds, times = self.first_row.tolist(), self.sampled_at_ms.tolist()
        for name, at_ms, begin, end in zip(self.topics, times, bounds[:-1], bounds[1:], strict=True):
            yield TopicSpan(name, at_ms, begin, end)


class PartitionRows:
    """Index of rows by topic and partition, for lookups of many rows at a time."""

    def __init__(self, topics: tuple[str, ...], first_row: Longs, partition: Ints) -> None:
        """Index rows that are ordered by topic and partition."""
        self._topics = {name: at for at, name in enumerate(topics)}
        self._keys = _keys(np.repeat(np.arange(len(topics)), np.diff(first_row)), partition)

    def find(self, topics: tuple[str, ...], topic_rows: Longs, partition: Ints) -> Longs:
        """Return the row of each partition, -1 if there is none.

        `topic_rows` has the number of partitions of each topic, which are consecutive in `partition`.
        """
        at = np.array([self._topics.get(name, -1) for name in topics], np.int64)
        wanted = _keys(np.repeat(at, topic_rows), partition)
        if not len(self._keys):
            return np.full(len(wanted), -1, np.int64)
        rows = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        found: Longs = np.where(self._keys[rows] == wanted, rows, -1)
        return found


def _keys(topic: Longs, partition: Ints) -> Longs:
    """Return one sortable number for each topic and partition; the lowest int64 for unknown topics."""
    keys: Longs = (topic.astype(np.int64) << 32) | partition.astype(np.int64)
    keys[(topic < 0) | (partition < 0)] = np.iinfo(np.int64).min
    return keys
