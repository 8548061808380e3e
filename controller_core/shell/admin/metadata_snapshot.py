"""Immutable snapshot of the partitions in a Metadata response.

The columns are copied at once, so that the response can be prepared and encoded in steps while the cluster changes.
Source: ZkMetadataCache.getPartitionMetadata.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from controller_core.model import NO_BROKER, NO_LEADER, BoolArray, Cluster, IntArray, Topic
from controller_core.model.columns import FREE, any_of, keep_ids, positions_of
from controller_core.shell.admin.cluster_apis import reachable
from controller_core.shell.pace import ClientPace
from controller_core.zookeeper_mode.deletion import is_being_deleted
from kafka_wire import ErrorCode
from kafka_wire.columns.metadata_encoder import MetadataPartitions

LISTENER_ERROR_FROM = 6
"""First version with LISTENER_NOT_FOUND (KIP-226); earlier versions get LEADER_NOT_AVAILABLE."""
PARTITION_BITS = 32
"""Bits of the partition number below the topic index in a sort key."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsCopy:
    """Copy of the columns that Metadata shows, at one point in time; copying takes a few milliseconds for 200,000 rows."""

    topic: IntArray
    partition: IntArray
    leader: IntArray
    leader_epoch: IntArray
    replicas: IntArray
    isr: IntArray
    failed: Mapping[int, AbstractSet[int]]
    """By row: brokers whose replica is in a failed log directory."""
    registered: BoolArray
    reachable: BoolArray
    """Brokers that have the listener. Like `registered` and `live`: flags by broker id."""
    live: BoolArray

    @classmethod
    def of(cls, cluster: Cluster, listener: str, rows: slice | IntArray) -> "ColumnsCopy":
        """Copy a slice of the rows, or the given rows in this order as rows 0, 1, 2, … of the copy."""
        columns, failed = cluster.columns, cluster.offline_replicas
        if failed and not isinstance(rows, slice):
            failed = {place: failed[int(rows[place])] for place in positions_of(failed, rows)}
        return cls(
            columns.topic[rows].copy(),
            columns.partition[rows].copy(),
            columns.leader[rows].copy(),
            columns.leader_epoch[rows].copy(),
            columns.replicas[rows].copy(),
            columns.isr[rows].copy(),
            {row: frozenset(brokers) for row, brokers in failed.items()},
            columns.flags(cluster.unfenced()),
            columns.flags(reachable(cluster, listener)),
            columns.flags(cluster.may_lead()),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Partitions of some topics, in the order of `topics`, as clients of one listener see them."""

    columns: ColumnsCopy
    topics: Sequence[Topic]
    counts: Sequence[int]
    """Number of partitions of each topic."""
    rows: IntArray
    """Rows of the copy, in the order of the response."""

    @classmethod
    async def of_all(
        cls, cluster: Cluster, listener: str, pace: ClientPace, only: Collection[Topic] | None = None
    ) -> "Snapshot":
        """Copy all topics that are not being deleted, in the order of their indices; with `only`, only these topics.

        The copy is taken before the first await; the rest is done in steps.
        """
        copy = ColumnsCopy.of(cluster, listener, slice(0, cluster.columns.end))
        topics: Sequence[Topic] = cluster.topics_by_index()
        hidden = {name for name, deletion in cluster.deletions.items() if is_being_deleted(deletion)}
        await pace.step()
        if hidden or only is not None:
            shown = None if only is None else {topic.index for topic in only if topic.name not in hidden}
            topics = [
                topic for topic in topics if (topic.name not in hidden if shown is None else topic.index in shown)
            ]
            await pace.step()
        rows = np.flatnonzero(copy.topic != FREE).astype(np.int32)
        if hidden or only is not None:
            listed = np.zeros(int(copy.topic.max(initial=0)) + 1, dtype=np.bool_)
            listed[[topic.index for topic in topics if topic.index < len(listed)]] = True
            rows = rows[listed[copy.topic[rows]]]
        by_index = np.bincount(
            copy.topic[rows], minlength=max((topic.index for topic in topics), default=0) + 1
        ).tolist()
        counts = [by_index[topic.index] for topic in topics]
        await pace.step()
        key = (copy.topic[rows].astype(np.int64) << PARTITION_BITS) | copy.partition[rows]
        rows = rows[np.argsort(key)]
        await pace.step()
        return cls(copy, topics, counts, rows)

    @classmethod
    def of_some(cls, cluster: Cluster, listener: str, topics: Sequence[Topic]) -> "Snapshot":
        """Copy some topics in this order; the cost depends on their partitions only."""
        counts = [len(topic.rows) for topic in topics]
        rows = np.concatenate([topic.rows for topic in topics]) if topics else np.zeros(0, dtype=np.int32)
        copy = ColumnsCopy.of(cluster, listener, rows)
        key = np.repeat(np.arange(len(topics), dtype=np.int64) << PARTITION_BITS, counts) | copy.partition
        return cls(copy, topics, counts, np.argsort(key).astype(np.int32))

    def partitions(self, begin: int, end: int, version: int) -> MetadataPartitions:
        """Return the columns of consecutive partitions for a version."""
        copy, rows = self.columns, self.rows[begin:end]
        leader, replicas, isr = copy.leader[rows], copy.replicas[rows], copy.isr[rows]
        # Ids below 0 would count from the end of the flags.
        is_reachable = copy.reachable[leader] & (leader >= 0)
        is_registered = copy.registered[leader] & (leader >= 0)
        unreachable = ErrorCode.LISTENER_NOT_FOUND if version >= LISTENER_ERROR_FROM else ErrorCode.LEADER_NOT_AVAILABLE
        error = np.where(is_registered, np.int32(unreachable), np.int32(ErrorCode.LEADER_NOT_AVAILABLE))
        error = np.where(is_reachable, np.int32(ErrorCode.NONE), error)
        offline = ~copy.live[replicas] & (replicas != NO_BROKER)
        for place in positions_of(copy.failed, rows):
            offline[place] |= np.isin(replicas[place], list(copy.failed[int(rows[place])]))
        offline_replicas = keep_ids(replicas, offline) if offline.any() else replicas[:, :0]
        if version == 0:
            error, replicas, isr = self._as_version_0(error, replicas, isr)
        return MetadataPartitions(
            error,
            copy.partition[rows],
            np.where(is_reachable, leader, np.int32(NO_LEADER)),
            copy.leader_epoch[rows],
            replicas,
            isr,
            offline_replicas,
        )

    def _as_version_0(self, error: IntArray, replicas: IntArray, isr: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Omit unreachable replicas and report that: version 0 promises an address for each replica."""
        lacks = [~self.columns.reachable[ids] & (ids != NO_BROKER) for ids in (replicas, isr)]
        is_cut = any_of(lacks[0]) | any_of(lacks[1])
        reported = np.where(is_cut & (error == ErrorCode.NONE), np.int32(ErrorCode.REPLICA_NOT_AVAILABLE), error)
        return reported, keep_ids(replicas, ~lacks[0]), keep_ids(isr, ~lacks[1])
