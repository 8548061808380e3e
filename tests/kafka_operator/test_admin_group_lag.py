"""Lag of consumer groups, read from Kafka's answers."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

from kafka.errors import NodeNotReadyError

from kafka_operator.admin.group_lag import committed_of, lag_of, query_group_lags
from kafka_operator.decide.observed import Failure
from kafka_operator.resources.reassignment import Partition

T0, T1 = Partition("t", 0), Partition("t", 1)


def committed(*offsets: int, error_code: int = 0) -> Any:
    """An OffsetFetch answer; -1 for a partition without a committed offset."""
    partitions = [
        Answer(partition_index=index, committed_offset=offset, error_code=0) for index, offset in enumerate(offsets)
    ]
    return Answer(error_code=error_code, topics=[Answer(name="t", partitions=partitions)])


class Brokers:
    """Coordinator 1 has group `a`, and does not know `b`; broker 2 leads t-0 and t-1; broker 3, the coordinator of `c`, is away."""

    def __init__(self) -> None:
        self.asked: list[tuple[int | None, str]] = []

    def to_any(self, request: Any) -> Any:
        assert request.encode(version=request.max_version)
        return Answer(error_code=0, error_message=None, node_id=3 if request.key == "c" else 1)

    def to_node(self, request: Any, node_id: int | None) -> Any:
        for version in (request.min_version, request.max_version):
            assert request.encode(version=version)
        self.asked.append((node_id, type(request).__name__))
        if node_id == 3:
            raise NodeNotReadyError("3")
        if hasattr(request, "group_id"):
            return committed(5, 7, -1) if request.group_id == "a" else committed()
        (topic,) = request.topics
        ends = [
            Answer(partition_index=item.partition_index, error_code=0, offset=10 + item.partition_index)
            for item in topic.partitions
        ]
        return Answer(topics=[Answer(name=topic.name, partitions=ends)])

    def to_controller(self, _: Any, codes_of: Any) -> Any:
        partitions = [Answer(partition_index=index, leader_id=2) for index in range(3)]
        answer = Answer(brokers=[2], topics=[Answer(name="t", partitions=partitions)])
        assert codes_of(answer) == ()
        return answer


def test_the_lag_of_a_group_is_the_sum_over_its_partitions_and_an_error_of_one_group_is_its_own() -> None:
    """Ends are asked of the leader, only for partitions with a committed offset."""
    brokers = Brokers()

    lags = query_group_lags(brokers, ["a", "b", "c"])  # type: ignore[arg-type]

    assert lags["a"] == (10 - 5) + (11 - 7)
    assert isinstance(lags["b"], Failure)
    assert lags["b"].message == "Group b has no committed offsets."
    assert isinstance(lags["c"], Failure)
    assert lags["c"].name == "BROKER_NOT_AVAILABLE"
    assert brokers.asked.count((2, "ListOffsetsRequest")) == 1


def test_a_group_that_may_not_be_read_is_a_failure() -> None:
    """GROUP_AUTHORIZATION_FAILED, in Kafka's words."""
    found = committed_of(committed(error_code=30), "a")

    assert isinstance(found, Failure)
    assert found.code == 30


def test_a_partition_without_a_leader_makes_the_lag_unknown() -> None:
    """A sum without it would be too low. A group that was reset beyond the end has no lag."""
    assert lag_of({T0: 5, T1: 5}, {T0: 9, T1: 3}) == 4
    assert isinstance(lag_of({T0: 5, T1: 5}, {T0: 9}), Failure)
