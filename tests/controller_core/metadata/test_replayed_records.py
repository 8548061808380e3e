"""Records in the state of a standby: what is refused, and what changes nothing. `test_change_records` has the way back (C15)."""

from __future__ import annotations

from uuid import UUID

import pytest

from controller_core.metadata.replayed_records import NOT_DECIDED_BY, replay_records
from controller_core.model import Cluster, TopicPartition
from controller_core.model.mode_rules import kraft_rules
from kafka_metadata import records
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import RECORD_CLASSES, MetadataRecord
from kafka_metadata.replay import replay
from tests.controller_core.quorum_mode.checked import state_of

TOPIC_ID, INCARNATION = UUID(int=100), UUID(int=200)
LISTENER = records.EndPoint("PLAINTEXT", "host1", 9092, 0)
BROKER = records.RegisterBrokerRecord(1, INCARNATION, 5, (LISTENER,))
TOPIC = records.TopicRecord("topic", TOPIC_ID)
PARTITION = records.PartitionRecord(0, TOPIC_ID, (1, 2), (1, 2), 1)
MARKERS = (records.BeginTransactionRecord, records.EndTransactionRecord, records.AbortTransactionRecord)


def follower(*found: MetadataRecord) -> Cluster:
    """Return the state after records."""
    cluster = Cluster(3000, 1, kraft_rules({}))
    replay_records(cluster, found)
    return cluster


def test_a_move_in_a_record_is_running() -> None:
    """A controller that takes over goes on with it."""
    moving = records.PartitionChangeRecord(
        0, TOPIC_ID, replicas=(3, 2, 1), adding_replicas=(3,), removing_replicas=(1,)
    )
    cluster = follower(TOPIC, PARTITION, moving)

    assert cluster.is_moving_to(TopicPartition("topic", 0), (3, 2))


def test_changes_of_one_partition_add_up_within_a_batch() -> None:
    """Each raises the partition epoch, and one with a leader also the leader epoch."""
    shrink = records.PartitionChangeRecord(0, TOPIC_ID, isr=(1,))
    cluster = follower(TOPIC, PARTITION, shrink, records.PartitionChangeRecord(0, TOPIC_ID, leader=-1))

    row = cluster.row_of("topic", 0)
    assert row is not None
    assert cluster.columns.isr_of(row) == (1,)
    assert (cluster.columns.leader_epoch[row], cluster.columns.partition_epoch[row]) == (1, 2)


def test_old_records_fence_and_unfence_a_broker() -> None:
    """Logs that began with Kafka 3.0."""
    fence, unfence = records.FenceBrokerRecord(1, 5), records.UnfenceBrokerRecord(1, 5)

    assert follower(BROKER, unfence).fenced == set()
    assert follower(BROKER, unfence, fence).fenced == {1}


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ((PARTITION,), f"there is no topic with the id {TOPIC_ID}"),
        ((records.RemoveTopicRecord(TOPIC_ID),), f"there is no topic with the id {TOPIC_ID}"),
        ((TOPIC, TOPIC), "the topic 'topic' exists already"),
        (
            (TOPIC, records.PartitionChangeRecord(3, TOPIC_ID)),
            f"the topic with the id {TOPIC_ID} has no partition 3",
        ),
        ((records.ClearElrRecord("gone"),), "there is no topic 'gone'"),
        ((records.FenceBrokerRecord(1, 5),), "broker 1 is not registered"),
        ((BROKER, records.BrokerRegistrationChangeRecord(1, 4)), "broker 1 has the epoch 5, not 4"),
        (
            (records.RegisterBrokerRecord(1, INCARNATION, 5, (records.EndPoint("X", "host1", 1, 9),)),),
            "a listener of broker 1 has the unknown security protocol 9",
        ),
        (
            (records.FeatureLevelRecord("metadata.version", 6),),
            "metadata.version 6 is unknown (3.3-IV3 to 4.3-IV0, which are 7 to 30, are known); run a version of Steward that has it",
        ),
        ((records.EndTransactionRecord(),), "a marker of a transaction does not change the state"),
    ],
)
def test_a_record_that_contradicts_the_state_is_refused(found: tuple[MetadataRecord, ...], reason: str) -> None:
    """The state would no longer be that of the other nodes (ADR 55)."""
    with pytest.raises(MetadataError) as refused:
        follower(*found)

    name, offset = type(found[-1]).__name__, len(found) - 1
    assert str(refused.value) == f"The {name} at offset {offset} cannot be applied: {reason}."


@pytest.mark.parametrize("record_class", NOT_DECIDED_BY)
def test_records_of_other_metadata_change_only_the_image(record_class: type[MetadataRecord]) -> None:
    """ACLs, credentials, quotas, tokens and controllers."""
    record = EXAMPLES[record_class]
    replay(MetadataImage(), [record] if record_class is not records.RemoveAccessControlEntryRecord else [ACL, record])

    assert state_of(follower(record)) == state_of(follower())


def test_kraft_version_is_not_metadata() -> None:
    """The quorum's control records have it (KAFKA-18979)."""
    assert follower(records.FeatureLevelRecord("kraft.version", 1)).features == {}


def test_every_type_of_record_is_replayed_or_known_to_change_nothing() -> None:
    """All 26 types."""
    decided = {record_class for record_class in RECORD_CLASSES if record_class not in (*NOT_DECIDED_BY, *MARKERS)}

    assert len(RECORD_CLASSES) == 26
    assert decided == {type(record) for record in DECIDED}


ACL = records.AccessControlEntryRecord(UUID(int=7), 2, "topic", 3, "User:alice", "*", 3, 2)
EXAMPLES: dict[type[MetadataRecord], MetadataRecord] = {
    type(record): record
    for record in (
        ACL,
        records.ClientQuotaRecord((records.QuotaEntityPart("user", "alice"),), "producer_byte_rate", 1.0),
        records.DelegationTokenRecord("User:alice", "User:alice", (), 1, 2, 3, "token"),
        records.NoOpRecord(),
        records.RegisterControllerRecord(3000, INCARNATION, False, (LISTENER,), ()),
        records.RemoveAccessControlEntryRecord(ACL.id),
        records.RemoveDelegationTokenRecord("token"),
        records.RemoveUserScramCredentialRecord("alice", 1),
        records.UserScramCredentialRecord("alice", 1, b"salt", b"stored", b"server", 4096),
        records.ZkMigrationStateRecord(0),
    )
}
DECIDED = (
    BROKER,
    TOPIC,
    PARTITION,
    records.BrokerRegistrationChangeRecord(1, 5),
    records.ClearElrRecord(),
    records.ConfigRecord(2, "topic", "min.insync.replicas", "1"),
    records.FeatureLevelRecord("metadata.version", 30),
    records.FenceBrokerRecord(1, 5),
    records.PartitionChangeRecord(0, TOPIC_ID),
    records.ProducerIdsRecord(1, 5, 1000),
    records.RemoveTopicRecord(TOPIC_ID),
    records.UnfenceBrokerRecord(1, 5),
    records.UnregisterBrokerRecord(1, 5),
)
"""One of each type on which decisions depend."""


def test_records_that_decide_are_all_replayed() -> None:
    """In an order in which each one is possible."""
    kinds = (records.RemoveTopicRecord, records.UnregisterBrokerRecord)
    order = sorted(DECIDED, key=lambda one: isinstance(one, kinds))

    assert state_of(follower(*order))["topics"] == {}
