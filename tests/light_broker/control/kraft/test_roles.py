"""Roles of a broker's partitions between two images, and the logs that no assignment explains."""

from uuid import UUID

import pytest

from kafka_metadata.directory_ids import UNASSIGNED_DIRECTORY
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kafka_metadata.replay import replay
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.kraft.roles import Role, RoleChanges, role_changes, stray_logs

OWN, OTHER = 2, 1
ORDERS, AGAIN = UUID(int=1000), UUID(int=1001)
DIRECTORY = UUID(int=2000)
PARTITION = TopicPartition("orders", 0)


def record(
    *, leader: int, replicas: tuple[int, ...] = (OWN, OTHER), topic_id: UUID = ORDERS, directory: UUID = DIRECTORY
) -> PartitionRecord:
    """Return partition 0 of a topic."""
    return PartitionRecord(0, topic_id, replicas, replicas, leader, directories=(directory,) * len(replicas))


def image(*found: MetadataRecord, before: MetadataImage | None = None) -> MetadataImage:
    """Return an image after records."""
    return replay(before or MetadataImage(), found)


CREATED = image(TopicRecord("orders", ORDERS), record(leader=OWN))


@pytest.mark.shows("F70")
def test_a_first_image_gives_each_partition_its_role() -> None:
    """Source: TopicsDelta.localChanges."""
    actual = role_changes(MetadataImage(), CREATED, OWN)
    assert actual == RoleChanges((), (Role(PARTITION, ORDERS, leads=True, is_new=False),))


def test_a_partition_of_other_brokers_has_no_role() -> None:
    """Only replicas of this broker are local."""
    actual = role_changes(MetadataImage(), CREATED, 3)
    assert actual == RoleChanges((), ())


def test_a_change_of_the_leader_is_another_role_and_no_change_is_none() -> None:
    """A partition whose record is the same keeps its role."""
    moved = image(PartitionChangeRecord(0, ORDERS, leader=OTHER), before=CREATED)
    same = image(TopicRecord("payments", AGAIN), before=CREATED)

    assert role_changes(CREATED, moved, OWN) == RoleChanges((), (Role(PARTITION, ORDERS, leads=False, is_new=False),))
    assert role_changes(CREATED, same, OWN) == RoleChanges((), ())


def test_leaders_come_before_followers() -> None:
    """As ReplicaManager.applyDelta: a broker that leads first serves the fetches of others."""
    both = image(
        TopicRecord("a", ORDERS),
        record(leader=OTHER),
        TopicRecord("b", AGAIN),
        record(leader=OWN, topic_id=AGAIN),
    )
    actual = [role.leads for role in role_changes(MetadataImage(), both, OWN).taken]
    assert actual == [True, False]


def test_a_moved_and_a_deleted_partition_are_deleted() -> None:
    """The log of a replica that is no longer assigned is removed."""
    moved = image(
        PartitionChangeRecord(0, ORDERS, replicas=(OTHER,), isr=(OTHER,), leader=OTHER, directories=(DIRECTORY,)),
        before=CREATED,
    )
    gone = image(RemoveTopicRecord(ORDERS), before=CREATED)

    assert role_changes(CREATED, moved, OWN) == RoleChanges((PARTITION,), ())
    assert role_changes(CREATED, gone, OWN) == RoleChanges((PARTITION,), ())


def test_a_topic_that_is_created_again_is_deleted_and_taken() -> None:
    """Its id differs, so the former log must not become the log of the new topic (KIP-516)."""
    again = image(
        RemoveTopicRecord(ORDERS), TopicRecord("orders", AGAIN), record(leader=OWN, topic_id=AGAIN), before=CREATED
    )
    actual = role_changes(CREATED, again, OWN)
    assert actual == RoleChanges((PARTITION,), (Role(PARTITION, AGAIN, leads=True, is_new=False),))


def test_a_replica_without_a_directory_is_new() -> None:
    """No directory of the broker can have its log, also one that cannot be read (KIP-858)."""
    new = image(TopicRecord("orders", ORDERS), record(leader=OWN, directory=UNASSIGNED_DIRECTORY))
    actual = role_changes(MetadataImage(), new, OWN).taken[0].is_new
    assert actual is True


def test_logs_of_deleted_moved_and_other_topics_are_stray() -> None:
    """Source: LogManager.isStrayKraftReplica. A log without an id is from before ids."""
    elsewhere = TopicPartition("orders", 1)
    logs = [
        (PARTITION, ORDERS),
        (PARTITION, None),
        (PARTITION, AGAIN),
        (elsewhere, ORDERS),
        (TopicPartition("gone", 0), AGAIN),
    ]

    assert stray_logs(CREATED, logs, OWN) == [PARTITION, elsewhere, TopicPartition("gone", 0)]
    assert stray_logs(CREATED, [(PARTITION, ORDERS)], 3) == [PARTITION]
