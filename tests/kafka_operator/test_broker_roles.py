"""Which nodes of a cluster are counted as brokers."""

from __future__ import annotations

import pytest

from kafka_operator.admin.broker_roles import only_brokers
from kafka_operator.admin.requests import Request
from tests.kafka_operator.fake_connection import AWAY, Answer, FakeConnection


class Node(FakeConnection):
    """The controller, which answers with its own setting, or not at all."""

    def __init__(self, roles: str | None, *, reachable: bool = True) -> None:
        super().__init__(self._roles_of)
        self.roles = roles
        self.reachable = reachable

    def _roles_of(self, node: int | str, request: Request) -> Answer:
        (resource,) = request.body["resources"]
        assert resource["resource_name"] == str(node)
        entry = {"name": "process.roles", "value": self.roles}
        return {"results": [{"resource_name": str(node), "configs": [entry]}]} if self.reachable else AWAY


async def count(
    connection: FakeConnection, controller_id: int, *ids: int, known: dict[int, bool] | None = None
) -> tuple[int, ...]:
    """Return the brokers that are counted."""
    return await only_brokers(connection, controller_id, ids, {} if known is None else known)


@pytest.mark.parametrize("roles", ["", None, "broker", "broker,controller"])
async def test_a_controller_that_holds_data_is_a_broker(roles: str | None) -> None:
    """ZooKeeper mode, and KRaft with and without combined roles."""
    assert await count(Node(roles), 2, 3, 2, 1) == (1, 2, 3)


async def test_a_controller_alone_is_no_broker() -> None:
    """Ours: listed so that clients reach it."""
    assert await count(Node("controller"), 1000, 1, 2, 1000) == (1, 2)


async def test_a_controller_is_asked_once_and_its_answer_holds_while_it_is_away() -> None:
    """The count does not jump during a failover."""
    known: dict[int, bool] = {}
    connection = Node("controller")
    assert await count(connection, 1000, 1, 2, 1000, known=known) == (1, 2)
    connection.reachable = False
    assert await count(connection, 1000, 1, 2, 1000, known=known) == (1, 2)
    assert await count(connection, -1, 1, 2, 1000, known=known) == (1, 2)
    assert [node for node, _ in connection.requests] == [1000]


async def test_a_controller_that_was_never_reached_counts_and_is_asked_again() -> None:
    """A missing answer is not remembered."""
    known: dict[int, bool] = {}
    connection = Node("controller", reachable=False)
    assert await count(connection, 1000, 1, 1000, known=known) == (1, 1000)
    connection.reachable = True
    assert await count(connection, 1000, 1, 1000, known=known) == (1,)
