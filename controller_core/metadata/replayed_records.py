"""Committed metadata records in the state of a controller: a standby that follows the log, or any controller that loads a snapshot.

The way back of `change_records`: a record becomes a change, and `quorum_mode.transitions.apply` is the only function that changes the state,
as in the controller that wrote the record. What a record does to a broker or partition is decided by `kafka_metadata` (`broker_replay`,
`partition_replay`), which images use too. Successive records of partitions become one change.

Records of transactions are not among the records; the caller holds them back until the transaction ends. Records of `NOT_DECIDED_BY` (ACLs,
credentials, quotas, tokens, controllers) change only the image.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

import numpy as np

from controller_core.metadata.change_records import broker_record
from controller_core.model import Broker, Cluster, Endpoint, IntArray, Move, Origin, changes, quorum_changes
from controller_core.model.broker import FeatureRange
from controller_core.model.columns import pad, unpad
from controller_core.quorum_mode.transitions import apply
from kafka_metadata import broker_replay, failures, metadata_versions, partition_replay, records, supported_configs

NOT_DECIDED_BY = (
    records.AccessControlEntryRecord,
    records.ClientQuotaRecord,
    records.DelegationTokenRecord,
    records.NoOpRecord,
    records.RegisterControllerRecord,
    records.RemoveAccessControlEntryRecord,
    records.RemoveDelegationTokenRecord,
    records.RemoveUserScramCredentialRecord,
    records.UserScramCredentialRecord,
    records.ZkMigrationStateRecord,
)
"""Records on which no decision about brokers, topics and partitions depends."""

_SECURITY_PROTOCOLS = {number: name for name, number in records.SECURITY_PROTOCOL_IDS.items()}


def replay_records(cluster: Cluster, found: Iterable[records.MetadataRecord], base_offset: int = 0) -> None:
    """Apply committed records, of which the first has the base offset, to a cluster in KRaft mode.

    Raises MetadataError, which names the offset, for a record that contradicts the state; the state is then unusable.
    """
    partitions = _Partitions(cluster)
    for offset, record in enumerate(found, start=base_offset):
        try:
            if isinstance(record, records.PartitionRecord | records.PartitionChangeRecord):
                partitions.add(record)
            else:
                partitions.apply()
                _replay(cluster, record)
        except failures.MetadataError as error:
            name = type(record).__name__
            raise failures.MetadataError(f"The {name} at offset {offset} cannot be applied: {error}.") from error
    partitions.apply()


class _Partitions:
    """Partitions after the records read so far, until they are applied together."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: dict[str, dict[int, records.PartitionRecord]] = {}
        """By topic and partition."""
        self._topic_id: UUID | None = None
        self._topic = ""
        """The topic of the last record: successive ones mostly are of the same, and share the object of its id."""

    def add(self, record: records.PartitionRecord | records.PartitionChangeRecord) -> None:
        """Add a record. Raises MetadataError."""
        if record.topic_id is not self._topic_id:
            self._topic = topic_name(self._cluster, record.topic_id)
            self._topic_id = record.topic_id
        of_topic = self._found.setdefault(self._topic, {})
        if isinstance(record, records.PartitionRecord):
            of_topic[record.partition_id] = partition_replay.new_partition(record)
            return
        known = of_topic.get(record.partition_id) or self._known(self._topic, record)
        of_topic[record.partition_id] = partition_replay.changed_partition(known, record)

    def _known(self, topic: str, record: records.PartitionChangeRecord) -> records.PartitionRecord:
        return partition_record(self._cluster, _row_of(self._cluster, topic, record.partition_id))

    def apply(self) -> None:
        """Change the cluster's state."""
        if self._found:
            apply(self._cluster, _replayed(self._found))
        self._found, self._topic_id = {}, None


def _row_of(cluster: Cluster, topic: str, partition: int) -> int:
    row = cluster.row_of(topic, partition)
    if row is None:
        raise unknown_partition(cluster, topic, partition)
    return row


def unknown_partition(cluster: Cluster, topic: str, partition: int) -> failures.MetadataError:
    """Return the error about a partition that a topic does not have."""
    return failures.MetadataError(
        f"the topic with the id {cluster.topics[topic].topic_id} has no partition {partition}"
    )


def partition_record(cluster: Cluster, row: int) -> records.PartitionRecord:
    """Return the record that has the whole state of a partition."""
    columns, one = cluster.columns, np.array([row], dtype=np.int32)
    topic_id, move = cluster.topic_at(row).topic_id, cluster.moves.get(row)
    assert topic_id is not None, "a topic of KRaft mode has an id"
    return records.PartitionRecord(
        int(columns.partition[row]),
        topic_id,
        columns.replicas_of(row),
        columns.isr_of(row),
        int(columns.leader[row]),
        int(columns.leader_epoch[row]),
        int(columns.partition_epoch[row]),
        move.removing if move else (),
        move.adding if move else (),
        int(columns.recovering[row]),
        cluster.directories_of(row),
        unpad(columns.elr_in(one)[0]),
        unpad(columns.last_known_elr_in(one)[0]),
    )


def _replayed(by_topic: Mapping[str, Mapping[int, records.PartitionRecord]]) -> quorum_changes.PartitionsReplayed:
    found = [record for partitions in by_topic.values() for record in partitions.values()]
    numbers: dict[UUID, int] = {}
    directories = [
        [numbers.setdefault(directory, len(numbers)) for directory in record.directories] for record in found
    ]
    return quorum_changes.PartitionsReplayed(
        [(topic, len(partitions)) for topic, partitions in by_topic.items()],
        _numbers(record.partition_id for record in found),
        pad([record.replicas for record in found]),
        pad([record.isr for record in found]),
        _numbers(record.leader for record in found),
        _numbers(record.leader_epoch for record in found),
        _numbers(record.partition_epoch for record in found),
        np.array([record.leader_recovery_state for record in found], dtype=np.bool_),
        pad([record.eligible_leader_replicas or () for record in found]),
        pad([record.last_known_elr or () for record in found]),
        list(numbers),
        pad(directories),
        {
            place: Move(record.replicas, record.adding_replicas, record.removing_replicas)
            for place, record in enumerate(found)
            if record.adding_replicas or record.removing_replicas
        },
    )


