"""The quorum and the controller, read from Kafka's answers (KIP-595)."""

from __future__ import annotations

import pytest

from kafka_operator.admin.quorum import controller_of, query_quorum
from kafka_operator.admin.requests import Request
from kafka_operator.decide.kafka.observed import ObservedQuorum, Quorum, QuorumNode, Unavailable
from kafka_wire import ApiKey, Body
from kafka_wire.net.client import ConnectionFailed, UnsupportedVersion
from tests.kafka_operator.fake_connection import AWAY, Answer, FakeConnection

CLUSTER_AUTHORIZATION_FAILED, UNKNOWN_SERVER_ERROR = 31, -1


def replica(node_id: int, end: int = 0, caught_up_ms: int = 0) -> Body:
    """A voter or an observer of a DescribeQuorum response."""
    return {"replica_id": node_id, "log_end_offset": end, "last_caught_up_timestamp": caught_up_ms}


def described(leader_id: int, *, error_code: int = 0, inner_code: int = 0, voters: tuple[Body, ...] = ()) -> Body:
    """A DescribeQuorum response."""
    partition = {
        "leader_id": leader_id,
        "leader_epoch": 7,
        "high_watermark": 90,
        "error_code": inner_code,
        "current_voters": list(voters),
        "observers": [replica(2, 88, 40)],
    }
    return {"error_code": error_code, "topics": [{"topic_name": "__cluster_metadata", "partitions": [partition]}]}


async def queried(answer: Answer, *features: str) -> ObservedQuorum:
    """Query a broker that has these finalized features."""

    def broker(_: object, request: Request) -> Answer:
        if request.key is ApiKey.API_VERSIONS:
            levels = [{"name": name, "max_version_level": 1, "min_version_level": 1} for name in features]
            return {"error_code": 0, "api_keys": [], "finalized_features": levels}
        return answer

    return await query_quorum(FakeConnection(broker))


async def test_voters_and_observers_are_read_with_their_positions() -> None:
    """DescribeQuorum version 1 has the timestamps (KIP-836)."""
    found = await queried(described(1, voters=(replica(1, 91, 50), replica(3, 60, 10))))

    assert found == Quorum(1, 7, 90, (QuorumNode(1, 91, 50), QuorumNode(3, 60, 10)), (QuorumNode(2, 88, 40),))


async def test_the_leader_of_the_quorum_is_the_controller() -> None:
    """Brokers name one of themselves in Metadata, another one each time (KIP-590)."""
    assert controller_of(2, await queried(described(100))) == 100


async def test_without_a_quorum_the_controller_is_that_of_metadata() -> None:
    """ZooKeeper mode: brokers do not serve the request, and metadata.version is not finalized."""
    found = await queried(UnsupportedVersion("no DescribeQuorum"))

    assert found is None
    assert controller_of(2, found) == 2


async def test_a_quorum_that_the_brokers_do_not_describe_is_not_taken_for_zookeeper_mode() -> None:
    """Kafka 3.0 to 3.2 in KRaft mode, and services that hide the request: Metadata's controller is a random broker there."""
    found = await queried(UnsupportedVersion("no DescribeQuorum"), "metadata.version")

    assert isinstance(found, Unavailable)
    assert found.reason == "QuorumNotVisible"
    assert controller_of(2, found) == -1


@pytest.mark.parametrize(
    "answer",
    [described(0, inner_code=6), {"error_code": 7, "topics": []}, {"error_code": 41, "topics": []}],
    ids=["not leader", "timed out", "not controller"],
)
async def test_during_an_election_there_is_no_controller(answer: Answer) -> None:
    """No guess that would change with each read."""
    found = await queried(answer)

    assert found == Quorum(-1)
    assert controller_of(2, found) == -1


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        ({"error_code": CLUSTER_AUTHORIZATION_FAILED, "topics": []}, True),
        (described(5, error_code=CLUSTER_AUTHORIZATION_FAILED), True),
        (described(5, error_code=UNKNOWN_SERVER_ERROR), False),
    ],
    ids=["not allowed, empty", "not allowed", "another error"],
)
async def test_a_rejected_request_is_reported_with_the_missing_right(answer: Answer, advice: bool) -> None:
    """DescribeQuorum needs Describe on the cluster (KIP-595)."""
    found = await queried(answer)

    assert isinstance(found, Unavailable)
    assert ("Grant the operator's user the operation Describe on the cluster." in found.message) is advice
    assert controller_of(2, found) == -1


async def test_a_broker_that_does_not_answer_is_a_failure_of_the_call() -> None:
    """The caller retries."""
    with pytest.raises(ConnectionFailed):
        await queried(AWAY)
