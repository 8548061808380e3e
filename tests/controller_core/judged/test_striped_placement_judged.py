"""Striped placement beside KRaft's own StripedReplicaPlacer: as valid, and never less even (invariants C3 and C11).

The two draw differently, so placements are not equal; what they are for is compared.
"""

import json
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from controller_core.cluster.placement import Racks
from controller_core.cluster.placement_striped import place_striped
from lab.java_process import java_command
from tests.controller_core.cases import random_cluster

pytestmark = pytest.mark.java

SOURCE = Path(__file__).parent / "java" / "PlacementJudge.java"
CASES = 2_000
JUDGE_TIMEOUT_S = 100


def ask(cases: list[dict[str, Any]]) -> list[list[list[int]]]:
    """Return the replicas of each case as KRaft places them."""
    command = java_command(str(SOURCE), heap="256m", log4j="log4j-tools.properties")
    done = subprocess.run(
        command, input=json.dumps(cases) + "\n", capture_output=True, text=True, check=True, timeout=JUDGE_TIMEOUT_S
    )
    answers: list[list[list[int]]] = json.loads(done.stdout)
    return answers


def spread(brokers: Racks, ids: list[int]) -> int:
    """How far the brokers with most and least of something are apart."""
    counted = Counter(ids)
    return max(counted[broker] for broker in brokers) - min(counted[broker] for broker in brokers)


def racks_of(brokers: Racks, placed: list[list[int]]) -> set[tuple[int, int]]:
    """How many brokers and how many racks the partitions are on."""
    return {(len(set(replicas)), len({brokers[broker] for broker in replicas})) for replicas in placed}


def test_two_thousand_random_clusters_are_placed_no_less_evenly_than_kraft_places_them() -> None:
    """StripedReplicaPlacer's goals: racks first, then replicas and leaders over brokers."""
    source = random.Random(3005)
    cases: list[dict[str, Any]] = []
    for _ in range(CASES):
        brokers = random_cluster(source)
        factor = source.randint(1, len(brokers))
        asked = {"brokers": list(brokers.items()), "partitions": source.randint(1, 120), "factor": factor}
        cases.append({**asked, "seed": source.randint(0, 2**40)})

    for case, theirs in zip(cases, ask(cases), strict=True):
        brokers = dict(case["brokers"])
        ours = place_striped(brokers, case["partitions"], case["factor"], case["seed"]).tolist()
        assert racks_of(brokers, theirs) == racks_of(brokers, ours), case
        assert spread(brokers, [row[0] for row in ours]) <= max(1, spread(brokers, [row[0] for row in theirs])), case
        held = spread(brokers, [broker for row in ours for broker in row])
        assert held <= max(1, spread(brokers, [broker for row in theirs for broker in row])), case
