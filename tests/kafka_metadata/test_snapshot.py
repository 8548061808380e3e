"""Records of snapshots. Source: MetadataImage.write of Kafka; Java judges in test_java_judges.py."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from hypothesis import given

from kafka_metadata import records
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import ELR_VERSION, METADATA_VERSION
from kafka_metadata.record_codec import decode_record
from kafka_metadata.records import RECORD_CLASSES, MetadataRecord
from kafka_metadata.replay import replay
from kafka_metadata.snapshot import snapshot_records, snapshot_values
from tests.effort import examples
from tests.kafka_metadata.record_values import record_logs
from tests.kafka_metadata.test_replay import BROKER, CONFIG, PARTITION, TOPIC, image

VERSION = records.FeatureLevelRecord(METADATA_VERSION, 30)
ELR = records.FeatureLevelRecord(ELR_VERSION, 1)

ORDER = [
    records.FeatureLevelRecord, records.RegisterBrokerRecord, records.RegisterControllerRecord, records.TopicRecord,
    records.PartitionRecord, records.ConfigRecord, records.ClientQuotaRecord, records.ProducerIdsRecord,
    records.AccessControlEntryRecord, records.UserScramCredentialRecord, records.DelegationTokenRecord,
]  # fmt: skip
"""Order of MetadataImage.write; partitions follow their topic."""


@examples(25)
@given(record_logs())
def test_a_snapshot_has_the_whole_image(log: list[MetadataRecord]) -> None:
    """Except what Kafka's snapshots lack: the state of a migration, and eligible leader replicas while their feature is off."""
    before = replay(MetadataImage(), log)
    values = list(snapshot_values(before))
    again = replay(MetadataImage(), [decode_record(value, offset) for offset, value in enumerate(values)])

    assert list(snapshot_values(again)) == values
    if before.is_elr_enabled:
        assert again == replace(before, zk_migration_state=None)


@examples(25)
@given(record_logs())
def test_records_are_in_the_order_of_kafkas_images(log: list[MetadataRecord]) -> None:
    """metadata.version is the first record."""
    found = list(snapshot_records(replay(MetadataImage(), log)))
    sections = [
        ORDER.index(records.TopicRecord if isinstance(record, records.PartitionRecord) else type(record))
        for record in found
    ]

    assert sections == sorted(sections)
    assert found[0] == log[0]


def test_every_type_is_in_snapshots_or_only_changes_what_is() -> None:
    """Twelve types with those that are read only."""
    changes = set(RECORD_CLASSES) - set(ORDER)

    assert sorted(
        change.__name__ for change in changes if not change.__name__.startswith(("Remove", "Unregister"))
    ) == [
        "AbortTransactionRecord",
        "BeginTransactionRecord",
        "BrokerRegistrationChangeRecord",
        "ClearElrRecord",
        "EndTransactionRecord",
        "FenceBrokerRecord",
        "NoOpRecord",
        "PartitionChangeRecord",
        "UnfenceBrokerRecord",
        "ZkMigrationStateRecord",
    ]


def test_unknown_tagged_fields_are_in_the_snapshot() -> None:
    """Of entries that changed since, too."""
    broker = replace(BROKER, unknown_tags=((7, b"new"),))
    fence = records.BrokerRegistrationChangeRecord(1, 30, fenced=-1)

    assert list(snapshot_records(image(VERSION, broker, fence))) == [VERSION, replace(broker, fenced=False)]


def test_eligible_leader_replicas_are_written_while_their_feature_is_on() -> None:
    """ImageWriterOptions.isEligibleLeaderReplicasEnabled; empty lists are left out."""
    partition = replace(PARTITION, eligible_leader_replicas=(2,), last_known_elr=())
    on = list(snapshot_records(image(VERSION, ELR, TOPIC, partition)))
    off = list(snapshot_records(image(VERSION, TOPIC, partition)))

    assert on[-1] == replace(partition, last_known_elr=None)
    assert off[-1] == replace(partition, eligible_leader_replicas=None, last_known_elr=None)


def test_the_broker_of_the_last_block_of_producer_ids_is_not_in_a_snapshot() -> None:
    """ProducerIdsImage.write."""
    assert list(snapshot_records(image(VERSION, records.ProducerIdsRecord(3, 4, 5000))))[1:] == [
        records.ProducerIdsRecord(-1, -1, 5000)
    ]


def test_a_snapshot_that_would_lose_directories_is_refused() -> None:
    """UnwritableMetadataException."""
    with pytest.raises(MetadataError) as refused:
        list(snapshot_values(image(replace(VERSION, feature_level=16), TOPIC, PARTITION)))

    assert (
        str(refused.value) == "A snapshot cannot be written: metadata.version 3.7-IV1 has no directories of replicas."
    )


def test_a_snapshot_without_a_metadata_version_is_refused() -> None:
    """A reader needs it for the other records."""
    with pytest.raises(MetadataError) as refused:
        list(snapshot_values(image(CONFIG)))

    assert str(refused.value) == "A snapshot cannot be written: there is no metadata.version."


def test_directories_that_are_unknown_are_left_out_of_old_snapshots() -> None:
    """PartitionRegistration.toRecord."""
    partition = replace(PARTITION, directories=(uuid.UUID(int=0),) * 2)
    written = list(snapshot_records(image(replace(VERSION, feature_level=16), TOPIC, partition)))

    assert written[-1] == replace(partition, directories=())
