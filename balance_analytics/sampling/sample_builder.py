"""Sample builder: creates the rows of a sample from the metadata, one per partition, ordered by topic and partition.

Pure. Brokers return topics and partitions in no order; sorted rows are the same in every sample, and are found by bisection. `offsets`,
`log_dirs` and `committed_offsets` write their data into the columns.
"""

from dataclasses import dataclass

import numpy as np

from balance_analytics.model.samples import NO_BROKER, UNKNOWN, Ints, Longs, PartitionRows, Samples
from balance_analytics.sampling.missing_data import DataKind, MissingData, reason_of
from kafka_wire import ErrorCode
from kafka_wire.columns.metadata_decoder import MetadataColumns


@dataclass(slots=True, eq=False)
class SampleBuilder:
    """Columns as in `Samples`, to be filled. `asked_at_ms` is the time of each row's end offset, 0 if it has none."""

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
        """Return the topics of some rows (in order), and the number of these rows in each topic."""
        found, counts = np.unique(self.topic_of_row[rows], return_counts=True)
        return [self.topics[at] for at in found.tolist()], counts.astype(np.int64)

    def build(self, round_ms: int, start_ms: int) -> Samples:
        """Return the sample. Topics without any end offset get the time at which the sample started."""
        if len(self.topics):
            latest = np.maximum.reduceat(self.asked_at_ms, self.first_row[:-1])
        else:
            latest = np.zeros(0, np.int64)
        return Samples(
            self.cluster_id,
            round_ms,
            self.topics,
            self.first_row,
            np.where(latest > 0, latest, start_ms),
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


def builder_of(found: MetadataColumns, missing_data: MissingData) -> SampleBuilder:
    """Create the rows of all partitions; topics whose metadata is an error are counted as missing."""
    for at in np.flatnonzero(found.topic_rows == 0).tolist():
        code = int(found.topic_error_code[at])
        message = f"topic {found.topics[at]}: {ErrorCode.of(code).name}"
        missing_data.add(DataKind.TOPICS, reason_of(code), int(code != ErrorCode.NONE), message)
    names = sorted({name for name, rows in zip(found.topics, found.topic_rows.tolist(), strict=True) if rows})
    rank = {name: at for at, name in enumerate(names)}
    topic_of_sent = np.repeat(np.array([rank.get(name, -1) for name in found.topics], np.int32), found.topic_rows)
    order = np.lexsort((found.partition_index, topic_of_sent))
    order = order[_is_first_of_partition(topic_of_sent[order], found.partition_index[order])]
    topic_of_row, partition = topic_of_sent[order], found.partition_index[order]
    counts = np.bincount(topic_of_row, minlength=len(names))
    first_row: Longs = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))).astype(np.int64)
    replicas = found.replica_nodes[order]
    unknown = np.full(len(order), UNKNOWN, np.int64)
    topics = tuple(names)
    return SampleBuilder(
        cluster_id=found.cluster_id or "",
        topics=topics,
        first_row=first_row,
        topic_of_row=topic_of_row,
        partition=partition,
        leader=np.maximum(found.leader_id[order], NO_BROKER),
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


def _is_first_of_partition(topic: Ints, partition: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return for each row whether it is the first of its partition, and a valid one: a response may contain duplicates."""
    first = np.ones(len(topic), np.bool_)
    first[1:] = (topic[1:] != topic[:-1]) | (partition[1:] != partition[:-1])
    kept: np.ndarray[tuple[int], np.dtype[np.bool_]] = first & (partition >= 0)
    return kept
