"""Replicas of all partitions and min.insync.replicas, read from Kafka's answers."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

from kafka_operator.admin.health import MAX_TOPICS, partitions_of, query_health, query_min_isr
from tests.kafka_operator.cluster_pods import partition


def answered_partition(index: int, replicas: list[int], isr: list[int]) -> Any:
    """A partition of a Metadata answer."""
    return Answer(partition_index=index, replica_nodes=replicas, isr_nodes=isr)


METADATA = Answer(
    controller_id=1000,
    brokers=[Answer(node_id=node_id) for node_id in (1, 0, 1000)],
    topics=[
        Answer(name="orders", partitions=[answered_partition(0, [0, 1], [1]), answered_partition(1, [1, 0], [1, 0])]),
        Answer(name="empty", partitions=[]),
    ],
)


class Controller:
    """Returns prepared responses; min.insync.replicas of each topic is the number in its name."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def to_controller(self, request: Any, codes_of: Any) -> Any:
        for version in (request.min_version, request.max_version):
            assert request.encode(version=max(version, 1))
        self.asked.append(request)
        if not hasattr(request, "resources"):
            return METADATA
        results = [
            Answer(
                resource_name=name,
                error_code=3 if name == "gone" else 0,
                configs=[Answer(name="min.insync.replicas", value=name)],
            )
            for _, name, _ in request.resources
        ]
        answer = Answer(results=results)
        assert len(results) == len(codes_of(answer))
        return answer


def test_all_partitions_are_read_with_their_replicas_in_sync() -> None:
    """Out of one Metadata answer."""
    assert list(partitions_of(METADATA)) == [partition(0, (0, 1), isr=(1,)), partition(1, (1, 0))]


def test_the_controller_is_asked_for_everything_and_counts_as_no_broker() -> None:
    """topics=None; no topic is made by asking."""
    controller = Controller()

    found = query_health(controller, {1000: True})  # type: ignore[arg-type]

    assert (found.controller_id, found.broker_ids, len(found.partitions), found.min_isr) == (1000, (0, 1), 2, None)
    assert (controller.asked[0].topics, controller.asked[0].allow_auto_topic_creation) == (None, False)


def test_min_isr_is_asked_for_in_batches_and_a_topic_that_does_not_tell_is_left_out() -> None:
    """Wherever the setting comes from: topic, broker, default."""
    controller = Controller()
    topics = {*map(str, range(1, MAX_TOPICS + 1)), "gone"}

    found = query_min_isr(controller, topics)  # type: ignore[arg-type]

    assert {str(number): number for number in range(1, MAX_TOPICS + 1)} == found
    assert [len(request.resources) for request in controller.asked] == [MAX_TOPICS, 1]
