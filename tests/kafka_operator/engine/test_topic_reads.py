"""Reads of Kafka topics: replicas and running moves come from two calls, between which a move may start or end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from kafka_operator.admin.port import Admin
from kafka_operator.decide.kafka.observed import KafkaPartition, KafkaTopic, Move, Moves
from kafka_operator.engine.topic_reads import query_topics
from kafka_operator.resources.reassignment import Partition
from tests.kafka_operator.makers import topic

Replicas = tuple[int, ...]

DECLARED, DURING, AFTER = (1, 2, 3), (4, 2, 3, 1), (4, 2, 3)
MOVE = Move(DURING, (4,), (1,))


class Reads:
    """A cluster with one partition, whose replicas are those of the next read; the moves are listed between two reads."""

    def __init__(self, reads: Sequence[Replicas], moves: Moves) -> None:
        self._reads = list(reads)
        self._moves = moves

    async def describe_topics(self, names: Sequence[str]) -> Mapping[str, KafkaTopic]:
        return {name: KafkaTopic(name, "id", (KafkaPartition(0, 1, self._reads.pop(0)),)) for name in names}

    async def describe_configs(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: {} for name in wanted}

    async def list_reassignments(self) -> Moves:
        return self._moves


@pytest.mark.parametrize(
    ("reads", "moves", "replicas"),
    [
        pytest.param([DURING, AFTER], {}, AFTER, id="the move ended between Metadata and the list of moves"),
        pytest.param([DURING, DURING], {}, DURING, id="another client has added a replica"),
        pytest.param([DURING], {Partition("orders", 0): MOVE}, AFTER, id="the move is listed"),
        pytest.param([DECLARED], {}, DECLARED, id="nothing differs"),
        pytest.param([(1, 2), DURING], {}, (1, 2), id="a move started after the list of moves"),
    ],
)
async def test_replicas_of_an_ended_move_do_not_count(
    reads: Sequence[Replicas], moves: Moves, replicas: Replicas
) -> None:
    """Metadata lists both sets of replicas until a move ends; the Topic must not report them as added by another client (`ReplicationFactorRaised`)."""
    cluster = Reads(reads, moves)

    snapshot = await query_topics(cast("Admin", cluster), [topic("orders", replicationFactor=3)])

    assert snapshot.topics["orders"].partitions[0].replicas == replicas
    assert cluster._reads == []
