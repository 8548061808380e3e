"""Replicas of all partitions and min.insync.replicas, read from Kafka's answers."""

from __future__ import annotations

from kafka_operator.admin.health import MAX_TOPICS, partitions_of, query_health, query_min_isr
from kafka_operator.admin.requests import Request
from kafka_wire import ApiKey, Body
from kafka_wire.net.client import UnsupportedVersion
from tests.kafka_operator.cluster_pods import partition
from tests.kafka_operator.fake_connection import Answer, FakeConnection, columns


def answered_partition(index: int, replicas: list[int], isr: list[int]) -> Body:
    """A partition of a Metadata answer."""
    return {"partition_index": index, "replica_nodes": replicas, "isr_nodes": isr, "offline_replicas": []}


METADATA: Body = {
    "controller_id": 1000,
    "brokers": [{"node_id": node_id, "host": "kafka", "port": 9092} for node_id in (1, 0, 1000)],
    "topics": [
        {"name": "orders", "partitions": [answered_partition(0, [0, 1], [1]), answered_partition(1, [1, 0], [1, 0])]},
        {"name": "empty", "partitions": []},
    ],
}


def controller(_: object, request: Request) -> Answer:
    """Return prepared responses; min.insync.replicas of each topic is the number in its name."""
    if request.key is ApiKey.METADATA:
        return METADATA
    if request.key is ApiKey.DESCRIBE_QUORUM:
        return UnsupportedVersion("ZooKeeper mode")
    if request.key is ApiKey.API_VERSIONS:
        return {"error_code": 0, "api_keys": [], "finalized_features": []}
    names = [resource["resource_name"] for resource in request.body["resources"]]
    return {
        "results": [
            {
                "resource_name": name,
                "error_code": 3 if name == "gone" else 0,
                "configs": [{"name": "min.insync.replicas", "value": name}],
            }
            for name in names
        ]
    }


def test_all_partitions_are_read_with_their_replicas_in_sync() -> None:
    """Out of one Metadata answer."""
    assert list(partitions_of(columns(METADATA))) == [partition(0, (0, 1), isr=(1,)), partition(1, (1, 0))]


async def test_the_controller_is_asked_for_everything_and_counts_as_no_broker() -> None:
    """topics=None; no topic is made by asking."""
    connection = FakeConnection(controller)

    found = await query_health(connection, {1000: True})

    assert (found.controller_id, found.broker_ids, len(found.partitions), found.min_isr) == (1000, (0, 1), 2, None)
    assert [node for node, request in connection.requests if request.key is ApiKey.METADATA] == ["controller"]


async def test_min_isr_is_requested_in_batches_and_a_topic_without_an_answer_is_left_out() -> None:
    """Wherever the setting comes from: topic, broker, default."""
    connection = FakeConnection(controller)
    topics = {*map(str, range(1, MAX_TOPICS + 1)), "gone"}

    found = await query_min_isr(connection, topics)

    assert {str(number): number for number in range(1, MAX_TOPICS + 1)} == found
    assert [len(request.body["resources"]) for _, request in connection.requests] == [MAX_TOPICS, 1]
