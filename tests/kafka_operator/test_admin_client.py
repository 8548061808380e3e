"""The Admin client's attempts, over fake connections: what is tried again, what is raised, what is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError

from kafka_operator.admin import client as client_module
from kafka_operator.admin import connection as connection_module
from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import CallRefusedError, ClusterUnreachableError, ControllerUnavailableError
from kafka_operator.decide.observed import Failure
from kafka_operator.metrics import Metrics
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.security import Security

EMPTY = SimpleNamespace(topics=[])


class FakeConnection:
    """Answers from a list; an exception in it is raised."""

    opened: list[FakeConnection]
    answers: list[Any]

    def __init__(self, bootstrap_servers: Sequence[str], security: Security, context: object) -> None:
        del bootstrap_servers, security, context
        if self.answers and self.answers[0] == "no broker":
            self.answers.pop(0)
            raise KafkaTimeoutError("Unable to bootstrap")
        self.closed = False
        self.opened.append(self)

    def to_controller(self, request: Any, codes_of: Callable[[Any], Iterable[int]]) -> Any:
        del request, codes_of
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeConnection]]:
    """Connections that return prepared responses."""

    class Prepared(FakeConnection):
        opened: list[FakeConnection] = []  # noqa: RUF012
        answers: list[Any] = []  # noqa: RUF012

    monkeypatch.setattr(client_module, "Connection", Prepared)
    yield Prepared
    assert all(connection.closed for connection in Prepared.opened)


async def test_one_connection_serves_many_calls(connections: type[FakeConnection]) -> None:
    """It is opened at the first one."""
    connections.answers[:] = [EMPTY, EMPTY]
    admin = KafkaAdmin(["kafka:9092"], Metrics())

    assert await admin.describe_topics(["a"]) == {}
    assert await admin.describe_topics(["a"]) == {}
    assert len(connections.opened) == 1
    await admin.close()


async def test_a_stale_connection_is_replaced_without_anybody_noticing(connections: type[FakeConnection]) -> None:
    """The controller was replaced since the last call."""
    connections.answers[:] = [KafkaConnectionError("reset"), EMPTY]
    admin = KafkaAdmin(["kafka:9092"], Metrics())

    assert await admin.describe_topics(["a"]) == {}
    assert [connection.closed for connection in connections.opened] == [True, False]
    await admin.close()


async def test_a_broker_that_is_the_controller_no_more_is_asked_who_is(connections: type[FakeConnection]) -> None:
    """NOT_CONTROLLER keeps the connection."""
    connections.answers[:] = [ControllerUnavailableError("no longer the controller"), EMPTY]
    admin = KafkaAdmin(["kafka:9092"], Metrics())

    assert await admin.describe_topics(["a"]) == {}
    assert len(connections.opened) == 1
    await admin.close()


async def test_brokers_without_a_controller_are_told_from_no_brokers(connections: type[FakeConnection]) -> None:
    """A failover is waited for; an unreachable cluster is said at once."""
    connections.answers[:] = [KafkaConnectionError("refused"), KafkaConnectionError("refused")]
    admin = KafkaAdmin(["kafka:9092"], Metrics())
    with pytest.raises(ControllerUnavailableError, match="refused"):
        await admin.describe_topics(["a"])

    connections.answers[:] = ["no broker"]
    with pytest.raises(ClusterUnreachableError, match="Unable to bootstrap"):
        await admin.describe_topics(["a"])
    await admin.close()


async def test_a_refused_call_is_not_tried_again(connections: type[FakeConnection]) -> None:
    """CLUSTER_AUTHORIZATION_FAILED, with the broker's words."""
    connections.answers[:] = [SimpleNamespace(error_code=31, error_message="Not allowed.", topics=[])]
    admin = KafkaAdmin(["kafka:9092"], Metrics())

    with pytest.raises(CallRefusedError, match="Not allowed"):
        await admin.list_reassignments()
    await admin.close()


async def test_cancelling_what_is_over_is_no_failure(connections: type[FakeConnection]) -> None:
    """NO_REASSIGNMENT_IN_PROGRESS."""
    partitions = [
        SimpleNamespace(partition_index=0, error_code=85, error_message=None),
        SimpleNamespace(partition_index=1, error_code=85, error_message="odd"),
    ]
    answer = SimpleNamespace(
        error_code=0, error_message=None, responses=[SimpleNamespace(name="t", partitions=partitions)]
    )
    connections.answers[:] = [answer]
    admin = KafkaAdmin(["kafka:9092"], Metrics())

    refused = await admin.alter_reassignments({Partition("t", 0): None, Partition("t", 1): (1,)})

    assert refused == {Partition("t", 1): Failure(85, "NO_REASSIGNMENT_IN_PROGRESS", "odd")}
    await admin.close()


async def test_nothing_is_done_after_the_close(connections: type[FakeConnection]) -> None:
    """And nothing is opened."""
    admin = KafkaAdmin(["kafka:9092"], Metrics())
    await admin.close()

    with pytest.raises(ClusterUnreachableError):
        await admin.describe_topics(["a"])
    assert connections.opened == []


async def test_a_cluster_that_is_not_there_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """kafka-python's constructor starts one before it knows whether anybody answers."""
    monkeypatch.setattr(connection_module, "BOOTSTRAP_TIMEOUT_MS", 200)
    before = set(threading.enumerate())  # another test's client may be ending still
    admin = KafkaAdmin(["127.0.0.1:1"], Metrics())

    with pytest.raises(ClusterUnreachableError):
        await admin.describe_cluster()

    await admin.close()
    started = set(threading.enumerate()) - before
    assert not [thread for thread in started if thread.name.startswith("kafka-io")]
