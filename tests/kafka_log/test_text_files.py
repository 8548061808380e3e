"""The small text files: contents as Kafka writes them, and what happens to invalid ones."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.errors import UnreadableFileError
from kafka_log.files.text_files import (
    MetaProperties,
    read_leader_epochs,
    read_meta_properties,
    read_topic_id,
    write_leader_epochs,
    write_meta_properties,
    write_topic_id,
)
from kafka_log.format.epochs import EpochStart, LeaderEpochs
from kafka_log.format.text_files import (
    decode_leader_epochs,
    decode_properties,
    decode_uuid,
    encode_leader_epochs,
    encode_properties,
    encode_uuid,
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
        return [some.epoch_at(each) for each in offsets]

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


@given(st.uuids())
def test_ids_are_read_as_they_were_written(value: uuid.UUID) -> None:
    """For any id."""
    assert decode_uuid(encode_uuid(value)) == value


@pytest.mark.parametrize("text", ["", "x", "A" * 21, "A" * 23, "Ä" * 22, "A" * 21 + "="])
def test_other_texts_are_no_ids(text: str) -> None:
    """Too short, too long, other characters, padding."""
    with pytest.raises(ValueError, match="is not an id of 22 characters"):
        decode_uuid(text)


def test_meta_properties_are_written_in_kafkas_words(tmp_path: Path) -> None:
    """MetaProperties version 1."""
    properties = MetaProperties(cluster_id="MkU3OEVBNTcwNTJENDM2Qg", node_id=3, directory_id=ID)
    assert read_meta_properties(tmp_path) is None
    write_meta_properties(tmp_path, properties)

    assert (tmp_path / "meta.properties").read_text() == (
        "version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id=3\ndirectory.id=ASNFZ4mrze8BI0VniavN7w\n"
    )
    assert read_meta_properties(tmp_path) == properties


def test_meta_properties_of_a_broker_in_zookeeper_mode_are_read(tmp_path: Path) -> None:
    """Version 0 names the node `broker.id`, and may lack it."""
    (tmp_path / "meta.properties").write_text("#\n#Mon Nov 23 13:00:00 UTC 2026\nbroker.id=4\ncluster.id=abc\n")

    assert read_meta_properties(tmp_path) == MetaProperties(cluster_id="abc", node_id=4, version=0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("version=2\n", "version 2 is not supported, only 0 and 1"),
        ("version=1\nnode.id=1\n", "cluster.id is missing"),
        ("version=1\ncluster.id=a\n", "node.id is missing"),
        ("version=1\ncluster.id=a\nnode.id=one\n", "invalid literal for int() with base 10: 'one'"),
        (
            "version=1\ncluster.id=a\nnode.id=1\ndirectory.id=x\n",
            "'x' is not an id of 22 characters in URL-safe Base64",
        ),
    ],
)
def test_invalid_meta_properties_are_refused_with_the_reason(tmp_path: Path, content: str, reason: str) -> None:
    """They name the cluster and the node, so they are not guessed."""
    (tmp_path / "meta.properties").write_text(content)

    with pytest.raises(UnreadableFileError) as refused:
        read_meta_properties(tmp_path)
    assert str(refused.value) == f"Failed to read {tmp_path / 'meta.properties'}: {reason}"


TEXTS = st.text("ab =:#!\\\n\t\r\fué\u2028")


@given(st.dictionaries(TEXTS.filter(bool), TEXTS))
def test_properties_are_read_as_they_were_written(values: dict[str, str]) -> None:
    """For any names and values."""
    assert decode_properties(encode_properties(values)) == values


def test_properties_are_read_as_java_reads_them() -> None:
    """java.util.Properties.load: separators, comments, continued lines and escapes."""
    content = b"# comment\n! comment\n  a : 1 \nb=x\\\n   y\nc\\ d e\\u0041\nempty\npath=a=b:c\\\\\n"

    assert decode_properties(content) == {"a": "1 ", "b": "xy", "c d": "eA", "empty": "", "path": "a=b:c\\"}
