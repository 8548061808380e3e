"""The plan in the benchmark of plans, and the rows of its results."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.resources import planned_moves
from bench.resources.operator_stage import StewardStage
from bench.resources.plan_start import PEER, Begun, rows
from bench.resources.planned_moves import PlannedMoves

AT = cast("StewardStage", SimpleNamespace(kafka=SimpleNamespace(brokers={1: None, 2: None, 5: None}, bootstrap=str)))


class Admin:
    """Knows two topics of two partitions."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def list_topics(self, **_: object) -> Any:
        """Give their replicas."""
        held = {"bench-0000": [1, 2], "bench-0001": [5, 1]}
        topics = {
            name: SimpleNamespace(partitions={index: SimpleNamespace(replicas=[id_]) for index, id_ in enumerate(ids)})
            for name, ids in held.items()
        }
        return SimpleNamespace(topics=topics)


def test_every_partition_moves_to_the_next_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a plan can be built again after a round of which some moves completed; both sides get the same plan."""
    monkeypatch.setattr(planned_moves, "AdminClient", Admin)

    document = json.loads(PlannedMoves(AT, 2, 2).document())

    found = {(entry["topic"], entry["partition"]): entry["replicas"] for entry in document["partitions"]}
    expected = {("bench-0000", 0): [2], ("bench-0000", 1): [5], ("bench-0001", 0): [1], ("bench-0001", 1): [2]}
    assert found == expected


def test_the_limit_applies_to_the_creation_with_its_validation() -> None:
    """Validated and started: an approval without it would skip the validation."""
    at_once, after_approval = Begun(8.0, 5, 2, 200 * 10**6), Begun(1.0, 2, 0, 210 * 10**6)

    found = {row.name: row for row in rows("a plan", [at_once], [after_approval], (6.0, 250 * 10**6))}

    assert found["plan-start.created_limit"].ratio == 1.25
    assert found["plan-start.created_limit"].kept
    assert (found["plan-start.created"].ours.median, found["plan-start.created"].peer.median) == (8000, 6000)
    assert found["plan-start.approved"].ours.median == 1000
    assert (found["plan-start.writes"].ours.median, found["plan-start.writes"].peer.median) == (5, 4)
    assert found["plan-start.memory_highest"].ours.median == 205
    assert found["plan-start.memory_highest"].peer_is == PEER
