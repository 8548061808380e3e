"""The small text files: contents as Kafka writes them, and what happens to invalid ones."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.errors import UnreadableFileError
from kafka_log.files.text_files import (
    MAX_META_PROPERTIES_BYTES,
    read_leader_epochs,
    read_meta_properties,
    read_topic_id,
    write_leader_epochs,
    write_meta_properties,
    write_topic_id,
)
from kafka_log.format.epochs import EpochStart, LeaderEpochs
from kafka_log.format.text_files import (
    MetaProperties,
    decode_leader_epochs,
    decode_meta_properties,
    encode_leader_epochs,
    encode_meta_properties,
)

ID = uuid.UUID(int=0x0123456789ABCDEF0123456789ABCDEF)

EPOCHS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 500)), max_size=8).map(
    lambda pairs: _assigned(sorted(pairs))
)


def _assigned(pairs: list[tuple[int, int]]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for epoch, offset in pairs:
        epochs = epochs.assign(epoch, offset)
    return epochs


def test_leader_epochs_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    """LeaderEpochCheckpointFile: the version, the number of entries, an entry a line."""
    assert read_leader_epochs(tmp_path) == LeaderEpochs()
    write_leader_epochs(tmp_path, _assigned([(0, 0), (3, 17)]))

    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n0 0\n3 17\n"
    assert [path.name for path in tmp_path.iterdir()] == ["leader-epoch-checkpoint"]


@given(EPOCHS)
def test_leader_epochs_are_read_as_they_were_written(epochs: LeaderEpochs) -> None:
    """For any epochs."""
    assert decode_leader_epochs(encode_leader_epochs(epochs)) == epochs


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("1\n0\n", "version 1 is not supported, only 0"),
        ("0\n2\n0 0\n", "it announces 2 entries and has 1"),
        ("0\n1\n0\n", "a line is malformed"),
        ("0\nmany\n", "a line is malformed"),
    ],
)
def test_invalid_leader_epochs_are_refused_with_the_file_and_the_reason(
    tmp_path: Path, content: str, reason: str
) -> None:
    """They decide where logs diverge, so they are not guessed."""
    (tmp_path / "leader-epoch-checkpoint").write_text(content)

    with pytest.raises(UnreadableFileError) as refused:
        read_leader_epochs(tmp_path)
    assert str(refused.value) == f"Failed to read {tmp_path / 'leader-epoch-checkpoint'}: {reason}"


@given(EPOCHS, st.integers(0, 60), st.integers(0, 600))
def test_the_end_of_an_epoch_is_where_the_next_one_starts(epochs: LeaderEpochs, epoch: int, end: int) -> None:
    """KIP-101, KIP-279: the largest epoch up to the requested one, and its end."""
    known = [entry for entry in epochs.entries if entry.epoch <= epoch]
    above = [entry for entry in epochs.entries if entry.epoch > epoch]
    if known and known[-1].epoch == epoch and not above:
        expected = EpochStart(epoch, end)
    elif not above:
        expected = None
    else:
        expected = EpochStart(known[-1].epoch if known else epoch, above[0].start_offset)

    assert epochs.end_offset_for(epoch, end) == expected


@given(EPOCHS, st.integers(0, 600))
def test_truncations_keep_the_epochs_of_the_offsets_that_stay(epochs: LeaderEpochs, offset: int) -> None:
    """For any epochs and offset."""

    def by_offset(some: LeaderEpochs, offsets: range) -> list[int | None]:
        return [
            max((entry.epoch for entry in some.entries if entry.start_offset <= offset), default=None)
            for offset in offsets
        ]

    below, above = range(offset), range(offset, 600)
    assert by_offset(epochs.truncate_from_end(offset), below) == by_offset(epochs, below)
    assert by_offset(epochs.truncate_from_start(offset), above) == by_offset(epochs, above)
    assert all(entry.start_offset < offset for entry in epochs.truncate_from_end(offset).entries)
    assert all(entry.start_offset >= offset for entry in epochs.truncate_from_start(offset).entries)


def test_a_new_epoch_replaces_entries_that_contradict_it() -> None:
    """LeaderEpochFileCache: neither a higher epoch nor a higher offset may precede it."""
    epochs = _assigned([(1, 0), (3, 10), (5, 20)])

    assert epochs.assign(5, 30) is epochs
    assert epochs.assign(6, 15).entries == ((1, 0), (3, 10), (6, 15))
    assert epochs.assign(2, 25).entries == ((1, 0), (2, 25))


def test_the_topics_id_is_written_as_kafka_writes_it(tmp_path: Path) -> None:
    """PartitionMetadataFile: without a newline at the end."""
    assert read_topic_id(tmp_path) is None
    write_topic_id(tmp_path, uuid.UUID(int=1))

    assert (tmp_path / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert read_topic_id(tmp_path) == uuid.UUID(int=1)


@pytest.mark.parametrize(
    "content", ["", "version: 0\n", "version: 0\ntopic_id: x\n", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n"]
)
def test_an_invalid_topic_id_is_refused(tmp_path: Path, content: str) -> None:
    """Empty, cut short, malformed, and zero."""
    (tmp_path / "partition.metadata").write_text(content)

    with pytest.raises(UnreadableFileError):
        read_topic_id(tmp_path)


def test_meta_properties_are_written_in_kafkas_format(tmp_path: Path) -> None:
    """MetaProperties version 1. Java's Properties.store begins with a comment, here empty, and the date."""
    properties = MetaProperties(cluster_id="MkU3OEVBNTcwNTJENDM2Qg", node_id=3, directory_id=ID)
    assert read_meta_properties(tmp_path) is None
    write_meta_properties(tmp_path, properties)

    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert (lines[0], lines[2:]) == (
        "#",
        ["node.id=3", "directory.id=ASNFZ4mrze8BI0VniavN7w", "version=1", "cluster.id=MkU3OEVBNTcwNTJENDM2Qg"],
    )
    assert re.fullmatch(r"#\w{3} \w{3} \d{2} \d{2}:\d{2}:\d{2} \w+ \d{4}", lines[1]) is not None
    assert read_meta_properties(tmp_path) == properties