def _numbers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int32)


def _replay(cluster: Cluster, record: records.MetadataRecord) -> None:
    if (change_of := _CHANGES.get(type(record))) is not None:
        change = change_of(cluster, record)
        if change is not None:
            apply(cluster, change)
    elif not isinstance(record, NOT_DECIDED_BY):
        raise failures.MetadataError("a marker of a transaction does not change the state")


def topic_name(cluster: Cluster, topic_id: UUID) -> str:
    """Return the name of a topic. Raises MetadataError."""
    name = cluster.topic_name(topic_id)
    if name is None:
        raise failures.MetadataError(f"there is no topic with the id {topic_id}")
    return name


def _feature_level(_cluster: Cluster, record: records.FeatureLevelRecord) -> quorum_changes.FeatureLevelChanged | None:
    if record.name == metadata_versions.KRAFT_VERSION:
        return None  # The quorum's control records have it.
    if record.name == metadata_versions.METADATA_VERSION:
        metadata_versions.check_level(record.feature_level)
    return quorum_changes.FeatureLevelChanged(record.name, record.feature_level)


def _register_broker(_cluster: Cluster, record: records.RegisterBrokerRecord) -> quorum_changes.BrokerRegistered:
    return quorum_changes.BrokerRegistered(broker_of(broker_replay.new_registration(record)))


def _change_broker(
    cluster: Cluster,
    record: records.BrokerRegistrationChangeRecord | records.FenceBrokerRecord | records.UnfenceBrokerRecord,
) -> quorum_changes.BrokerRegistered:
    broker_id = record.broker_id if isinstance(record, records.BrokerRegistrationChangeRecord) else record.id
    known = cluster.brokers.get(broker_id)
    changed = broker_replay.changed_registration(None if known is None else broker_record(known), record)
    return quorum_changes.BrokerRegistered(broker_of(changed))


def broker_of(record: records.RegisterBrokerRecord) -> Broker:
    """Return the broker of a registration. Raises MetadataError for a security protocol that is unknown."""
    return Broker(
        record.broker_id,
        record.broker_epoch,
        tuple(
            Endpoint(
                endpoint.name, endpoint.host, endpoint.port, _security_protocol(record, endpoint.security_protocol)
            )
            for endpoint in record.end_points
        ),
        record.rack,
        record.incarnation_id,
        record.fenced,
        record.in_controlled_shutdown,
        record.log_dirs,
        record.cordoned_log_dirs,
        tuple(
            FeatureRange(feature.name, feature.min_supported_version, feature.max_supported_version)
            for feature in record.features
        ),
    )


def _security_protocol(record: records.RegisterBrokerRecord, number: int) -> str:
    name = _SECURITY_PROTOCOLS.get(number)
    if name is None:
        raise failures.MetadataError(
            f"a listener of broker {record.broker_id} has the unknown security protocol {number}"
        )
    return name


def _unregister_broker(_cluster: Cluster, record: records.UnregisterBrokerRecord) -> changes.BrokerUnregistered:
    return changes.BrokerUnregistered(record.broker_id, record.broker_epoch)


def _topic(cluster: Cluster, record: records.TopicRecord) -> changes.TopicAdded:
    if record.name in cluster.topics:
        raise failures.MetadataError(f"the topic {record.name!r} exists already")
    nothing = np.zeros(0, dtype=np.int32)
    return changes.TopicAdded(record.name, record.topic_id, nothing, pad([]), Origin.OBSERVED)


def _remove_topic(cluster: Cluster, record: records.RemoveTopicRecord) -> changes.TopicRemoved:
    return changes.TopicRemoved(topic_name(cluster, record.topic_id), Origin.OBSERVED)


def _clear_elr(cluster: Cluster, record: records.ClearElrRecord) -> quorum_changes.ElrCleared:
    if record.topic_name and record.topic_name not in cluster.topics:
        raise failures.MetadataError(f"there is no topic {record.topic_name!r}")
    return quorum_changes.ElrCleared(record.topic_name or None)


def _config(_cluster: Cluster, record: records.ConfigRecord) -> quorum_changes.ConfigsChanged | None:
    if not supported_configs.is_supported(record):
        return None
    return quorum_changes.ConfigsChanged(
        records.ResourceType(record.resource_type), record.resource_name, {record.name: record.value}
    )


def _producer_ids(_cluster: Cluster, record: records.ProducerIdsRecord) -> changes.ProducerIdsObserved:
    return changes.ProducerIdsObserved(record.next_producer_id - 1)


_CHANGES: Mapping[type[records.MetadataRecord], Callable[[Cluster, Any], changes.Change | None]] = {
    records.BrokerRegistrationChangeRecord: _change_broker,
    records.ClearElrRecord: _clear_elr,
    records.ConfigRecord: _config,
    records.FeatureLevelRecord: _feature_level,
    records.FenceBrokerRecord: _change_broker,
    records.ProducerIdsRecord: _producer_ids,
    records.RegisterBrokerRecord: _register_broker,
    records.RemoveTopicRecord: _remove_topic,
    records.TopicRecord: _topic,
    records.UnfenceBrokerRecord: _change_broker,
    records.UnregisterBrokerRecord: _unregister_broker,
}
