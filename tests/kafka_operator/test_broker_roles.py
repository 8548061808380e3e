"""Which nodes of a cluster are counted as brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError

from kafka_operator.admin.broker_roles import only_brokers


class FakeConnection:
    """Answers with the controller's own setting, or not at all."""

    def __init__(self, roles: str | None, *, reachable: bool = True) -> None:
        self.roles = roles
        self.reachable = reachable
        self.asked: list[int] = []

    def to_node(self, request: Any, node_id: int) -> Any:
        """Answer DescribeConfigs of the node."""
        assert str(node_id) in str(request)
        self.asked.append(node_id)
        if not self.reachable:
            raise KafkaConnectionError("refused")
        entry = SimpleNamespace(name="process.roles", value=self.roles)
        return SimpleNamespace(results=[SimpleNamespace(configs=[entry])])


def metadata(controller_id: int, *ids: int) -> Any:
    """A Metadata answer."""
    return SimpleNamespace(controller_id=controller_id, brokers=[SimpleNamespace(node_id=node_id) for node_id in ids])


def count(connection: FakeConnection, answer: Any, known: dict[int, bool] | None = None) -> tuple[int, ...]:
    """The brokers that are counted."""
    return only_brokers(connection, answer, {} if known is None else known)  # type: ignore[arg-type]


@pytest.mark.parametrize("roles", ["", None, "broker", "broker,controller"])
def test_a_controller_that_holds_data_is_a_broker(roles: str | None) -> None:
    """ZooKeeper mode, and KRaft with and without combined roles."""
    assert count(FakeConnection(roles), metadata(2, 3, 2, 1)) == (1, 2, 3)


def test_a_controller_alone_is_no_broker() -> None:
    """Ours: listed so that clients reach it."""
    assert count(FakeConnection("controller"), metadata(1000, 1, 2, 1000)) == (1, 2)


def test_a_controller_is_asked_once_and_its_answer_holds_while_it_is_away() -> None:
    """The count does not jump during a failover."""
    known: dict[int, bool] = {}
    connection = FakeConnection("controller")
    assert count(connection, metadata(1000, 1, 2, 1000), known) == (1, 2)
    connection.reachable = False
    assert count(connection, metadata(1000, 1, 2, 1000), known) == (1, 2)
    assert count(connection, metadata(-1, 1, 2, 1000), known) == (1, 2)
    assert connection.asked == [1000]


def test_a_controller_that_was_never_reached_counts_and_is_asked_again() -> None:
    """No answer is no answer for ever."""
    known: dict[int, bool] = {}
    connection = FakeConnection("controller", reachable=False)
    assert count(connection, metadata(1000, 1, 1000), known) == (1, 1000)
    connection.reachable = True
    assert count(connection, metadata(1000, 1, 1000), known) == (1,)
