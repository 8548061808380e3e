"""Replay of records. Sources: MetadataDelta, ClusterDelta, TopicsDelta, PartitionRegistration of Kafka; Java judges in test_java_judges.py."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from kafka_metadata import records
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import ConfigResource, MetadataImage
from kafka_metadata.records import MetadataRecord, ResourceType
from kafka_metadata.replay import replay

TOPIC_ID, DIRECTORY, OTHER = (uuid.UUID(int=number) for number in (7, 8, 9))
TOPIC = records.TopicRecord("topic", TOPIC_ID)
PARTITION = records.PartitionRecord(0, TOPIC_ID, (1, 2), (1, 2), 1, directories=(DIRECTORY, OTHER))
BROKER = records.RegisterBrokerRecord(1, OTHER, 30, ())
CONFIG = records.ConfigRecord(ResourceType.TOPIC, "topic", "retention.ms", "1")


def image(*found: MetadataRecord) -> MetadataImage:
    """Return the image of records."""
    return replay(MetadataImage(), found)


def partition(*changes: records.PartitionChangeRecord) -> records.PartitionRecord:
    """Return the partition after changes."""
    return image(TOPIC, PARTITION, *changes).topics[TOPIC_ID].partitions[0]


def refusal(*found: MetadataRecord) -> str:
    """Return why records cannot be applied."""
    with pytest.raises(MetadataError) as refused:
        replay(MetadataImage(), found, base_offset=100)
    return str(refused.value)


def test_a_leader_in_a_change_raises_the_leader_epoch_even_if_it_is_the_same() -> None:
    """PartitionRegistration.merge."""
    changed = partition(records.PartitionChangeRecord(0, TOPIC_ID, leader=1))

    assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (1, 1, 1)


def test_a_change_without_a_leader_raises_only_the_partition_epoch() -> None:
    """PartitionRegistration.merge."""
    changed = partition(records.PartitionChangeRecord(0, TOPIC_ID, isr=(1,)))

    assert (changed.isr, changed.leader_epoch, changed.partition_epoch) == ((1,), 0, 1)


def test_new_replicas_without_known_directories_have_unknown_ones() -> None:
    """DirectoryId.MIGRATING."""
    changed = partition(records.PartitionChangeRecord(0, TOPIC_ID, replicas=(1, 2, 3), directories=()))

    assert changed.directories == (MIGRATING_DIRECTORY,) * 3


def test_a_removed_topic_takes_its_configs_with_it() -> None:
    """ConfigurationsDelta.replay(RemoveTopicRecord)."""
    after = image(TOPIC, PARTITION, CONFIG, records.RemoveTopicRecord(TOPIC_ID))

    assert after == MetadataImage()


def test_a_topic_that_is_created_again_has_its_new_id() -> None:
    """The old id is removed before or after."""
    after = image(TOPIC, records.TopicRecord("topic", OTHER), records.RemoveTopicRecord(TOPIC_ID))

    assert after.topic("topic") == after.topics[OTHER]


def test_eligible_leader_replicas_are_cleared_where_there_are_any() -> None:
    """TopicDelta.maybeClearElr: the partition epoch is raised."""
    elr = records.PartitionChangeRecord(0, TOPIC_ID, eligible_leader_replicas=(2,))
    second = replace(PARTITION, partition_id=1)
    after = image(TOPIC, PARTITION, second, elr, records.ClearElrRecord("")).topics[TOPIC_ID]

    cleared = {
        number: (state.eligible_leader_replicas, state.partition_epoch) for number, state in after.partitions.items()
    }
    assert cleared == {0: ((), 2), 1: ((), 0)}


def test_a_config_without_a_value_is_removed() -> None:
    """ConfigurationDelta."""
    resource = ConfigResource(ResourceType.TOPIC, "topic")
    other = replace(CONFIG, name="segment.bytes", value="2")

    assert image(CONFIG, other, replace(CONFIG, value=None)).configs == {resource: {"segment.bytes": other}}
    assert image(CONFIG, replace(CONFIG, value=None)).configs == {}


def test_values_of_configs_are_read_by_resource() -> None:
    """A resource without configs has none."""
    after = image(CONFIG)

    assert after.config_values(ResourceType.TOPIC, "topic") == {"retention.ms": "1"}
    assert after.config_values(ResourceType.BROKER, "") == {}


def test_a_feature_of_level_0_and_kraft_version_are_not_in_the_image() -> None:
    """FeaturesDelta.replay, KAFKA-18979."""
    levels = [records.FeatureLevelRecord("group.version", level) for level in (1, 0)]

    assert image(*levels, records.FeatureLevelRecord("kraft.version", 1)).features == {}


def test_an_unknown_metadata_version_is_refused() -> None:
    """It may change the meaning of records."""
    assert refusal(records.NoOpRecord(), records.FeatureLevelRecord("metadata.version", 31)) == (
        "The FeatureLevelRecord at offset 101 cannot be applied: metadata.version 31 is unknown (3.3-IV3 to 4.3-IV0, which are 7 to 30, "
        "are known); run a version of Steward that has it."
    )


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([PARTITION], f"there is no topic with the id {TOPIC_ID}"),
        ([records.RemoveTopicRecord(TOPIC_ID)], f"there is no topic with the id {TOPIC_ID}"),
        ([records.ClearElrRecord("gone")], "there is no topic 'gone'"),
        ([TOPIC, records.PartitionChangeRecord(3, TOPIC_ID)], f"the topic with the id {TOPIC_ID} has no partition 3"),
        ([TOPIC, replace(PARTITION, directories=(OTHER,))], "there are 2 replicas and 1 directories"),
        ([TOPIC, replace(PARTITION, leader_recovery_state=2)], "2 is no leader recovery state"),
        ([records.FenceBrokerRecord(1, 30)], "broker 1 is not registered"),
        ([BROKER, records.FenceBrokerRecord(1, 29)], "broker 1 has the epoch 30, not 29"),
        ([BROKER, records.BrokerRegistrationChangeRecord(1, 30, fenced=2)], "2 is no change of fencing"),
        ([records.RemoveAccessControlEntryRecord(OTHER)], f"there is no ACL with the id {OTHER}"),
        ([records.BeginTransactionRecord()], "a marker of a transaction is not part of a snapshot"),
        ([records.EndTransactionRecord()], "a marker of a transaction is not part of a snapshot"),
        ([records.AbortTransactionRecord()], "a marker of a transaction is not part of a snapshot"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_records_that_contradict_the_image_are_refused_with_offset_and_type(
    found: list[MetadataRecord], reason: str
) -> None:
    """Exceptions of Kafka's deltas, which stop the process."""
    name, offset = type(found[-1]).__name__, 99 + len(found)

    assert refusal(*found) == f"The {name} at offset {offset} cannot be applied: {reason}."


