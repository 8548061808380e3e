"""Placement in KRaft mode compared with Kafka 4.3's StripedReplicaPlacer for equal seeds."""

import random

import pytest

from controller_core.rules.placement import PlacementError
from controller_core.rules.striped_placement import StripedBroker, place_striped
from tests.controller_core.rules.judged.conftest import Judge
from tests.effort import EXHAUSTIVE

pytestmark = pytest.mark.java

CASES = 3_000 if EXHAUSTIVE else 500


def placed(brokers: list[StripedBroker], partitions: int, factor: int, seed: int) -> object:
    """Place as the reference answers: lists of replicas, or the message of the refusal."""
    try:
        return place_striped(brokers, partitions, factor, seed=seed).tolist()
    except PlacementError as error:
        return {"refused": str(error)}


@pytest.mark.shows("C11")
def test_placement_is_kafkas(kraft_judge: Judge) -> None:
    """C11 in KRaft mode. Names of racks are single letters, which a Java hash table has in their order, as is used here."""
    source = random.Random(11)
    cases = []
    for _ in range(CASES):
        racks = source.choice([[None], ["a", "b", "c"], ["a", "b", "c", "d", "e", "f"], [None, "a", "b"]])
        count = source.randint(1, 12)
        brokers = [
            StripedBroker(broker, source.choice(racks), source.random() < 0.25)
            for broker in source.sample(range(100), count)
        ]
        cases.append((brokers, source.randint(1, 60), source.randint(1, min(count + 1, 5)), source.getrandbits(48)))
    asked = [
        {
            "brokers": [{"id": broker.id, "rack": broker.rack, "fenced": broker.is_fenced} for broker in brokers],
            "partitions": partitions,
            "factor": factor,
            "seed": seed,
        }
        for brokers, partitions, factor, seed in cases
    ]

    for case, expected in zip(cases, kraft_judge.ask("place", asked), strict=True):
        assert placed(*case) == expected, case
