"""Cruise Control as a peer: its source is named by a variable, it gets the cluster in its own units, and its output is parsed."""

import struct
from pathlib import Path

import pytest

from bench.planner.cruise_control import SOURCE_VARIABLE, Answer, answer_of, compiled_cruise_control, encoded
from bench.planner.measured_plan import uneven
from lab.errors import LabError


def test_without_its_source_the_peer_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in no package registry, and a benchmark goes on without it."""
    monkeypatch.delenv(SOURCE_VARIABLE, raising=False)
    with compiled_cruise_control() as peer:
        assert peer is None


def test_a_folder_that_is_no_checkout_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names the variable and its meaning."""
    monkeypatch.setenv(SOURCE_VARIABLE, str(tmp_path))
    with pytest.raises(LabError, match=f"{SOURCE_VARIABLE}={tmp_path} is no checkout"), compiled_cruise_control():
        pass


def test_a_partition_is_encoded_as_java_reads_it() -> None:
    """Big-endian brokers and loads; MB, and KB/s in and out (Cruise Control, Resource)."""
    question = uneven(brokers=5, partitions=10)
    disk, into, out, _ = question.resources
    # A leader uses as much disk as a follower, and only leaders send to clients: the peer gets only these figures.
    assert not disk.leader_load.any()
    assert not out.replica_load.any()
    first = struct.unpack(">3i3d", encoded(question)[: 3 * 4 + 3 * 8])
    assert first == (
        *question.replicas[0],
        disk.replica_load[0] / 1e6,
        into.replica_load[0] / 1e3,
        out.leader_load[0] / 1e3,
    )
    assert len(encoded(question)) == 10 * (3 * 4 + 3 * 8)


def test_its_answer_names_unreached_goals() -> None:
    """An unreached goal is no failure; the row names it."""
    output = "nanoseconds 1500000000\nmegabytes 2.5\ndisk 0.04\nleaders 0.1\nunreached LeaderReplicaDistributionGoal\n"
    assert answer_of(output) == Answer(1.5, 2.5e6, {"disk": 0.04, "leaders": 0.1}, ("LeaderReplicaDistributionGoal",))
