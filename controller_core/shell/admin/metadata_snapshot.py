"""Immutable snapshot of the partitions that a Metadata response describes.

The columns are copied in one go, so that the response can be encoded in steps while the cluster changes.
Source: ZkMetadataCache.getPartitionMetadata.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller_core.cluster.deletion import is_being_deleted
from controller_core.cluster.offline_replicas import offline_among
from controller_core.model.cluster import Cluster, Topic
from controller_core.model.columns import BoolArray, IntArray, any_of, keep_ids
from controller_core.model.ids import NO_LEADER, NOBODY
from controller_core.shell.admin.nodes import reachable
from kafka_wire.errors import ErrorCode
from kafka_wire.metadata_encoding import MetadataPartitions

LISTENER_ERROR_FROM = 6
"""Versions below know LEADER_NOT_AVAILABLE only (KIP-226)."""
PARTITION_BITS = 32
"""Room for a partition's number below its topic's in one sort key."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Partitions of some topics, topic after topic in the order of `topics`, as clients of one listener see them."""

    topics: Sequence[Topic]
    counts: Sequence[int]
    """Partitions of each topic."""
    partition: IntArray
    leader: IntArray
    leader_epoch: IntArray
    replicas: IntArray
    isr: IntArray
    failed: BoolArray | None
    """Replicas in failed log directories, shaped as `replicas`; None where there are none."""
    registered: BoolArray
    reachable: BoolArray
    """Brokers that have the listener; as the others, flags by broker id."""
    live: BoolArray

    @classmethod
    def of_all(cls, cluster: Cluster, listener: str, only: Sequence[Topic] | None = None) -> "Snapshot":
        """Copy all topics that are not being deleted, in the order of their indices; with `only`, those among them."""
        topics = [
            topic
            for topic in cluster.topics_by_index()
            if not cluster.deletions or not is_being_deleted(cluster.deletions.get(topic.name))
        ]
        rows = cluster.columns.used()
        if only is not None:
            wanted = {id(topic) for topic in only}
            topics = [topic for topic in topics if id(topic) in wanted]
        index = cluster.columns.topic[rows]
        indices = np.array([topic.index for topic in topics], dtype=np.int64)
        if len(topics) != len(cluster.topics):
            listed = np.zeros(int(index.max(initial=0)) + 1, dtype=np.bool_)
            listed[indices[indices < len(listed)]] = True
            rows, index = rows[listed[index]], index[listed[index]]
        key = (index.astype(np.int64) << PARTITION_BITS) | cluster.columns.partition[rows]
        counts = np.bincount(index, minlength=int(indices.max(initial=0)) + 1)[indices].tolist()
        return cls._of(cluster, listener, topics, counts, rows[np.argsort(key)])

    @classmethod
    def of_some(cls, cluster: Cluster, listener: str, topics: Sequence[Topic]) -> "Snapshot":
        """Copy some topics in this order."""
        counts = [len(topic.rows) for topic in topics]
        rows = np.concatenate([topic.rows for topic in topics]) if topics else np.zeros(0, dtype=np.int32)
        key = np.repeat(np.arange(len(topics), dtype=np.int64) << PARTITION_BITS, counts)
        return cls._of(cluster, listener, topics, counts, rows[np.argsort(key | cluster.columns.partition[rows])])

    @classmethod
    def _of(
        cls, cluster: Cluster, listener: str, topics: Sequence[Topic], counts: Sequence[int], rows: IntArray
    ) -> "Snapshot":
        columns = cluster.columns
        replicas = columns.replicas[rows]
        return cls(
            topics,
            counts,
            columns.partition[rows],
            columns.leader[rows],
            columns.leader_epoch[rows],
            replicas,
            columns.isr[rows],
            offline_among(cluster, rows, replicas) if cluster.offline_replicas else None,
            cluster.registered(),
            columns.flags(reachable(cluster, listener)),
            cluster.live(),
        )

    def partitions(self, begin: int, end: int, version: int) -> MetadataPartitions:
        """Return the columns of consecutive partitions, as a version describes them."""
        leader, replicas, isr = self.leader[begin:end], self.replicas[begin:end], self.isr[begin:end]
        # Ids below 0 would count from the end of the flags.
        is_reachable = self.reachable[leader] & (leader >= 0)
        is_registered = self.registered[leader] & (leader >= 0)
        elsewhere = ErrorCode.LISTENER_NOT_FOUND if version >= LISTENER_ERROR_FROM else ErrorCode.LEADER_NOT_AVAILABLE
        error = np.where(is_registered, np.int32(elsewhere), np.int32(ErrorCode.LEADER_NOT_AVAILABLE))
        error = np.where(is_reachable, np.int32(ErrorCode.NONE), error)
        offline = ~self.live[replicas] & (replicas != NOBODY)
        if self.failed is not None:
            offline |= self.failed[begin:end] & (replicas != NOBODY)
        if version == 0:
            error, replicas, isr = self._as_version_0(error, replicas, isr)
        return MetadataPartitions(
            error,
            self.partition[begin:end],
            np.where(is_reachable, leader, np.int32(NO_LEADER)),
            self.leader_epoch[begin:end],
            replicas,
            isr,
            keep_ids(self.replicas[begin:end], offline) if offline.any() else replicas[:, :0],
        )

    def _as_version_0(self, error: IntArray, replicas: IntArray, isr: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Leave out replicas that cannot be reached, and report that: version 0 promises an address for each."""
        lacks = [~self.reachable[ids] & (ids != NOBODY) for ids in (replicas, isr)]
        is_cut = any_of(lacks[0]) | any_of(lacks[1])
        reported = np.where(is_cut & (error == ErrorCode.NONE), np.int32(ErrorCode.REPLICA_NOT_AVAILABLE), error)
        return reported, keep_ids(replicas, ~lacks[0]), keep_ids(isr, ~lacks[1])
