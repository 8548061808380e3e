"""Replica manager: the partitions that this broker hosts, and the only writer of their state and logs.

Everything runs on the event loop, in the order of the calls: a call appends or reads before its coroutine first waits, so that the
requests of a connection take effect in their order. Source: Kafka's ReplicaManager and Partition.
"""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from kafka_log.format.producers import Origin
from light_broker.core.replica_requests import (
    ActiveProducer,
    AppendResult,
    DeletedRecords,
    EpochEnd,
    FetchParams,
    FetchPartition,
    FoundOffset,
    ReadResult,
)
from light_broker.core.topic_partition import TopicPartition
from kafka_wire.errors import ErrorCode


class ReplicaManager:
    """Partitions on this broker.

    To be constructed with the broker's id, its LogManager, a function that gives the present MetadataView, a function that gives the settings
    of a topic (kafka_log's PartitionSettings and min.insync.replicas), and the control plane's alter_partition.
    """

    # Called by the control plane

    def lead(self, partition: TopicPartition, topic_id: UUID, state: "PartitionView") -> None:
        """Become the leader, or take over another state of the same leader epoch; creates the log if it is missing.

        A state with a lower partition epoch than the present one is ignored. A log that cannot be opened makes the partition offline, and
        raises KafkaStorageError.
        """

    def follow(self, partition: TopicPartition, topic_id: UUID, state: "PartitionView") -> None:
        """Become a follower, or take over another state; as `lead`. Requests that wait are answered with NOT_LEADER_OR_FOLLOWER."""

    def stop(self, partition: TopicPartition, *, delete: bool) -> None:
        """Stop hosting a partition; with `delete` its log is deleted. Requests that wait are answered."""

    def log_directory_failed(self, partitions: Sequence[TopicPartition]) -> None:
        """Make partitions offline: their requests are answered with KAFKA_STORAGE_ERROR."""

    def reconfigure(self, topic: str) -> None:
        """Take over changed settings of a topic."""

    # Called by APIs and coordinators

    async def append(
        self,
        records: Mapping[TopicPartition, bytes],
        *,
        acks: int,
        timeout_ms: int,
        origin: Origin = Origin.CLIENT,
        allow_internal: bool = False,
    ) -> dict[TopicPartition, AppendResult]:
        """Append one batch to each partition, before the first wait.

        Returns at once with acks 0 and 1. With acks -1 it returns when the high watermarks have passed the batches, or after `timeout_ms` with
        REQUEST_TIMED_OUT for the partitions that wait still. Errors as Kafka's ReplicaManager.appendRecords, also INVALID_REQUIRED_ACKS.
        """

    async def fetch(
        self, params: FetchParams, partitions: Mapping[TopicPartition, FetchPartition]
    ) -> dict[TopicPartition, ReadResult]:
        """Read from partitions in their order; waits up to `max_wait_ms` for `min_bytes`, a failure or a diverging epoch.

        A follower's fetch advances its progress, and with it the high watermark and the ISR.
        """

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> ReadResult:
        """Read up to the log's end, as a coordinator that loads its state."""

    async def list_offset(
        self, partition: TopicPartition, timestamp_ms: int, *, current_leader_epoch: int, limit: "ReadLimit | None"
    ) -> FoundOffset:
        """Search an offset by timestamp or special timestamp; `limit` None is a replica's request (ListOffsets)."""

    def end_of_epoch(self, partition: TopicPartition, epoch: int, *, current_leader_epoch: int) -> EpochEnd:
        """Return where an epoch ends in the leader's log (OffsetForLeaderEpoch)."""

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int
    ) -> dict[TopicPartition, DeletedRecords]:
        """Move the starts of logs up, and wait until all live replicas have done so (DeleteRecords)."""

    def active_producers(self, partition: TopicPartition) -> list[ActiveProducer] | ErrorCode:
        """Return the producers in a partition's log (DescribeProducers)."""

    # State

    def leader_of(self, partition: TopicPartition) -> tuple[int, int]:
        """Return leader id and leader epoch as this broker knows them, for the answers of KIP-951; -1 for none."""

    def is_leader(self, partition: TopicPartition) -> bool:
        """Return whether this broker leads a partition."""

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Return the high watermark of a hosted partition."""

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermarks of all hosted partitions, for their checkpoint file."""

    def hosted(self) -> Sequence[TopicPartition]:
        """Return the partitions with a log here."""
