"""Changes of states by columns, in images and in clusters: as those of the records one after another (C15)."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.metadata.column_records import change_records
from controller_core.metadata.replayed_records import partition_record, replay_records
from controller_core.metadata.slices import apply_slice, replay_slice
from controller_core.metadata.state_replay import are_states
from controller_core.model import Cluster
from kafka_metadata.failures import MetadataError
from kafka_metadata.metadata_log import apply_records
from kafka_metadata.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    BeginTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.controller_core.metadata.log_slices import cluster_of, columns_of, log_of, slice_of

TOPICS = {"orders": UUID(int=1 << 64), "payments": UUID(int=2 << 64)}
PARTITIONS = 3
REPLICAS = (1, 2, 3, 4)
BEFORE: tuple[MetadataRecord, ...] = tuple(
    record
    for name, topic_id in TOPICS.items()
    for record in (
        TopicRecord(name, topic_id),
        *(PartitionRecord(number, topic_id, REPLICAS, (1, 2), 1, 3, 4) for number in range(PARTITIONS)),
    )
)
BASE_OFFSET = 50

LISTS = st.none() | st.lists(st.sampled_from(REPLICAS), unique=True, max_size=4).map(tuple)
CHANGES = st.builds(
    PartitionChangeRecord,
    st.integers(min_value=0, max_value=PARTITIONS - 1),
    st.sampled_from(sorted(TOPICS.values())),
    isr=LISTS,
    leader=st.sampled_from((NO_LEADER_CHANGE, -1, *REPLICAS)),
    leader_recovery_state=st.sampled_from((NO_RECOVERY_CHANGE, 0, 1)),
    eligible_leader_replicas=LISTS,
    last_known_elr=LISTS,
)


def states_of(found: Cluster) -> list[PartitionRecord]:
    """Return the whole states of all partitions."""
    rows = [found.row_of(name, number) for name in TOPICS for number in range(PARTITIONS)]
    return [partition_record(found, row) for row in rows if row is not None]


@given(st.lists(CHANGES, min_size=1, max_size=12))
def test_columns_change_an_image_as_their_records_do(changes: list[PartitionChangeRecord]) -> None:
    """PartitionRegistration.merge; a partition may change several times."""
    before = log_of(BEFORE, BASE_OFFSET)

    assert are_states(columns_of(changes))
    assert apply_slice(before, slice_of(changes, BASE_OFFSET)) == apply_records(before, BASE_OFFSET, changes)


def test_columns_in_a_transaction_change_only_the_image_of_the_transaction() -> None:
    """KIP-868: they count once it ends."""
    changes = [
        PartitionChangeRecord(0, TOPICS["orders"], isr=(1,)),
        PartitionChangeRecord(1, TOPICS["orders"], isr=(2,)),
    ]
    begun = apply_records(log_of(BEFORE, BASE_OFFSET), BASE_OFFSET, [BeginTransactionRecord("")])

    assert apply_slice(begun, slice_of(changes, BASE_OFFSET + 1)) == apply_records(begun, BASE_OFFSET + 1, changes)


@given(st.lists(CHANGES, min_size=1, max_size=12))
def test_columns_change_a_cluster_as_their_records_do(changes: list[PartitionChangeRecord]) -> None:
    """C15: a standby has the state of the controller that wrote them."""
    by_columns, by_records = cluster_of(BEFORE), cluster_of(BEFORE)
    replay_slice(by_columns, slice_of(changes, BASE_OFFSET))
    replay_records(by_records, list(change_records(columns_of(changes))))

    assert states_of(by_columns) == states_of(by_records)
    assert by_columns.columns.leader.tolist() == by_records.columns.leader.tolist()


@pytest.mark.parametrize(
    "change",
    [
        PartitionChangeRecord(0, TOPICS["orders"], replicas=(2, 1)),
        PartitionChangeRecord(0, TOPICS["orders"], adding_replicas=()),
        PartitionChangeRecord(0, TOPICS["orders"], directories=(UUID(int=9 << 64),)),
        PartitionChangeRecord(0, TOPICS["orders"], leader_recovery_state=7),
    ],
    ids=["replicas", "moves", "directories", "an unknown recovery state"],
)
def test_other_changes_are_no_states(change: PartitionChangeRecord) -> None:
    """They are applied one by one."""
    assert not are_states(columns_of([PartitionChangeRecord(1, TOPICS["orders"], isr=(1,)), change]))


@pytest.mark.parametrize(
    ("unknown", "reason"),
    [
        (PartitionChangeRecord(9, TOPICS["payments"], isr=(1,)), "has no partition 9"),
        (PartitionChangeRecord(0, UUID(int=7 << 64), isr=(1,)), "no topic with the id"),
    ],
    ids=["partition", "topic"],
)
def test_a_change_of_what_is_unknown_is_refused_with_the_offsets_of_its_slice(
    unknown: PartitionChangeRecord, reason: str
) -> None:
    """The state would differ from that of the other controllers."""
    refused = slice_of([PartitionChangeRecord(0, TOPICS["orders"], isr=(1,)), unknown], BASE_OFFSET)
    with pytest.raises(MetadataError, match=f"offsets {BASE_OFFSET} and {BASE_OFFSET + 1}.*{reason}"):
        apply_slice(log_of(BEFORE, BASE_OFFSET), refused)
    with pytest.raises(MetadataError, match=f"offsets {BASE_OFFSET} and {BASE_OFFSET + 1}.*{reason}"):
        replay_slice(cluster_of(BEFORE), refused)
