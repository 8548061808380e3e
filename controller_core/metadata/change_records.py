"""Metadata records of the changes that decisions make in KRaft mode.

A change is written before it is applied: its records are the differences to the state before. Changes of partitions and new partitions are
columns (`partition_changes`, `new_partitions`), all others are values. Changes that are only observed or kept in memory have no records. Source: the control managers
of Kafka's controller; ReplicationControlManager.createTopic for the order of a topic's records.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from controller_core.metadata.new_partitions import new_partitions
from controller_core.metadata.partition_changes import partition_changes
from controller_core.metadata.payloads import Part
from controller_core.model import Broker, Cluster, changes, quorum_changes
from kafka_metadata import metadata_versions, records

IN_MEMORY = (
    quorum_changes.BrokerLeaving,
    quorum_changes.BrokerSuspected,
    quorum_changes.HeartbeatObserved,
    quorum_changes.ShutdownOffsetObserved,
)
"""Changes of KRaft mode without records."""

NEW_PARTITIONS = (changes.TopicAdded, changes.PartitionsAdded)


def change_records(made: Iterable[changes.Change], cluster: Cluster) -> list[Part]:
    """Return the records of successive changes to a cluster in KRaft mode, before any of them is applied.

    New topics come before the partitions of all of them, which are one part.
    """
    parts: list[Part] = []
    for are_new, some in groupby(made, lambda change: isinstance(change, NEW_PARTITIONS)):
        found = list(some)
        parts += _new(found, cluster) if are_new else [_records(change, cluster) for change in found]
    return parts


def _records(change: changes.Change, cluster: Cluster) -> Part:
    if isinstance(change, IN_MEMORY):
        return ()
    if isinstance(change, changes.PartitionStates):
        return partition_changes(change, cluster)
    return tuple(_WRITERS[type(change)](change, cluster))


def _new(made: Sequence[Any], cluster: Cluster) -> Iterator[Part]:
    yield tuple(record for change in made if isinstance(change, changes.TopicAdded) for record in _add_topic(change))
    added = [(_topic_id(cluster, change), change) for change in made if len(change.partitions)]
    if added:
        yield new_partitions(
            added, cluster.features.get(metadata_versions.METADATA_VERSION, metadata_versions.MINIMUM_VERSION)
        )


def _register_broker(change: quorum_changes.BrokerRegistered, _cluster: Cluster) -> Iterator[records.MetadataRecord]:
    yield broker_record(change.broker)


def broker_record(broker: Broker) -> records.RegisterBrokerRecord:
    """Return the record of a registration."""
    assert broker.incarnation_id is not None, "a registration of KRaft mode has an incarnation"
    return records.RegisterBrokerRecord(
        broker.id,
        broker.incarnation_id,
        broker.epoch,
        tuple(
            records.EndPoint(
                endpoint.listener,
                endpoint.host,
                endpoint.port,
                records.SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
            )
            for endpoint in broker.endpoints
        ),
        tuple(records.SupportedFeature(feature.name, feature.minimum, feature.maximum) for feature in broker.features),
        broker.rack,
        broker.fenced,
        broker.in_controlled_shutdown,
        broker.directories,
        broker.cordoned_directories,
    )


def _change_broker(change: quorum_changes.BrokerChanged, cluster: Cluster) -> Iterator[records.MetadataRecord]:
    was_in_shutdown = cluster.brokers[change.broker].in_controlled_shutdown
    ends_shutdown = change.in_controlled_shutdown is False and was_in_shutdown
    assert not ends_shutdown, "only a new incarnation ends a controlled shutdown"
    assert change.directories != (), "an empty list of directories means unchanged"
    fenced = records.FencingChange.NONE
    if change.fenced is not None:
        fenced = records.FencingChange.FENCE if change.fenced else records.FencingChange.UNFENCE
    yield records.BrokerRegistrationChangeRecord(
        change.broker,
        change.broker_epoch,
        fenced,
        int(bool(change.in_controlled_shutdown)),
        change.directories or (),
        change.cordoned_directories,
    )


def _unregister_broker(change: changes.BrokerUnregistered, _cluster: Cluster) -> Iterator[records.MetadataRecord]:
    yield records.UnregisterBrokerRecord(change.broker, change.broker_epoch)


def _change_configs(change: quorum_changes.ConfigsChanged, _cluster: Cluster) -> Iterator[records.MetadataRecord]:
    for name, value in change.values.items():
        yield records.ConfigRecord(change.type, change.name, name, value)


def _change_feature(change: quorum_changes.FeatureLevelChanged, _cluster: Cluster) -> Iterator[records.MetadataRecord]:
    yield records.FeatureLevelRecord(change.name, change.level)


def _clear_elr(change: quorum_changes.ElrCleared, _cluster: Cluster) -> Iterator[records.MetadataRecord]:
    yield records.ClearElrRecord(change.topic or "")


def _add_topic(change: changes.TopicAdded) -> Iterator[records.MetadataRecord]:
    assert not change.moves, "a new topic has no moves"
    yield records.TopicRecord(change.name, _known_id(change.topic_id))
    for name, value in change.configs.items():
        yield records.ConfigRecord(records.ResourceType.TOPIC, change.name, name, value)


def _remove_topic(change: changes.TopicRemoved, cluster: Cluster) -> Iterator[records.MetadataRecord]:
    yield records.RemoveTopicRecord(_known_id(cluster.topics[change.topic].topic_id))


def _topic_id(cluster: Cluster, change: changes.TopicAdded | changes.PartitionsAdded) -> UUID:
    return _known_id(
        change.topic_id if isinstance(change, changes.TopicAdded) else cluster.topics[change.topic].topic_id
    )


def _known_id(topic_id: UUID | None) -> UUID:
    assert topic_id is not None, "a topic of KRaft mode has an id"
    return topic_id


def _allocate_producer_ids(change: changes.ProducerIdsAllocated, _cluster: Cluster) -> Iterator[records.MetadataRecord]:
    yield records.ProducerIdsRecord(change.broker, change.broker_epoch, change.last + 1)


_WRITERS: Mapping[type[changes.Change], Callable[[Any, Cluster], Iterator[records.MetadataRecord]]] = {
    quorum_changes.BrokerChanged: _change_broker,
    quorum_changes.BrokerRegistered: _register_broker,
    changes.BrokerUnregistered: _unregister_broker,
    quorum_changes.ConfigsChanged: _change_configs,
    quorum_changes.ElrCleared: _clear_elr,
    quorum_changes.FeatureLevelChanged: _change_feature,
    changes.ProducerIdsAllocated: _allocate_producer_ids,
    changes.TopicRemoved: _remove_topic,
}
