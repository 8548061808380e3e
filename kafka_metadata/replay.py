"""Replay of records: the image after them. Source: MetadataDelta and the deltas of its parts in Kafka.

Records are applied one after another to a draft, which copies a part of the image when it first changes, so that a batch costs one copy of
each part that it changes. Records that contradict the image (an unknown partition, another broker epoch) raise MetadataError: the
state of this node would no longer be that of the other nodes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafka_metadata import records
from kafka_metadata.broker_replay import changed_registration, new_registration
from kafka_metadata.draft import Draft
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import ConfigResource, MetadataImage, quota_entity
from kafka_metadata.metadata_versions import KRAFT_VERSION, METADATA_VERSION, check_level
from kafka_metadata.partition_replay import changed_partition, known_partition, new_partition, without_elr
from kafka_metadata.records import MetadataRecord, PartitionRecord, RegisterBrokerRecord, ResourceType, TopicRecord
from kafka_metadata.supported_configs import is_supported


def replay(image: MetadataImage, found: Iterable[MetadataRecord], base_offset: int = 0) -> MetadataImage:
    """Return the image after records, of which the first has the base offset.

    Records of transactions are not among them: `metadata_log` resolves these. Raises MetadataError, which names the offset.
    """
    draft = Draft(image)
    replay_into(draft, found, base_offset)
    return draft.result()


def replay_into(draft: Draft, found: Iterable[MetadataRecord], base_offset: int = 0) -> None:
    """Apply the same records to the draft of an image, for a caller that has more of them. Raises as `replay`."""
    for offset, record in enumerate(found, start=base_offset):
        try:
            _apply(draft, record)
        except MetadataError as error:
            name = type(record).__name__
            raise MetadataError(f"The {name} at offset {offset} cannot be applied: {error}.") from error


def _apply(draft: Draft, record: MetadataRecord) -> None:
    apply = _REPLAYS.get(type(record))
    if apply is not None:
        apply(draft, record)
    elif not isinstance(record, records.NoOpRecord):
        raise MetadataError("a marker of a transaction is not part of a snapshot")


def _feature_level(draft: Draft, record: records.FeatureLevelRecord) -> None:
    if record.name == KRAFT_VERSION:
        return  # The quorum's control records have it; Kafka ignores such a record too (KAFKA-18979).
    if record.name == METADATA_VERSION:
        check_level(record.feature_level)
    elif record.feature_level == 0:
        draft.features.changed().pop(record.name, None)
        return
    draft.features.changed()[record.name] = record


def _register_broker(draft: Draft, record: RegisterBrokerRecord) -> None:
    draft.brokers.changed()[record.broker_id] = new_registration(record)


def _unregister_broker(draft: Draft, record: records.UnregisterBrokerRecord) -> None:
    draft.brokers.changed().pop(record.broker_id, None)


def _change_registration(draft: Draft, record: records.BrokerRegistrationChangeRecord) -> None:
    draft.brokers.changed()[record.broker_id] = changed_registration(draft.brokers.get(record.broker_id), record)


def _fence_or_unfence(draft: Draft, record: records.FenceBrokerRecord | records.UnfenceBrokerRecord) -> None:
    draft.brokers.changed()[record.id] = changed_registration(draft.brokers.get(record.id), record)


def _register_controller(draft: Draft, record: records.RegisterControllerRecord) -> None:
    draft.controllers.changed()[record.controller_id] = record


def _topic(draft: Draft, record: TopicRecord) -> None:
    draft.topics.add(record)


def _remove_topic(draft: Draft, record: records.RemoveTopicRecord) -> None:
    name = draft.topics.remove(record.topic_id)
    resource = ConfigResource(ResourceType.TOPIC, name)
    if draft.configs.get(resource) is not None:
        del draft.configs.changed()[resource]


def _partition(draft: Draft, record: PartitionRecord) -> None:
    draft.topics.partitions(record.topic_id)[record.partition_id] = new_partition(record)


def _change_partition(draft: Draft, record: records.PartitionChangeRecord) -> None:
    partitions = draft.topics.partitions(record.topic_id)
    partition = known_partition(partitions, record.topic_id, record.partition_id)
    partitions[record.partition_id] = changed_partition(partition, record)


def _clear_elr(draft: Draft, record: records.ClearElrRecord) -> None:
    topics = [draft.topics.id_of(record.topic_name)] if record.topic_name else draft.topics.all_ids()
    for topic_id in topics:
        partitions = draft.topics.partitions(topic_id)
        partitions.update({number: without_elr(partition) for number, partition in partitions.items()})


def _config(draft: Draft, record: records.ConfigRecord) -> None:
    if not is_supported(record):
        return
    resource = ConfigResource(record.resource_type, record.resource_name)
    values = dict(draft.configs.get(resource) or {})
    values.pop(record.name, None)
    if record.value is not None:
        values[record.name] = record
    _put_or_remove(draft.configs.changed(), resource, values)


def _client_quota(draft: Draft, record: records.ClientQuotaRecord) -> None:
    entity = quota_entity(record.entity)
    quotas = dict(draft.client_quotas.get(entity) or {})
    quotas.pop(record.key, None)
    if not record.remove:
        quotas[record.key] = record
    _put_or_remove(draft.client_quotas.changed(), entity, quotas)


def _put_or_remove(part: dict[Any, Any], key: object, values: Mapping[Any, Any]) -> None:
    if values:
        part[key] = values
    else:
        part.pop(key, None)


def _producer_ids(draft: Draft, record: records.ProducerIdsRecord) -> None:
    draft.producer_ids = replace(record, broker_id=-1, broker_epoch=-1)


def _acl(draft: Draft, record: records.AccessControlEntryRecord) -> None:
    draft.acls.changed()[record.id] = record


def _remove_acl(draft: Draft, record: records.RemoveAccessControlEntryRecord) -> None:
    if draft.acls.get(record.id) is None:
        raise MetadataError(f"there is no ACL with the id {record.id}")
    del draft.acls.changed()[record.id]


def _scram_credential(draft: Draft, record: records.UserScramCredentialRecord) -> None:
    draft.scram_credentials.changed()[record.mechanism, record.name] = record


def _remove_scram_credential(draft: Draft, record: records.RemoveUserScramCredentialRecord) -> None:
    draft.scram_credentials.changed().pop((record.mechanism, record.name), None)


def _token(draft: Draft, record: records.DelegationTokenRecord) -> None:
    draft.delegation_tokens.changed()[record.token_id] = record


def _remove_token(draft: Draft, record: records.RemoveDelegationTokenRecord) -> None:
    draft.delegation_tokens.changed().pop(record.token_id, None)


def _zk_migration_state(draft: Draft, record: records.ZkMigrationStateRecord) -> None:
    draft.zk_migration_state = record.zk_migration_state


_REPLAYS: Mapping[type[MetadataRecord], Callable[[Draft, Any], None]] = {
    records.FeatureLevelRecord: _feature_level,
    records.RegisterBrokerRecord: _register_broker,
    records.UnregisterBrokerRecord: _unregister_broker,
    records.FenceBrokerRecord: _fence_or_unfence,
    records.UnfenceBrokerRecord: _fence_or_unfence,
    records.BrokerRegistrationChangeRecord: _change_registration,
    records.RegisterControllerRecord: _register_controller,
    records.TopicRecord: _topic,
    records.RemoveTopicRecord: _remove_topic,
    records.PartitionRecord: _partition,
    records.PartitionChangeRecord: _change_partition,
    records.ClearElrRecord: _clear_elr,
    records.ConfigRecord: _config,
    records.ClientQuotaRecord: _client_quota,
    records.ProducerIdsRecord: _producer_ids,
    records.AccessControlEntryRecord: _acl,
    records.RemoveAccessControlEntryRecord: _remove_acl,
    records.UserScramCredentialRecord: _scram_credential,
    records.RemoveUserScramCredentialRecord: _remove_scram_credential,
    records.DelegationTokenRecord: _token,
    records.RemoveDelegationTokenRecord: _remove_token,
    records.ZkMigrationStateRecord: _zk_migration_state,
}
