"""Partitions after a record. Source: PartitionRegistration of Kafka."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.failures import MetadataError
from kafka_metadata.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    Ids,
    LeaderRecoveryState,
    PartitionChangeRecord,
    PartitionRecord,
    Uuids,
)

_RECOVERY_STATES = frozenset(map(int, LeaderRecoveryState))


def new_partition(record: PartitionRecord) -> PartitionRecord:
    """Return a partition of the image: with a directory for each replica, and lists of eligible leader replicas."""
    _check_recovery_state(record.leader_recovery_state)
    directories = _directories(record.directories, len(record.replicas))
    elr, last_known_elr = record.eligible_leader_replicas, record.last_known_elr
    if directories is record.directories and elr is not None and last_known_elr is not None:
        return record
    # A loaded snapshot has a million of them: `dataclasses.replace` would take half of the time.
    return PartitionRecord(
        record.partition_id,
        record.topic_id,
        record.replicas,
        record.isr,
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        record.removing_replicas,
        record.adding_replicas,
        record.leader_recovery_state,
        directories,
        elr or (),
        last_known_elr or (),
        unknown_tags=record.unknown_tags,
    )


def known_partition(partitions: Mapping[int, PartitionRecord], topic_id: UUID, number: int) -> PartitionRecord:
    """Return a partition of a topic. Raises MetadataError."""
    found = partitions.get(number)
    if found is None:
        raise MetadataError(f"the topic with the id {topic_id} has no partition {number}")
    return found


def changed_partition(partition: PartitionRecord, record: PartitionChangeRecord) -> PartitionRecord:
    """Return a partition after a change. A leader in the change raises the leader epoch, even if it is the same broker."""
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        _check_recovery_state(record.leader_recovery_state)
    changed = changed_state(
        partition,
        record.leader,
        record.leader_recovery_state,
        record.isr,
        record.eligible_leader_replicas,
        record.last_known_elr,
    )
    if record.replicas is record.directories is record.removing_replicas is record.adding_replicas is None:
        return changed
    replicas = partition.replicas if record.replicas is None else record.replicas
    directories = partition.directories if record.directories is None else record.directories
    return replace(
        changed,
        replicas=replicas,
        directories=_directories(directories, len(replicas)),
        removing_replicas=partition.removing_replicas if record.removing_replicas is None else record.removing_replicas,
        adding_replicas=partition.adding_replicas if record.adding_replicas is None else record.adding_replicas,
    )


def changed_state(
    partition: PartitionRecord,
    leader: int,
    recovery_state: int,
    isr: Ids | None,
    elr: Ids | None,
    last_known_elr: Ids | None,
) -> PartitionRecord:
    """Return a partition after a change of its leader, ISR and eligible replicas, with the values of PartitionChangeRecord."""
    has_leader = leader != NO_LEADER_CHANGE
    # As above: a broker that leaves changes a hundred thousand of them.
    return PartitionRecord(
        partition.partition_id,
        partition.topic_id,
        partition.replicas,
        partition.isr if isr is None else isr,
        leader if has_leader else partition.leader,
        partition.leader_epoch + has_leader,
        partition.partition_epoch + 1,
        partition.removing_replicas,
        partition.adding_replicas,
        partition.leader_recovery_state if recovery_state == NO_RECOVERY_CHANGE else recovery_state,
        partition.directories,
        partition.eligible_leader_replicas if elr is None else elr,
        partition.last_known_elr if last_known_elr is None else last_known_elr,
        unknown_tags=partition.unknown_tags,
    )


def without_elr(partition: PartitionRecord) -> PartitionRecord:
    """Return a partition without eligible leader replicas. Its epoch is raised if it had any."""
    if not partition.eligible_leader_replicas and not partition.last_known_elr:
        return partition
    change = PartitionChangeRecord(
        partition.partition_id, partition.topic_id, eligible_leader_replicas=(), last_known_elr=()
    )
    return changed_partition(partition, change)


def _directories(directories: Uuids, replicas: int) -> Uuids:
    """Return a directory for each replica; if all are unknown, as many as there are replicas."""
    if all(directory.int == MIGRATING_DIRECTORY.int for directory in directories):
        return (MIGRATING_DIRECTORY,) * replicas
    if len(directories) != replicas:
        raise MetadataError(f"there are {replicas} replicas and {len(directories)} directories")
    return directories


def _check_recovery_state(state: int) -> None:
    if state not in _RECOVERY_STATES:
        raise MetadataError(f"{state} is no leader recovery state")
