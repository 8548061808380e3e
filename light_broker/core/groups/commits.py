"""OffsetCommit, OffsetDelete and OffsetFetch: refusals, records and answers.

Source: OffsetMetadataManager (commitOffset, deleteOffsets, fetchOffsets, fetchAllOffsets), ClassicGroup (validateOffsetCommit,
validateOffsetDelete).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import ErrorCode
from kafka_wire.java_hash import java_length
from light_broker.core.groups.membership import validate_member
from light_broker.core.groups.offsets import CommittedOffsets
from light_broker.core.groups.records import CommittedOffset, OffsetRecord
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.groups.states import CompletingRebalance, Dead, Empty, Group

NO_RETENTION = -1
"""Retention in OffsetCommit 2 to 4 that leaves it to the broker."""
INVALID_OFFSET = -1
"""Answer for a partition without an offset."""


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    """An offset that a client commits for a partition of a topic that exists."""

    topic: str
    topic_id: UUID
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """A request to commit offsets."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    """-1: the client is no member; it assigns itself partitions, or is an administrator."""
    partitions: tuple[PartitionCommit, ...]
    retention_ms: int = NO_RETENTION
    knows_missing_groups: bool = True
    """Whether the client understands GROUP_ID_NOT_FOUND: from version 9."""


def refuse_commit(group: Group | None, commit: OffsetCommit) -> ErrorCode:
    """Return why a commit is refused as a whole, NONE if it is not."""
    is_member = commit.generation >= 0
    if group is None:
        if not is_member:
            return ErrorCode.NONE
        return ErrorCode.GROUP_ID_NOT_FOUND if commit.knows_missing_groups else ErrorCode.ILLEGAL_GENERATION
    if isinstance(group.state, Dead):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not is_member and isinstance(group.state, Empty):
        return ErrorCode.NONE
    if not is_member and not commit.member_id and commit.instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if error := validate_member(group, commit.member_id, commit.instance_id):
        return error
    if commit.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    # The member knows the generation from JoinGroup, and has no assignment in it yet.
    return ErrorCode.REBALANCE_IN_PROGRESS if isinstance(group.state, CompletingRebalance) else ErrorCode.NONE


def commit_records(
    commit: OffsetCommit, *, now_ms: int, settings: GroupSettings
) -> tuple[tuple[OffsetRecord, ...], tuple[ErrorCode, ...]]:
    """Return the records of an accepted commit, and the error of each of its partitions."""
    expire_ms = -1 if commit.retention_ms == NO_RETENTION else now_ms + commit.retention_ms
    records, errors = [], []
    for partition in commit.partitions:
        metadata = partition.metadata or ""
        if java_length(metadata) > settings.offset_metadata_max_bytes:
            errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        errors.append(ErrorCode.NONE)
        value = CommittedOffset(
            partition.offset, partition.leader_epoch, metadata, now_ms, expire_ms, partition.topic_id
        )
        records.append(OffsetRecord(commit.group_id, partition.topic, partition.partition, value))
    return tuple(records), tuple(errors)


# Deletion


def refuse_deletion_of_offsets(group: Group | None) -> ErrorCode:
    """Return why no offsets of a group may be deleted, NONE if they may. Only the metadata of consumers contain the topics that they use."""
    if group is None or isinstance(group.state, Dead):
        return ErrorCode.GROUP_ID_NOT_FOUND
    if isinstance(group.state, Empty) or group.uses_consumer_protocol:
        return ErrorCode.NONE
    return ErrorCode.NON_EMPTY_GROUP


def refuse_deletion_of_group(group: Group | None) -> ErrorCode:
    """Return why a group may not be deleted, NONE if it may."""
    if group is None or isinstance(group.state, Dead):
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if isinstance(group.state, Empty) else ErrorCode.NON_EMPTY_GROUP


def tombstones(group_id: str, places: Collection[tuple[str, int]]) -> tuple[OffsetRecord, ...]:
    """Return the records that delete offsets of a group."""
    return tuple(OffsetRecord(group_id, topic, partition, None) for topic, partition in places)


# Reading


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """Answer to OffsetFetch for one partition."""

    partition: int
    offset: int = INVALID_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchedTopic:
    """Answer to OffsetFetch for one topic."""

    topic: str
    topic_id: UUID
    partitions: tuple[FetchedOffset, ...]


@dataclass(frozen=True, slots=True)
class RequestedTopic:
    """Partitions of a topic whose offsets are read; without an id in the request, the id is zero."""

    topic: str
    topic_id: UUID
    partitions: tuple[int, ...]


def fetch_offsets(
    offsets: CommittedOffsets,
    group_id: str,
    topics: Sequence[RequestedTopic] | None,
    *,
    require_stable: bool,
) -> tuple[FetchedTopic, ...]:
    """Return the offsets of a group for some topics; for None, all that it has.

    With `require_stable` (KIP-447) a partition with an offset in an open transaction is UNSTABLE_OFFSET_COMMIT.
    """
    if topics is None:
        found: dict[str, list[int]] = {}
        for topic, partition, _ in offsets.of_group(group_id):
            found.setdefault(topic, []).append(partition)
        topics = [RequestedTopic(topic, NO_TOPIC_ID, tuple(partitions)) for topic, partitions in found.items()]
    return tuple(
        FetchedTopic(
            topic.topic,
            topic.topic_id,
            tuple(
                _fetched(offsets, group_id, topic, partition, require_stable=require_stable)
                for partition in topic.partitions
            ),
        )
        for topic in topics
    )


def _fetched(
    offsets: CommittedOffsets, group_id: str, topic: RequestedTopic, partition: int, *, require_stable: bool
) -> FetchedOffset:
    if require_stable and offsets.is_unstable(group_id, topic.topic, partition):
        return FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    committed = offsets.get(group_id, topic.topic, partition)
    if committed is None or _is_of_another_topic(committed.topic_id, topic.topic_id):
        return FetchedOffset(partition)
    return FetchedOffset(partition, committed.offset, committed.leader_epoch, committed.metadata)


def _is_of_another_topic(committed: UUID, requested: UUID) -> bool:
    """Return whether an offset was committed for a deleted topic of the same name; old records and requests have no id."""
    return NO_TOPIC_ID not in {committed, requested} and committed != requested
