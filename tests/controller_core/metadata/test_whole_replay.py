"""Whole states of partitions by columns, in images and in clusters: as those of the records one after another (C15)."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.metadata.replayed_records import partition_record, replay_records
from controller_core.metadata.slices import apply_slice, are_applied_as_columns, replay_slice
from controller_core.model import Cluster
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.failures import MetadataError
from kafka_metadata.metadata_log import apply_records
from kafka_metadata.records import EndPoint, MetadataRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord
from tests.controller_core.metadata.log_slices import cluster_of, columns_of, log_of, slice_of

TOPICS = {"orders": UUID(int=1 << 64), "payments": UUID(int=2 << 64)}
PARTITIONS = 4
BROKERS = (1, 2, 3, 4)
ONLINE, OFFLINE = UUID(int=11 << 64), UUID(int=12 << 64)
BEFORE: tuple[MetadataRecord, ...] = (
    *(
        RegisterBrokerRecord(
            broker, UUID(int=broker << 64), broker, (EndPoint("CLIENT", "kafka", 9092, 0),), log_dirs=(ONLINE,)
        )
        for broker in BROKERS
    ),
    *(TopicRecord(name, topic_id) for name, topic_id in TOPICS.items()),
    *(PartitionRecord(0, topic_id, (1, 2), (1, 2), 1, 3, 4) for topic_id in TOPICS.values()),
)
BASE_OFFSET = 50


@st.composite
def partitions(draw: st.DrawFn) -> PartitionRecord:
    """A partition with any state, some in a directory that is offline, some in a move."""
    replicas = tuple(draw(st.lists(st.sampled_from(BROKERS), unique=True, min_size=1)))
    some = st.lists(st.sampled_from(replicas), unique=True).map(tuple)
    known = st.sampled_from((ONLINE, OFFLINE, MIGRATING_DIRECTORY))
    directories = draw(st.just(()) | st.tuples(*[known] * len(replicas)))
    return PartitionRecord(
        draw(st.integers(0, PARTITIONS - 1)),
        draw(st.sampled_from(sorted(TOPICS.values()))),
        replicas,
        draw(some),
        draw(st.sampled_from((-1, *replicas))),
        draw(st.integers(0, 9)),
        draw(st.integers(0, 9)),
        draw(st.just(()) | some),
        draw(st.just(()) | some),
        draw(st.sampled_from((0, 1))),
        directories,
        draw(st.none() | some),
        draw(st.none() | some),
    )


MANY = st.lists(partitions(), min_size=1, max_size=8, unique_by=lambda one: (one.topic_id, one.partition_id))


@given(MANY)
def test_columns_set_partitions_of_an_image_as_their_records_do(found: list[PartitionRecord]) -> None:
    """PartitionRegistration: a partition that is known already is replaced."""
    assert are_applied_as_columns(columns_of(found))
    assert apply_slice(log_of(BEFORE, BASE_OFFSET), slice_of(found, BASE_OFFSET)) == apply_records(
        log_of(BEFORE, BASE_OFFSET), BASE_OFFSET, found
    )


@given(MANY)
def test_columns_set_partitions_of_a_cluster_as_their_records_do(found: list[PartitionRecord]) -> None:
    """C15: a standby has the state of the controller that wrote them, with the replicas that are offline."""
    by_columns, by_records = cluster_of(BEFORE), cluster_of(BEFORE)
    replay_slice(by_columns, slice_of(found, BASE_OFFSET))
    replay_records(by_records, found)

    assert states_of(by_columns) == states_of(by_records)


def states_of(found: Cluster) -> dict[tuple[str, int], tuple[PartitionRecord, frozenset[int]]]:
    """Return the whole states of all partitions, and which of their replicas are offline."""
    rows = {(name, number): found.row_of(name, number) for name in TOPICS for number in range(PARTITIONS)}
    return {
        key: (partition_record(found, row), frozenset(found.offline_at(row)))
        for key, row in rows.items()
        if row is not None
    }


USUAL = PartitionRecord(1, TOPICS["orders"], (1, 2), (1, 2), 1, directories=(ONLINE, ONLINE))


@pytest.mark.parametrize(
    "other",
    [
        replace(USUAL, leader=2),
        replace(USUAL, partition_id=2, leader_recovery_state=7),
        replace(USUAL, partition_id=2, directories=(ONLINE,)),
    ],
    ids=["the same partition", "an unknown recovery state", "fewer directories than replicas"],
)
def test_other_partitions_are_applied_one_by_one(other: PartitionRecord) -> None:
    """So that each is checked."""
    assert not are_applied_as_columns(columns_of([USUAL, other]))


def test_a_partition_of_an_unknown_topic_is_refused_with_the_offsets_of_its_slice() -> None:
    """The state would differ from that of the other controllers."""
    refused = slice_of([USUAL, replace(USUAL, topic_id=UUID(int=7 << 64))], BASE_OFFSET)
    reason = f"A PartitionRecord between the offsets {BASE_OFFSET} and {BASE_OFFSET + 1} cannot be applied: there is no topic"
    with pytest.raises(MetadataError, match=reason):
        apply_slice(log_of(BEFORE, BASE_OFFSET), refused)
    with pytest.raises(MetadataError, match=reason):
        replay_slice(cluster_of(BEFORE), refused)
