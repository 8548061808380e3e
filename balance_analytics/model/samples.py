"""What one look at a cluster has seen, in columns: a row for each partition, topic after topic, partitions in order.

200,000 partitions are 25 MB here and would be half a gigabyte as objects. What could not be asked is UNKNOWN, which is null in
messages and files: no number is ever made up.
Leaves out how it is asked (`sampling`), and messages and files (`sample_messages`, `sampling.parquet_writer`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

UNKNOWN = -1
"""Of an offset, a size or a sum that could not be asked; Kafka's own are never below 0."""
NOBODY = -1
"""The leader of a partition that has none, and what pads lists of broker ids on the right."""


class TopicSpan(NamedTuple):
    """One topic's rows: from `begin`, up to and without `end`."""

    name: str
    sampled_at_ms: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """One look. Columns have shape (n,) but for lists of brokers and their sizes, which have shape (n, longest)."""

    cluster_id: str
    round_ms: int
    """The planned time of the look, in Unix time."""
    topics: tuple[str, ...]
    first_row: Longs
    """Shape (topics + 1,): where each topic's rows begin, and the end of all."""
    sampled_at_ms: Longs
    """Shape (topics,): when the last of a topic's end offsets came in; the time of the look where none did."""
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
    """Over all consumer groups; UNKNOWN unless all of them answered."""
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
                raise ValueError(f"a column of {len(column)} rows where {count} are due")
        if self.size_bytes.shape != self.replicas.shape:
            raise ValueError(f"sizes of shape {self.size_bytes.shape} for replicas of shape {self.replicas.shape}")

    def __len__(self) -> int:
        return len(self.partition)

    def spans(self) -> Iterator[TopicSpan]:
        """Yield where each topic's rows are."""
        bounds, times = self.first_row.tolist(), self.sampled_at_ms.tolist()
        for name, at_ms, begin, end in zip(self.topics, times, bounds[:-1], bounds[1:], strict=True):
            yield TopicSpan(name, at_ms, begin, end)


class PartitionRows:
    """Finds rows by topic and partition, many at a time."""

    def __init__(self, topics: tuple[str, ...], first_row: Longs, partition: Ints) -> None:
        """Rows are in the order of topics, and of partitions in each."""
        self._topics = {name: at for at, name in enumerate(topics)}
        self._keys = _keys(np.repeat(np.arange(len(topics)), np.diff(first_row)), partition)

    def find(self, topics: tuple[str, ...], topic_rows: Longs, partition: Ints) -> Longs:
        """Return the row of each partition, -1 of one that there is none for.

        `topic_rows` has the count of each topic's partitions, which follow one another in `partition`.
        """
        at = np.array([self._topics.get(name, -1) for name in topics], np.int64)
        wanted = _keys(np.repeat(at, topic_rows), partition)
        if not len(self._keys):
            return np.full(len(wanted), -1, np.int64)
        rows = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        found: Longs = np.where(self._keys[rows] == wanted, rows, -1)
        return found


def _keys(topic: Longs, partition: Ints) -> Longs:
    """Return one number for topic and partition, in their order; no partition of a topic that is not known has one."""
    keys: Longs = (topic.astype(np.int64) << 32) | partition.astype(np.int64)
    keys[(topic < 0) | (partition < 0)] = np.iinfo(np.int64).min
    return keys