@pytest.mark.parametrize(
    ("record", "is_kept"),
    [
        (records.ConfigRecord(records.ResourceType.TOPIC, "orders", "message.format.version", "3.0"), False),
        (records.ConfigRecord(records.ResourceType.TOPIC, "orders", "internal.segment.bytes", "100"), True),
        (records.ConfigRecord(records.ResourceType.GROUP, "app", "unknown", "1"), False),
        (records.ConfigRecord(records.ResourceType.CLIENT_METRICS, "sub", "interval.ms", "1000"), True),
        (records.ConfigRecord(records.ResourceType.BROKER, "1", "listener.name.x.ssl.keystore.type", "PEM"), True),
        (records.ConfigRecord(99, "future", "retention.ms", "1"), False),
    ],
)
def test_configs_that_kafka_does_not_know_have_no_effect(record: records.ConfigRecord, is_kept: bool) -> None:
    """DefaultSupportedConfigChecker: earlier versions wrote them, and with them no other config of the topic could be changed."""
    found = replay(MetadataImage(), [record])

    assert found.config_values(record.resource_type, record.resource_name) == (
        {record.name: record.value} if is_kept else {}
    )


def test_an_image_does_not_change_and_shares_what_is_the_same() -> None:
    """A broker's threads read an image while the next one is made."""
    before = image(TOPIC, PARTITION, CONFIG, BROKER)
    copy = image(TOPIC, PARTITION, CONFIG, BROKER)
    changes = [records.PartitionChangeRecord(0, TOPIC_ID, leader=2), records.UnregisterBrokerRecord(1, 30)]
    after = replay(before, changes)

    assert before == copy
    assert after != before
    assert after.configs is before.configs
    assert after.topic_ids is before.topic_ids
