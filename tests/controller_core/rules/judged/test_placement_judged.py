"""Placement compared with Kafka's AdminUtils and AdminZkClient (invariant C11: equal to Kafka's formula)."""

import random
from typing import Any

import pytest

from controller_core.rules.placement import PlacementError, Racks, place_added, place_replicas
from tests.controller_core.cases import random_cluster
from tests.controller_core.rules.judged.conftest import Judge

pytestmark = pytest.mark.java

CASES = 10_000


def pairs(brokers: Racks) -> list[tuple[int, str | None]]:
    """Return brokers in the reference's form."""
    return list(brokers.items())


@pytest.mark.shows("C11")
def test_placements_of_ten_thousand_random_clusters_are_kafkas(judge: Judge) -> None:
    """C11, AdminUtils.assignReplicasToBrokers: half with fixedStartIndex, half with its random source reseeded, so that both numbers differ."""
    source = random.Random(3003)
    cases: list[dict[str, Any]] = []
    for number in range(CASES):
        brokers = random_cluster(source)
        case = {
            "brokers": pairs(brokers),
            "partitions": source.randint(1, 40),
            "factor": source.randint(1, len(brokers)),
            "first": source.choice([-1, 0, source.randint(1, 40)]),
        }
        cases.append(
            {**case, **({"start": source.randint(0, 30)} if number % 2 else {"seed": source.randint(0, 2**40)})}
        )

    for case, answer in zip(cases, judge.ask("place", cases), strict=True):
        start, shift = answer["drawn"]
        first = max(0, case["first"])
        brokers = dict(case["brokers"])
        ours = place_replicas(brokers, case["partitions"], case["factor"], start, shift, start_partition_id=first)
        assert answer["placed"] == ours.tolist(), case


@pytest.mark.shows("C11")
def test_placements_of_added_partitions_are_kafkas(judge: Judge) -> None:
    """C11, AdminZkClient.createNewPartitionsAssignment: the start comes from partition 0's first replica, live or not."""
    source = random.Random(3004)
    cases: list[dict[str, Any]] = []
    for _ in range(CASES // 10):
        brokers = random_cluster(source)
        current = source.randint(1, 30)
        factor = source.randint(1, len(brokers))
        replicas = [source.choice([*brokers, source.randint(0, 2100)]), *range(5000, 4999 + factor)]
        total = current + source.randint(1, 30)
        cases.append({"brokers": pairs(brokers), "present": current, "total": total, "replicas": replicas})

    for case, answer in zip(cases, judge.ask("add", cases), strict=True):
        added = case["total"] - case["present"]
        ours = place_added(dict(case["brokers"]), case["replicas"], case["present"], added)
        assert answer == ours.tolist(), case


@pytest.mark.parametrize(
    ("brokers", "partitions", "factor"),
    [
        ({1: None, 2: None, 3: None}, 1, 4),
        ({1: None}, 0, 1),
        ({1: None}, 1, 0),
        ({1: None}, -1, -1),
        ({}, 1, 1),
        ({1: "a", 2: None}, 1, 1),
        ({1: "a", 2: None}, 1, 3),
    ],
)
def test_impossible_placements_are_refused_with_kafkas_message(
    judge: Judge, brokers: Racks, partitions: int, factor: int
) -> None:
    """AdminUtils.assignReplicasToBrokers, with its order of checks."""
    case = {"brokers": pairs(brokers), "partitions": partitions, "factor": factor, "start": 0, "first": -1}
    (answer,) = judge.ask("place", [case])

    with pytest.raises(PlacementError) as refused:
        place_replicas(brokers, partitions, factor, 0, 0)

    assert answer["refused"] == str(refused.value)
