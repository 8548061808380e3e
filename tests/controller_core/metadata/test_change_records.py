"""Records of the changes of KRaft mode, and the way back: what replays them equals the controller that wrote them (C15)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from controller_core.metadata.change_records import broker_record, change_records
from controller_core.metadata.payloads import Part, payloads
from controller_core.metadata.replayed_records import partition_record, replay_records
from controller_core.model import Cluster, Origin, changes, quorum_changes
from controller_core.model.columns import pad
from controller_core.model.mode_rules import kraft_rules
from kafka_metadata import records
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import METADATA_VERSION, MINIMUM_VERSION
from kafka_metadata.record_codec import decode_record
from kafka_metadata.records import MetadataRecord, PartitionRecord
from kafka_metadata.replay import replay
from kafka_metadata.snapshot import snapshot_values
from kafka_wire.columns.record_encoder import RecordColumns
from kafka_wire.records import decode_batches
from tests.controller_core.quorum_mode.checked import CheckedDriver, state_of
from tests.controller_core.quorum_mode.test_cluster_machine import Machine
from tests.effort import EFFORT, EXHAUSTIVE

TOPIC_ID, INCARNATION = UUID(int=100), UUID(int=200)
CHANGED = (
    "isr",
    "leader",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "leader_recovery_state",
    "directories",
    "eligible_leader_replicas",
    "last_known_elr",
)
"""Fields of a PartitionChangeRecord that are optional."""


def values_of(found: Sequence[Part], version: int) -> list[bytes]:
    """Return the values of records in the log at a metadata version."""
    batches = payloads(found, version, 0, is_atomic=False)
    assert isinstance(batches, list)
    return [record.value or b"" for one in batches for batch in decode_batches(one.data) for record in batch.records]


def decoded(values: Iterable[bytes]) -> list[MetadataRecord]:
    """Return the records of values."""
    return [decode_record(value, offset) for offset, value in enumerate(values)]


def written(change: changes.Change, cluster: Cluster) -> list[MetadataRecord]:
    """Return the records of a change, encoded and decoded."""
    version = cluster.features.get(METADATA_VERSION, MINIMUM_VERSION)
    return decoded(values_of(change_records([change], cluster), version))


def partitions_of(cluster: Cluster) -> dict[UUID, dict[int, PartitionRecord]]:
    """Return the partitions of a cluster as an image has them."""
    found: dict[UUID, dict[int, PartitionRecord]] = {}
    for topic in cluster.topics.values():
        assert topic.topic_id is not None
        partitions = [partition_record(cluster, row) for row in topic.rows.tolist()]
        found[topic.topic_id] = {partition.partition_id: partition for partition in partitions}
    return found


def check_image(image: MetadataImage, cluster: Cluster) -> None:
    """Compare what an image and a controller's state both have."""
    assert image.brokers == {broker.id: broker_record(broker) for broker in cluster.brokers.values()}
    assert {name: record.feature_level for name, record in image.features.items()} == cluster.features
    assert {topic_id: topic.partitions for topic_id, topic in image.topics.items()} == partitions_of(cluster)
    assert {topic.name for topic in image.topics.values()} == set(cluster.topics)
    if image.producer_ids is not None:
        assert image.producer_ids.next_producer_id == cluster.last_producer_id + 1
    for name, minimum in cluster.min_isr_topics.items():
        assert image.config_values(records.ResourceType.TOPIC, name)["min.insync.replicas"] == str(minimum)


class RecordedDriver(CheckedDriver):
    """A controller whose changes are written as records, with an image and a standby that replay these."""

    def __init__(self, *, elr: bool, version: int = 30) -> None:
        self.image = MetadataImage()
        self.follower = empty_cluster()
        self.found: list[MetadataRecord] = []
        self.log: list[MetadataRecord] = []
        super().__init__(elr=elr, version=version)

    def check_before(self, change: changes.Change) -> None:
        """Write the records of a change."""
        super().check_before(change)
        self.found = written(change, self.cluster)

    def check_after(self, change: changes.Change) -> None:
        """Replay them, and compare."""
        super().check_after(change)
        self.log += self.found
        self.image = replay(self.image, self.found)
        replay_records(self.follower, self.found)
        check_image(self.image, self.cluster)

    def check_idle(self) -> None:
        """Compare the standby, and a controller that loads a snapshot, between events."""
        super().check_idle()
        expected = state_of(self.cluster)
        loaded = empty_cluster()
        replay_records(loaded, decoded(snapshot_values(self.image)))
        assert state_of(self.follower) == expected, "C15: the standby has another state"
        assert state_of(loaded) == expected, "C15: a controller that loads a snapshot has another state"

    def check_standby(self) -> None:
        """Check C15: one that replays the whole log in one batch has the same state."""
        super().check_standby()
        again = empty_cluster()
        replay_records(again, self.log)
        assert state_of(again) == state_of(self.cluster)


