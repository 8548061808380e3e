"""The file of a standalone broker's metadata (ADR 50)."""

import json
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_node.authorization.acl import Binding, Entry, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_wire.sasl.scram_keys import SCRAM_SHA_256, encode_credential, make_credential
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import ControlPlaneError
from light_broker.control.standalone import state_file
from light_broker.control.standalone.state import State, StateError, TopicState, decode_state, encode_state
from light_broker.control.standalone.state_file import FILE_NAME, StateFileError, open_state_file
from light_broker.core.metadata_view import BrokerView, PartitionView

ORDERS = TopicState(UUID(int=7), 3, created_at=2, configs={"retention.ms": "1000"})
ACL = Binding(
    Pattern(ResourceType.TOPIC, "orders", PatternType.PREFIXED),
    Entry("User:alice", "*", Operation.READ, Permission.ALLOW),
)
SCRAM = encode_credential(make_credential(SCRAM_SHA_256, b"salted", b"salt", 4096))
FULL = State(
    "Some-Cluster-Id-123456",
    1,
    broker_epoch=5,
    next_producer_id=3000,
    topics={"orders": ORDERS},
    deletions={"old": 2},
    broker_configs={"": {"log.retention.ms": "5"}},
    acls=frozenset({ACL}),
    scram={"alice": {"SCRAM-SHA-256": SCRAM}},
)

topics = st.builds(
    TopicState, st.uuids(), st.integers(1, 9), st.integers(0, 9), st.dictionaries(st.text(), st.text(), max_size=3)
)
states = st.builds(
    State,
    st.text(),
    st.integers(0, 9),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
    st.dictionaries(st.text(), topics, max_size=3),
    st.dictionaries(st.text(), st.integers(1, 9), max_size=3),
)


def test_the_file_has_the_whole_state() -> None:
    """With ACLs and credentials."""
    assert decode_state(encode_state(FULL)) == FULL


@given(states)
def test_a_state_is_read_as_it_was_written(state: State) -> None:
    """For any names and values."""
    assert decode_state(encode_state(state)) == state


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cluster_id", None),
        ("node_id", "1"),
        ("broker_epoch", None),
        ("next_producer_id", -1),
        ("deletions", {"orders": "3"}),
        ("broker_configs", {"1": {"num.partitions": 3}}),
        ("scram", {"alice": {"SCRAM-SHA-256": None}}),
        ("topics", {"orders": {"id": "AAAAAAAAAAAAAAAAAAAABw", "partitions": "3", "created_at": 2, "configs": {}}}),
        ("topics", {"orders": {"id": "AAAAAAAAAAAAAAAAAAAABw", "partitions": 3, "created_at": 2, "configs": {"a": 1}}}),
    ],
)
def test_a_field_of_another_type_is_refused(field: str, value: object) -> None:
    """A person may have edited the file. Without the check the start fails later, with an error that does not name it."""
    document = {**json.loads(encode_state(FULL)), field: value}

    with pytest.raises(StateError, match="malformed"):
        decode_state(json.dumps(document).encode())


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"version": 2}', encode_state(FULL)[:-40], b"\xff"])
def test_a_file_of_another_form_is_refused(content: bytes) -> None:
    """It is never taken for an empty state: the topics of the folder would be forgotten."""
    with pytest.raises(StateError):
        decode_state(content)


@pytest.mark.shows("F63")
def test_the_broker_leads_each_partition_in_an_epoch_that_rises_with_each_start() -> None:
    """Records that were not on the disk may be lost at a start, so followers and consumers must see another epoch (KIP-101)."""
    view = FULL.view(BrokerView(1))
    restarted = replace(FULL, broker_epoch=6).view(BrokerView(1))

    assert view.partition(TopicPartition("orders", 2)) == PartitionView(
        (1,), (1,), 1, leader_epoch=3, partition_epoch=3
    )
    assert restarted.partition(TopicPartition("orders", 2)) == PartitionView((1,), (1,), 1, 4, 4)
    assert view.partition(TopicPartition("orders", 3)) is None


def test_each_start_has_a_higher_broker_epoch(tmp_path: Path) -> None:
    """The file is created by the first start."""
    epochs = []
    for _ in range(2):
        file = open_state_file(tmp_path / "data", 1)
        file.count_start()
        epochs.append(file.state.broker_epoch)

    assert epochs == [1, 2]


async def test_a_change_is_on_the_disk_when_it_is_saved(tmp_path: Path) -> None:
    """A process that is killed then starts with it."""
    file = open_state_file(tmp_path, 1)

    await file.save(file.state.with_topic("orders", ORDERS))

    assert open_state_file(tmp_path, 1).state.topics == {"orders": ORDERS}


async def test_a_change_that_the_next_start_would_refuse_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of the file is that of its reader."""
    file = open_state_file(tmp_path, 1)
    before = file.state
    monkeypatch.setattr(state_file, "MAX_FILE_BYTES", (tmp_path / FILE_NAME).stat().st_size)

    with pytest.raises(ControlPlaneError, match="Delete topics or ACLs"):
        await file.save(before.with_topic("orders", ORDERS))

    assert open_state_file(tmp_path, 1).state == file.state == before


def test_a_file_of_another_node_is_refused(tmp_path: Path) -> None:
    """The message has both ids."""
    open_state_file(tmp_path, 1)

    with pytest.raises(StateFileError, match="belongs to node 1, and this is node 2"):
        open_state_file(tmp_path, 2)


def test_a_folder_of_a_cluster_with_controllers_is_refused(tmp_path: Path) -> None:
    """Its topics are not known here."""
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=1\n")

    with pytest.raises(StateFileError, match="belongs to a cluster with controllers"):
        open_state_file(tmp_path, 1)


def test_a_damaged_file_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    """So that it can be repaired by hand."""
    (tmp_path / FILE_NAME).write_bytes(b"{")

    with pytest.raises(StateFileError, match="Restore the file from a backup"):
        open_state_file(tmp_path, 1)

    assert (tmp_path / FILE_NAME).read_bytes() == b"{"
