"""Calls of the Admin client against servers that answer as brokers: their errors, and what remains after them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from kafka_operator.admin import client as client_module
from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import CallRefusedError, ClusterUnreachableError, ControllerUnavailableError
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.steps import CreateTopic
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.reassignment import Partition
from kafka_wire import ApiKey, Body, codec
from kafka_wire.net.server import CloseConnection, Peer, Server, serve

SERVED = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.METADATA: (0, 12),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.CREATE_TOPICS: (0, 7),
}


class Broker:
    """The only broker and the controller; the answers of other requests than Metadata are taken from a list.

    None closes the connection.
    """

    def __init__(self) -> None:
        self.server: Server | None = None
        self.controller_id = 1
        self.answers: list[Body | None] = []
        self.connections: set[str] = set()

    async def __call__(self, peer: Peer, frame: bytes) -> bytes:
        """Answer one request."""
        self.connections.add(f"{peer.host}:{peer.port}")
        header, _ = codec.decode_request(frame)
        key = ApiKey(header.api_key)
        body = self._body(key)
        if body is None:
            raise CloseConnection("test")
        return codec.encode_response(key, header.api_version, header.correlation_id, body)

    def _body(self, key: ApiKey) -> Body | None:
        if key is ApiKey.API_VERSIONS:
            ranges = SERVED.items()
            return {
                "api_keys": [{"api_key": api, "min_version": low, "max_version": high} for api, (low, high) in ranges]
            }
        if key is ApiKey.METADATA:
            assert self.server is not None
            node = {"node_id": 1, "host": "127.0.0.1", "port": self.server.port}
            return {"controller_id": self.controller_id, "brokers": [node], "topics": []}
        return self.answers.pop(0)


@pytest.fixture
async def cluster() -> AsyncIterator[tuple[Broker, KafkaAdmin]]:
    """A broker and the operator's client."""
    broker = Broker()
    broker.server = await serve(broker, "127.0.0.1", 0)
    admin = KafkaAdmin([f"127.0.0.1:{broker.server.port}"], KafkaMetrics())
    yield broker, admin
    await admin.close()
    await broker.server.close(1)


async def test_a_closed_connection_is_replaced_within_the_call(cluster: tuple[Broker, KafkaAdmin]) -> None:
    """The controller was restarted since the last call."""
    broker, admin = cluster
    broker.answers = [None, {"topics": []}]

    assert await admin.list_reassignments() == {}
    assert broker.answers == []


async def test_a_cluster_without_a_controller_is_distinguished_from_an_unreachable_one(
    cluster: tuple[Broker, KafkaAdmin],
) -> None:
    """The end of a failover is waited for; an unreachable cluster is reported at once."""
    broker, admin = cluster
    broker.controller_id = -1
    with pytest.raises(ControllerUnavailableError, match="no active controller"):
        await admin.describe_topics(["a"])

    assert broker.server is not None
    await broker.server.close(1)
    with pytest.raises(ClusterUnreachableError, match="cannot be reached"):
        await admin.describe_topics(["a"])


async def test_a_controller_that_closes_every_connection_is_unavailable(cluster: tuple[Broker, KafkaAdmin]) -> None:
    """Brokers answer Metadata, so the cluster is reachable."""
    broker, admin = cluster
    broker.answers = [None] * 10

    with pytest.raises(ControllerUnavailableError, match="closed the connection"):
        await admin.list_reassignments()


async def test_a_refused_call_is_not_repeated(cluster: tuple[Broker, KafkaAdmin]) -> None:
    """CLUSTER_AUTHORIZATION_FAILED, with the broker's message."""
    broker, admin = cluster
    broker.answers = [{"error_code": 31, "error_message": "Not allowed.", "topics": []}, {"topics": []}]

    with pytest.raises(CallRefusedError, match="Not allowed"):
        await admin.list_reassignments()
    assert len(broker.answers) == 1


async def test_cancelling_a_move_that_has_ended_is_not_a_failure(cluster: tuple[Broker, KafkaAdmin]) -> None:
    """NO_REASSIGNMENT_IN_PROGRESS."""
    broker, admin = cluster
    partitions = [
        {"partition_index": 0, "error_code": 85, "error_message": None},
        {"partition_index": 1, "error_code": 85, "error_message": "odd"},
    ]
    broker.answers = [{"responses": [{"name": "t", "partitions": partitions}]}]

    refused = await admin.alter_reassignments({Partition("t", 0): None, Partition("t", 1): (1,)})

    assert refused == {Partition("t", 1): Failure(85, "NO_REASSIGNMENT_IN_PROGRESS", "odd")}


async def test_a_request_that_cannot_be_encoded_is_refused(cluster: tuple[Broker, KafkaAdmin]) -> None:
    """A number of partitions that is no int32; the schema of a Topic has a lower limit."""
    _, admin = cluster

    with pytest.raises(CallRefusedError, match="The request cannot be encoded"):
        await admin.create_topics([CreateTopic("t", 2**40, 1, ())])


async def test_nothing_is_sent_after_the_close(cluster: tuple[Broker, KafkaAdmin]) -> None:
    """Also no connection is opened."""
    broker, admin = cluster
    await admin.close()

    with pytest.raises(ClusterUnreachableError, match="closed locally"):
        await admin.describe_topics(["a"])
    assert broker.connections == set()


async def test_a_silent_cluster_is_reported_within_the_time_for_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts connections and does not answer; no task and no thread remains."""
    monkeypatch.setattr(client_module, "METADATA_TIMEOUT_MS", 100)
    threads = set(threading.enumerate())

    async def wait(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await closed.wait()
        writer.close()

    closed = asyncio.Event()
    server = await asyncio.start_server(wait, "127.0.0.1", 0)
    admin = KafkaAdmin([f"127.0.0.1:{server.sockets[0].getsockname()[1]}"], KafkaMetrics())

    with pytest.raises(ClusterUnreachableError, match="did not respond to a request in time"):
        await admin.describe_cluster()

    await admin.close()
    closed.set()
    server.close()
    await server.wait_closed()
    assert set(threading.enumerate()) == threads


def test_a_malformed_bootstrap_server_is_reported() -> None:
    """The schema of a Cluster admits any port of five digits."""
    with pytest.raises(ValueError, match="'kafka:99999' is not HOST:PORT"):
        KafkaAdmin(["kafka:99999"], KafkaMetrics())