def empty_cluster() -> Cluster:
    """Return the state of another controller before it reads the log."""
    return Cluster(3002, 1, kraft_rules({}))


class RecordedMachine(Machine):
    """Random actions of brokers and callers."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = RecordedDriver(elr=self.elr, version=self.version)
        self.driver.start(1, 2, 3)


@pytest.mark.timeout(600)
@pytest.mark.shows("C15")
@pytest.mark.parametrize(
    ("version", "elr"), [(7, False), (14, False), (20, False), (25, True), (30, False), (30, True)]
)
def test_a_standby_and_a_loaded_snapshot_equal_the_leader(version: int, elr: bool) -> None:
    """C15: after each of many random events, at metadata versions with other records."""
    machine = type("Recorded", (RecordedMachine,), {"version": version, "elr": elr})

    run_state_machine_as_test(machine, settings=SETTINGS)


SETTINGS = settings(
    max_examples=300 if EXHAUSTIVE else max(2, int(5 * EFFORT)),
    stateful_step_count=30,
    deadline=None,
    derandomize=not EXHAUSTIVE,
)


def cluster() -> Cluster:
    """Return a cluster without brokers and topics."""
    return RecordedDriver(elr=False).cluster


def started(*, elr: bool = True) -> RecordedDriver:
    """Return a controller with four brokers, and a topic on two of them."""
    driver = RecordedDriver(elr=elr)
    driver.start(1, 2, 3, 4)
    driver.create("t1", [[1, 2]])
    driver.log.clear()
    return driver


def changes_in(driver: RecordedDriver) -> list[dict[str, Any]]:
    """Return the changes of partitions in a log: the fields that are not unchanged."""
    unchanged = records.PartitionChangeRecord(0, TOPIC_ID)
    return [
        {name: getattr(record, name) for name in CHANGED if getattr(record, name) != getattr(unchanged, name)}
        for record in driver.log
        if isinstance(record, records.PartitionChangeRecord)
    ]


def test_a_move_is_written_at_its_start_and_with_the_isr_that_ends_it() -> None:
    """PartitionChangeBuilder: the record that completes a move has everything that follows from it."""
    driver = started()
    known = tuple(driver.cluster.directories_of(driver.row("t1-0")))
    driver.reassign({"t1-0": [2, 3]})
    driver.alter_isr("t1-0", [1, 2, 3])

    (third,) = driver.cluster.brokers[3].directories
    start, end = changes_in(driver)
    assert start == {
        "replicas": (2, 3, 1),
        "adding_replicas": (3,),
        "removing_replicas": (1,),
        "directories": (known[1], third, known[0]),
    }
    assert end == {
        "isr": (2, 3),
        "leader": 2,
        "replicas": (2, 3),
        "adding_replicas": (),
        "removing_replicas": (),
        "directories": (known[1], third),
    }


def test_a_leader_is_written_only_where_the_leader_epoch_grows() -> None:
    """Each leader in a record raises it."""
    driver = started()
    driver.alter_isr("t1-0", [1])
    driver.kill(1)
    driver.expire()

    shrink, *_, failure = changes_in(driver)
    assert "leader" not in shrink
    assert failure["leader"] == -1


def test_an_unclean_leader_is_written_as_recovering() -> None:
    """KIP-704."""
    driver = started(elr=False)
    driver.configure("t1", {"unclean.leader.election.enable": "true"})
    driver.kill(2)
    driver.expire()
    driver.kill(1)
    driver.expire()
    driver.start(2)

    assert changes_in(driver)[-1] == {"isr": (2,), "leader": 2, "leader_recovery_state": 1}


def test_eligible_leader_replicas_are_written_with_the_isr_that_loses_them() -> None:
    """KIP-966."""
    driver = started()
    driver.configure("t1", {"min.insync.replicas": "2"})
    driver.kill(2)
    driver.expire()

    assert changes_in(driver)[-1] == {"isr": (1,), "eligible_leader_replicas": (2,)}


def test_a_directory_is_written_with_those_of_the_other_replicas() -> None:
    """AssignReplicasToDirs."""
    driver = started()
    driver.launch(4, directories=[4, 40])
    driver.register(4)
    driver.heartbeat(4)
    driver.create("t2", [[1, 4]])
    driver.assign_directory(4, "t2-0", 40)

    first, second = changes_in(driver)[-1]["directories"]
    assert (first,) == driver.cluster.brokers[1].directories
    assert second in driver.cluster.brokers[4].directories


@pytest.mark.shows("C15")
def test_a_broker_that_loses_its_last_directory_keeps_its_registration() -> None:
    """An empty list of directories in a BrokerRegistrationChangeRecord means unchanged; the broker stops."""
    driver = started()
    known = driver.cluster.brokers[1]
    driver.fail_directory(1, 1)

    assert driver.cluster.brokers[1] == known
    assert [record for record in driver.log if isinstance(record, records.BrokerRegistrationChangeRecord)] == []
    assert driver.leader("t1-0") == 2


@pytest.mark.shows("C15")
def test_a_move_to_fewer_replicas_leaves_a_directory_for_each() -> None:
    """Below metadata.version 3.7-IV2 no record has directories."""
    driver = RecordedDriver(elr=False, version=14)
    driver.start(1, 2, 3)
    driver.create("t1", [[1, 2, 3]])
    driver.reassign({"t1-0": [1]})

    assert driver.cluster.directories_of(driver.row("t1-0")) == (MIGRATING_DIRECTORY,)


def new_topic(name: str, topic_id: UUID, *replicas: tuple[int, ...]) -> changes.TopicAdded:
    """Return a topic with a config; the first replica of each partition leads, and all are in sync."""
    lists = pad(replicas)
    states = changes.FirstStates(lists[:, 0], lists, {1: UUID(int=1), 2: UUID(int=2), 3: UUID(int=3)})
    return changes.TopicAdded(
        name,
        topic_id,
        np.arange(len(replicas), dtype=np.int32),
        lists,
        Origin.REQUESTED,
        configs={"retention.ms": "1"},
        states=states,
    )


def new_partition(partition: int, topic_id: UUID, *replicas: int) -> PartitionRecord:
    """Return the record of one of its partitions."""
    directories = tuple(UUID(int=replica) for replica in replicas)
    return PartitionRecord(partition, topic_id, replicas, replicas, replicas[0], directories=directories)


def test_topics_are_written_before_their_configs_and_partitions() -> None:
    """Method ReplicationControlManager.createTopic; the partitions of all topics are one part, also with different replication factors."""
    first, second = UUID(int=10), UUID(int=11)
    added = [new_topic("first", first, (1, 2), (2, 1)), new_topic("second", second, (3, 1, 2))]

    parts = change_records(added, cluster())
    assert [type(part) for part in parts] == [tuple, RecordColumns]
    assert decoded(values_of(parts, 30)) == [
        records.TopicRecord("first", first),
        records.ConfigRecord(2, "first", "retention.ms", "1"),
        records.TopicRecord("second", second),
        records.ConfigRecord(2, "second", "retention.ms", "1"),
        new_partition(0, first, 1, 2),
        new_partition(1, first, 2, 1),
        new_partition(0, second, 3, 1, 2),
    ]


def test_new_partitions_have_no_directories_below_metadata_version_3_7() -> None:
    """Kafka's PartitionRegistration.toRecord: version 1 of the record has the field."""
    old = Cluster(1, 1, kraft_rules({METADATA_VERSION: MINIMUM_VERSION}))
    old.features = {METADATA_VERSION: MINIMUM_VERSION}
    topic_id = UUID(int=10)

    _, partition = decoded(
        values_of(change_records([replace(new_topic("a", topic_id, (1, 2)), configs={})], old), MINIMUM_VERSION)
    )
    assert partition == replace(new_partition(0, topic_id, 1, 2), directories=())


def test_the_first_free_producer_id_follows_the_last_one() -> None:
    """ProducerIdsRecord.nextProducerId."""
    assert written(changes.ProducerIdsAllocated(1, 0, 999, 7), cluster()) == [records.ProducerIdsRecord(1, 7, 1000)]


def test_changes_in_memory_have_no_records() -> None:
    """Heartbeats do not reach the log."""
    assert written(quorum_changes.HeartbeatObserved(1, 5), cluster()) == []
