"""Who is shown as the controller of a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import IncompatibleBrokerVersion, KafkaConnectionError

from kafka_operator.admin.quorum import controller_of

METADATA: Any = SimpleNamespace(controller_id=2)


class FakeConnection:
    """Answers DescribeQuorum with this, or fails by it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def to_any(self, request: Any) -> Any:
        """Answer."""
        assert "__cluster_metadata" in str(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def quorum(leader_id: int, *, error_code: int = 0, inner_code: int = 0) -> Any:
    """A DescribeQuorum answer."""
    partition = SimpleNamespace(leader_id=leader_id, error_code=inner_code)
    return SimpleNamespace(error_code=error_code, topics=[SimpleNamespace(partitions=[partition])])


def shown(answer: Any) -> int:
    """Who is shown."""
    return controller_of(FakeConnection(answer), METADATA)  # type: ignore[arg-type]


def test_the_leader_of_the_quorum_is_the_controller() -> None:
    """KIP-595; brokers name one of themselves in Metadata, another one each time (KIP-590)."""
    assert shown(quorum(100)) == 100


def test_without_a_quorum_it_is_who_metadata_names() -> None:
    """ZooKeeper mode: a broker does not know the request."""
    assert shown(IncompatibleBrokerVersion("no DescribeQuorum")) == 2


@pytest.mark.parametrize(
    "answer",
    [quorum(-1), quorum(-1, inner_code=6), quorum(5, error_code=31), SimpleNamespace(error_code=31, topics=[])],
    ids=["election", "not leader", "not allowed", "not allowed, empty"],
)
def test_none_is_shown_where_none_is_told(answer: Any) -> None:
    """An election under way, and CLUSTER_AUTHORIZATION_FAILED: no guess that would change with each look."""
    assert shown(answer) == -1


def test_other_troubles_are_troubles() -> None:
    """A broker that went away is asked again by the caller."""
    with pytest.raises(KafkaConnectionError):
        shown(KafkaConnectionError("gone"))
