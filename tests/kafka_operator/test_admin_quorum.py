"""Who is shown as the controller of a cluster."""

from __future__ import annotations

import pytest

from kafka_operator.admin.quorum import controller_of
from kafka_wire.codec import Body
from kafka_wire.net.client import ConnectionFailed, UnsupportedVersion
from tests.kafka_operator.fake_connection import AWAY, Answer, FakeConnection


def quorum(leader_id: int, *, error_code: int = 0, inner_code: int = 0) -> Body:
    """A DescribeQuorum answer."""
    partition = {"leader_id": leader_id, "error_code": inner_code}
    return {"error_code": error_code, "topics": [{"topic_name": "__cluster_metadata", "partitions": [partition]}]}


async def shown(answer: Answer) -> int:
    """Return the controller that is shown, where Metadata names broker 2."""
    connection = FakeConnection(lambda node, request: answer)  # noqa: ARG005 - to any broker
    found = await controller_of(connection, 2)
    assert [node for node, _ in connection.requests] == ["any"]
    return found


async def test_the_leader_of_the_quorum_is_the_controller() -> None:
    """KIP-595; brokers name one of themselves in Metadata, another one each time (KIP-590)."""
    assert await shown(quorum(100)) == 100


async def test_without_a_quorum_it_is_who_metadata_names() -> None:
    """ZooKeeper mode: a broker does not know the request."""
    assert await shown(UnsupportedVersion("no DescribeQuorum")) == 2


@pytest.mark.parametrize(
    "answer",
    [quorum(-1), quorum(-1, inner_code=6), quorum(5, error_code=31), {"error_code": 31, "topics": []}],
    ids=["election", "not leader", "not allowed", "not allowed, empty"],
)
async def test_none_is_shown_where_none_is_told(answer: Answer) -> None:
    """An election under way, and CLUSTER_AUTHORIZATION_FAILED: no guess that would change with each look."""
    assert await shown(answer) == -1


async def test_other_troubles_are_troubles() -> None:
    """A broker that went away is asked again by the caller."""
    with pytest.raises(ConnectionFailed):
        await shown(AWAY)
