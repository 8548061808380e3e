"""Requests to the partitions of a broker and their results, as values between the APIs and the replica manager.

Source: Kafka's FetchParams, FetchRequest.PartitionData, LogReadResult, LogAppendResult and OffsetResultHolder.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from kafka_log.format.epochs import EpochStart
from kafka_log.format.transaction_index import AbortedTransaction
from kafka_wire import ErrorCode
from kafka_wire.records import NO_TIMESTAMP
from light_broker.core.metadata_view import NO_EPOCH

NO_OFFSET = -1
ACKS_ALL = -1
"""Acknowledgement by all in-sync replicas."""
CONSUMER = -1
"""Replica id of a consumer."""
DEBUGGING_CONSUMER = -2
"""Replica id of a tool, which may read from followers and up to the log's end."""


class IsolationLevel(IntEnum):
    """Isolation level of a consumer's reads (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ReadLimit(IntEnum):
    """Offset up to which a read sees records. Source: Kafka's FetchIsolation."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    LAST_STABLE_OFFSET = 2


class AppendResult(NamedTuple):
    """Result of an append to one partition."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    base_offset: int = NO_OFFSET
    last_offset: int = NO_OFFSET
    log_append_time_ms: int = NO_TIMESTAMP
    """Time of the append where the topic's records get it (LogAppendTime)."""
    log_start_offset: int = NO_OFFSET
    record_errors: Sequence[tuple[int, str]] = ()
    """Index in the batch of each record that is at fault, and the reason."""


@dataclass(frozen=True, slots=True)
class FetchParams:
    """Part of a Fetch request that concerns all of its partitions."""

    replica_id: int = CONSUMER
    replica_epoch: int = NO_EPOCH
    max_wait_ms: int = 0
    min_bytes: int = 1
    max_bytes: int = 2**31 - 1
    limit: ReadLimit = ReadLimit.HIGH_WATERMARK
    reads_from_followers: bool = False
    """Whether a follower may answer (KIP-392): consumers from version 11 on."""
    rack: str = ""
    """Rack of a consumer."""
    racks: Mapping[int, str | None] = field(default_factory=dict)
    """Racks of the brokers that the consumer reaches, where it may read from a follower in its own (replica.selector.class)."""

    @property
    def is_from_follower(self) -> bool:
        """Whether a broker replicates the partitions."""
        return self.replica_id >= 0


class FetchPartition(NamedTuple):
    """Part of a Fetch request that concerns one partition."""

    topic_id: UUID
    fetch_offset: int
    max_bytes: int
    log_start_offset: int = NO_OFFSET
    """Start of a follower's log."""
    current_leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH


class ReadResult(NamedTuple):
    """Result of a read from one partition."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    records: Sized = b""
    """Batches, or where they are in a file."""
    aborted: Sequence[AbortedTransaction] | None = None
    """Aborted transactions that may be in the records; None unless committed records only are read."""
    diverging: EpochStart | None = None
    """Largest epoch that both logs have, and its end here; the follower truncates its log (KIP-320)."""
    preferred_read_replica: int = -1

    def with_divergence(self, end: EpochStart) -> "ReadResult":
        """Return the result for a log that differs from this one."""
        return self._replace(diverging=end, aborted=None)

    def with_preferred(self, replica_id: int) -> "ReadResult":
        """Return the result for a consumer that should read from another replica: without records."""
        return self._replace(preferred_read_replica=replica_id)

    def with_records(self, records: Sized, aborted: Sequence[AbortedTransaction] | None) -> "ReadResult":
        """Return the result with what was read."""
        return self._replace(records=records, aborted=aborted)


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """Result of a search for an offset."""

    error: ErrorCode = ErrorCode.NONE
    offset: int = NO_OFFSET
    timestamp_ms: int = NO_TIMESTAMP
    leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """Largest epoch of a log up to the requested one, and where it ends."""

    error: ErrorCode = ErrorCode.NONE
    epoch: int = NO_EPOCH
    end_offset: int = NO_OFFSET


@dataclass(frozen=True, slots=True)
class DeletedRecords:
    """Result of DeleteRecords for one partition."""

    error: ErrorCode = ErrorCode.NONE
    low_watermark: int = NO_OFFSET
    """Lowest start offset among the logs of all replicas."""


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """State of one producer in a partition's log."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int
