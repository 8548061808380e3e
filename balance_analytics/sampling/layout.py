"""From a broker's metadata to the rows of a look: topics by name, partitions in order, each once.

Pure. Brokers list topics and partitions in no order; with rows in order every look of the same cluster reads alike, and a row is
found by bisection. Leaves out what the rows are filled with.
"""

from dataclasses import dataclass

import numpy as np

from balance_analytics.model.samples import NOBODY, UNKNOWN, Ints, Longs, PartitionRows, Samples
from balance_analytics.sampling.left_out import LeftOut, What, reason_of
from kafka_wire.errors import ErrorCode
from kafka_wire.metadata_columns import MetadataColumns


@dataclass(slots=True, eq=False)
class Layout:
    """Rows that are being filled; columns as in `Samples`. `asked_at_ms` has the time of each row's end offset, 0 for none."""

    cluster_id: str
    topics: tuple[str, ...]
    first_row: Longs
    topic_of_row: Ints
    partition: Ints
    leader: Ints
    leader_epoch: Ints
    replicas: Ints
    isr: Ints
    start_offset: Longs
    end_offset: Longs
    size_bytes: Longs
    committed_offset_sum: Longs
    committed_groups: Ints
    asked_at_ms: Longs
    rows: PartitionRows

    def __len__(self) -> int:
        return len(self.partition)

    def topics_of(self, rows: Longs) -> tuple[list[str], Longs]:
        """Return the topics that some rows (in order) are of, and how many rows of each."""
        found, counts = np.unique(self.topic_of_row[rows], return_counts=True)
        return [self.topics[at] for at in found.tolist()], counts.astype(np.int64)

    def samples(self, round_ms: int, begun_ms: int) -> Samples:
        """Give the look. A topic of which no end offset came has the time at which the look began."""
        if len(self.topics):
            latest = np.maximum.reduceat(self.asked_at_ms, self.first_row[:-1])
        else:
            latest = np.zeros(0, np.int64)
        return Samples(
            self.cluster_id,
            round_ms,
            self.topics,
            self.first_row,
            np.where(latest > 0, latest, begun_ms),
            self.partition,
            self.leader,
            self.leader_epoch,
            self.replicas,
            self.isr,
            self.start_offset,
            self.end_offset,
            self.size_bytes,
            self.committed_offset_sum,
            self.committed_groups,
        )


def layout_of(found: MetadataColumns, left_out: LeftOut) -> Layout:
    """Lay out the rows of all partitions; a topic that the broker says no partition of is counted as left out."""
    for at in np.flatnonzero(found.topic_rows == 0).tolist():
        code = int(found.topic_error_code[at])
        words = f"topic {found.topics[at]}: {ErrorCode.of(code).name}"
        left_out.add(What.TOPICS, reason_of(code), int(code != ErrorCode.NONE), words)
    names = sorted({name for name, rows in zip(found.topics, found.topic_rows.tolist(), strict=True) if rows})
    rank = {name: at for at, name in enumerate(names)}
    topic_of_sent = np.repeat(np.array([rank.get(name, -1) for name in found.topics], np.int32), found.topic_rows)
    order = np.lexsort((found.partition_index, topic_of_sent))
    order = order[_first_ones(topic_of_sent[order], found.partition_index[order])]
    topic_of_row, partition = topic_of_sent[order], found.partition_index[order]
    counts = np.bincount(topic_of_row, minlength=len(names))
    first_row: Longs = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))).astype(np.int64)
    replicas = found.replica_nodes[order]
    unknown = np.full(len(order), UNKNOWN, np.int64)
    topics = tuple(names)
    return Layout(
        cluster_id=found.cluster_id or "",
        topics=topics,
        first_row=first_row,
        topic_of_row=topic_of_row,
        partition=partition,
        leader=np.maximum(found.leader_id[order], NOBODY),
        leader_epoch=np.maximum(found.leader_epoch[order], -1),
        replicas=replicas,
        isr=found.isr_nodes[order],
        start_offset=unknown,
        end_offset=unknown.copy(),
        size_bytes=np.full(replicas.shape, UNKNOWN, np.int64),
        committed_offset_sum=unknown.copy(),
        committed_groups=np.zeros(len(order), np.int32),
        asked_at_ms=np.zeros(len(order), np.int64),
        rows=PartitionRows(topics, first_row, partition),
    )


def _first_ones(topic: Ints, partition: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell which rows, in order, are not those before once more, and are partitions at all: a broker's word is not trusted."""
    first = np.ones(len(topic), np.bool_)
    first[1:] = (topic[1:] != topic[:-1]) | (partition[1:] != partition[:-1])
    kept: np.ndarray[tuple[int], np.dtype[np.bool_]] = first & (partition >= 0)
    return kept