def test_meta_properties_of_a_broker_in_zookeeper_mode_are_read(tmp_path: Path) -> None:
    """Version 0 names the node `broker.id`; it and the cluster's id may be missing."""
    (tmp_path / "meta.properties").write_text("#\n#Mon Nov 23 13:00:00 UTC 2026\nbroker.id=4\ncluster.id=abc\n")
    assert read_meta_properties(tmp_path) == MetaProperties(cluster_id="abc", node_id=4, version=0)

    (tmp_path / "meta.properties").write_text("broker.id=3\n")
    assert read_meta_properties(tmp_path) == MetaProperties(None, 3, version=0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("version=2\n", "version 2 is not supported, only 0 and 1"),
        ("version=1\nnode.id=1\n", "cluster.id is missing"),
        ("version=1\ncluster.id=a\n", "node.id is missing"),
        ("version=1\ncluster.id=a\nnode.id=one\n", "node.id 'one' is not a number"),
        (
            "version=1\ncluster.id=a\nnode.id=1\ndirectory.id=x\n",
            "directory.id 'x' is not an id of 22 characters in URL-safe Base64",
        ),
    ],
)
def test_invalid_meta_properties_are_refused_with_the_reason(tmp_path: Path, content: str, reason: str) -> None:
    """They name the cluster and the node, so they are not guessed."""
    (tmp_path / "meta.properties").write_text(content)

    with pytest.raises(UnreadableFileError) as refused:
        read_meta_properties(tmp_path)
    assert str(refused.value) == f"Failed to read {tmp_path / 'meta.properties'}: {reason}"


IDENTITIES = st.builds(
    MetaProperties,
    cluster_id=st.text(st.characters(codec="latin-1"), max_size=22),
    node_id=st.integers(0, 2**31 - 1),
    directory_id=st.none() | st.uuids(),
)


@given(IDENTITIES)
def test_meta_properties_are_read_as_they_were_written(properties: MetaProperties) -> None:
    """Signs in a cluster id are escaped."""
    assert decode_meta_properties(encode_meta_properties(properties, date="now")) == properties


def test_a_large_meta_properties_is_refused(tmp_path: Path) -> None:
    """It is another file."""
    (tmp_path / "meta.properties").write_bytes(b"#" * (MAX_META_PROPERTIES_BYTES + 1))

    with pytest.raises(UnreadableFileError, match="has over 65536 bytes"):
        read_meta_properties(tmp_path)
