"""The file quorum-state: as Kafka writes it, durable before it counts, and never guessed."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.shell.quorum.quorum_state import (
    QuorumState,
    decode_quorum_state,
    encode_quorum_state,
    read_quorum_state,
    write_quorum_state,
)
from kafka_log.errors import UnreadableFileError

DIRECTORY = uuid.UUID("a7f4d4b0-a4bf-4fde-a1f2-89c2ae6bf34b")

VERSION_0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
)
VERSION_1 = b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"p_TUsKS_T96h8onCrmvzSw","data_version":1}'

IDS = st.none() | st.integers(0, 2**31 - 1)


def test_both_versions_are_written_as_kafka_writes_them() -> None:
    """FileQuorumStateStore; Jackson writes no spaces."""
    assert encode_quorum_state(QuorumState(2, leader_id=1, voters=(1, 2)), 0) == VERSION_0
    assert encode_quorum_state(QuorumState(2, voted_id=1, voted_directory_id=DIRECTORY), 1) == VERSION_1
    with pytest.raises(ValueError, match="Version 2 of quorum-state is not supported"):
        encode_quorum_state(QuorumState(2), 2)


@given(st.builds(QuorumState, st.integers(0, 2**31 - 1), IDS, IDS, voters=st.lists(st.integers(0, 99)).map(tuple)))
def test_version_0_is_read_as_it_was_written(state: QuorumState) -> None:
    """With static voters, and without directories."""
    assert decode_quorum_state(encode_quorum_state(state, 0)) == state


@given(st.integers(0, 2**31 - 1), IDS, st.integers(0, 99), st.uuids().filter(lambda one: one.int != 0))
def test_version_1_is_read_as_it_was_written(epoch: int, leader: int | None, voted: int, directory: uuid.UUID) -> None:
    """A vote names the directory of the candidate (KIP-853)."""
    state = QuorumState(epoch, leader, voted, directory)

    assert decode_quorum_state(encode_quorum_state(state, 1)) == state


def test_a_state_is_on_the_disk_before_the_write_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Q2, Q3, Q15. The temporary file is flushed before it is renamed, and the folder after."""
    calls = []

    def recorded(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object) -> object:
            calls.append((name, (tmp_path / "quorum-state").exists()))
            return real(*arguments)

        monkeypatch.setattr(os, name, call)

    for name in ("fdatasync", "fsync", "replace"):
        recorded(name)
    write_quorum_state(tmp_path, QuorumState(2), 1)

    assert calls in (
        [("fdatasync", False), ("replace", False), ("fsync", True)],
        [("fdatasync", False), ("fsync", True)],  # where pathlib renames without os.replace
    )
    assert [path.name for path in tmp_path.iterdir()] == ["quorum-state"]


def test_a_voter_without_the_file_has_no_state(tmp_path: Path) -> None:
    """Its epoch is then that of its log."""
    assert read_quorum_state(tmp_path) is None
    write_quorum_state(tmp_path, QuorumState(3, voted_id=2, voters=(1, 2)), 0)
    assert read_quorum_state(tmp_path) == QuorumState(3, voted_id=2, voters=(1, 2))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (VERSION_1[:-5], "it is no JSON document, perhaps cut short"),
        (b"[]", "it is no JSON object"),
        (b"{}", "data_version is missing"),
        (
            VERSION_1.replace(b'_version":1', b'_version":2'),
            "data_version 2 is not between 0 and 1; a newer program wrote it",
        ),
        (VERSION_1.replace(b'Epoch":2', b'Epoch":-2'), "leaderEpoch -2 is negative"),
        (VERSION_1.replace(b'Epoch":2', b'Epoch":"2"'), "leaderEpoch '2' is no number of 32 bits"),
        (VERSION_1.replace(b'Epoch":2', b'Epoch":4294967296'), "leaderEpoch 4294967296 is no number of 32 bits"),
        (VERSION_1.replace(b"votedDirectoryId", b"other"), "votedDirectoryId is missing"),
        (
            VERSION_1.replace(b"p_TU", b"p-"),
            "votedDirectoryId 'p-sKS_T96h8onCrmvzSw' is not an id of 22 characters in URL-safe Base64",
        ),
        (VERSION_0.replace(b"currentVoters", b"voters"), "currentVoters is no list of voters"),
        (b"\xff\xfe", "it is no JSON document, perhaps cut short"),
    ],
)
def test_an_unreadable_state_is_refused_with_the_reason_and_what_to_do(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    """Q3, ADR 26: a voter that starts at epoch 0 could vote a second time in an epoch."""
    path = tmp_path / "quorum-state"
    path.write_bytes(content)

    with pytest.raises(UnreadableFileError) as refused:
        read_quorum_state(tmp_path)
    assert str(refused.value).startswith(
        f"Failed to read {path}: {reason}. The file has this voter's vote; without it, "
    )
    assert path.read_bytes() == content


@given(st.integers(0, len(VERSION_0) - 1))
def test_a_state_that_is_cut_short_is_never_read_as_another(length: int) -> None:
    """At any byte."""
    with pytest.raises(UnreadableFileError):
        decode_quorum_state(VERSION_0[:length])
