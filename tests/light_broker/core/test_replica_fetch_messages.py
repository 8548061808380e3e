"""Requests of a follower on the wire. Source: Kafka's FetchRequest.Builder.forReplica, KIP-903, KIP-516, KIP-595."""

from dataclasses import replace
from uuid import UUID

import pytest

from kafka_log.format.epochs import EpochStart, LeaderEpochs
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import ApiKey, ErrorCode, codec
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.offset_search import SpecialTimestamp
from light_broker.core.replica_fetch import FetchAnswer, FollowerLog, ReplicaFetchSettings
from light_broker.core.replica_fetch_messages import (
    FETCH_VERSIONS,
    NAMED_VERSIONS,
    OFFSETS_VERSIONS,
    TOPIC_IDS_FROM,
    Asked,
    fetch_answers,
    fetch_request,
    fetch_versions,
    offsets_answers,
    offsets_request,
    wanted_partitions,
)
from light_broker.core.replica_fetch_session import FollowerSession, SessionRequest

ORDERS, OTHER = TopicPartition("orders", 3), TopicPartition("orders", 4)
ORDERS_ID = UUID(int=7)
LOG = FollowerLog(2, 25, 12, LeaderEpochs([EpochStart(1, 2), EpochStart(5, 20)]))
ASKED = {ORDERS: Asked(ORDERS_ID, 6, LOG), OTHER: Asked(ORDERS_ID, 6, LOG)}
SETTINGS = ReplicaFetchSettings(partition_max_bytes=10, response_max_bytes=20, min_bytes=2, max_wait_ms=3)


def first_request(version: int) -> SessionRequest:
    """Return a full request for the partitions."""
    by_id = version >= TOPIC_IDS_FROM
    return FollowerSession().request(wanted_partitions(ASKED, 10, uses_topic_ids=by_id), uses_topic_ids=by_id)


@pytest.mark.parametrize("version", range(FETCH_VERSIONS[0], FETCH_VERSIONS[1] + 1))
def test_a_fetch_has_the_end_of_the_log_and_its_last_epoch(version: int) -> None:
    """In all versions with a diverging epoch in the response."""
    body = fetch_request(version, first_request(version), SETTINGS, broker_id=2, broker_epoch=9)
    sent = codec.decode("FetchRequest", version, codec.encode("FetchRequest", version, body))

    replica = (sent["replica_state"]["replica_id"], sent["replica_state"]["replica_epoch"]) if version >= 15 else None
    assert replica == ((2, 9) if version >= 15 else None)
    assert sent["replica_id"] == (-1 if version >= 15 else 2)
    assert [sent[name] for name in ("max_wait_ms", "min_bytes", "max_bytes")] == [3, 2, 20]
    (topic,) = sent["topics"]
    assert (topic["topic_id"] if version >= 13 else topic["topic"]) == (ORDERS_ID if version >= 13 else "orders")
    assert [partition["partition"] for partition in topic["partitions"]] == [3, 4]
    first = topic["partitions"][0]
    names = ("fetch_offset", "last_fetched_epoch", "log_start_offset", "current_leader_epoch", "partition_max_bytes")
    assert [first[name] for name in names] == [25, 5, 2, 6, 10]


@pytest.mark.parametrize("version", range(FETCH_VERSIONS[0], FETCH_VERSIONS[1] + 1))
def test_a_later_fetch_of_a_session_has_what_changed(version: int) -> None:
    """KIP-227: the partitions to change, and those to forget."""
    session, by_id = first_request(version).answered(3), version >= TOPIC_IDS_FROM
    longer = {ORDERS: ASKED[ORDERS]._replace(log=replace(LOG, end_offset=26))}
    request = session.request(wanted_partitions(longer, 10, uses_topic_ids=by_id), uses_topic_ids=by_id)
    body = fetch_request(version, request, SETTINGS, broker_id=2, broker_epoch=9)
    sent = codec.decode("FetchRequest", version, codec.encode("FetchRequest", version, body))

    assert (sent["session_id"], sent["session_epoch"]) == (3, 1)
    (topic,), (forgotten,) = sent["topics"], sent["forgotten_topics_data"]
    assert [(partition["partition"], partition["fetch_offset"]) for partition in topic["partitions"]] == [(3, 26)]
    assert forgotten["partitions"] == [4]
    assert (forgotten["topic_id"] if by_id else forgotten["topic"]) == (ORDERS_ID if by_id else "orders")


def test_topics_without_an_id_are_fetched_by_name() -> None:
    """Version 13 has only ids (KIP-516)."""
    assert fetch_versions(ASKED.values()) == FETCH_VERSIONS
    assert fetch_versions([*ASKED.values(), Asked(NO_TOPIC_ID, 6, LOG)]) == NAMED_VERSIONS


@pytest.mark.parametrize("version", range(FETCH_VERSIONS[0], FETCH_VERSIONS[1] + 1))
def test_answers_are_read_in_each_version(version: int) -> None:
    """A topic id that the request did not have is ignored."""
    partitions = [
        {"partition_index": 3, "error_code": 0, "high_watermark": 20, "log_start_offset": 1, "records": b"r"},
        {
            "partition_index": 4,
            "error_code": 0,
            "high_watermark": 20,
            "log_start_offset": 1,
            "records": None,
            "diverging_epoch": {"epoch": 3, "end_offset": 15},
        },
    ]
    topics = [
        {"topic": "orders", "topic_id": ORDERS_ID, "partitions": partitions},
        {"topic": "strange", "topic_id": UUID(int=8), "partitions": partitions},
    ]
    response = codec.encode(
        "FetchResponse", version, {"error_code": 0, "responses": topics[: 2 if version >= 13 else 1]}
    )
    error, answers = fetch_answers(codec.decode("FetchResponse", version, response), version, {ORDERS_ID: "orders"}.get)

    assert error is ErrorCode.NONE
    assert answers == {
        ORDERS: FetchAnswer(ErrorCode.NONE, 20, 1, b"r"),
        OTHER: FetchAnswer(ErrorCode.NONE, 20, 1, b"", EpochStart(3, 15)),
    }


@pytest.mark.parametrize("version", range(OFFSETS_VERSIONS[0], OFFSETS_VERSIONS[1] + 1))
def test_offsets_are_asked_for_as_a_replica(version: int) -> None:
    """The leader then answers up to the end of its log."""
    body = offsets_request(ASKED, SpecialTimestamp.LATEST, broker_id=2)
    sent = codec.decode("ListOffsetsRequest", version, codec.encode("ListOffsetsRequest", version, body))

    assert sent["replica_id"] == 2
    assert [(topic["name"], len(topic["partitions"])) for topic in sent["topics"]] == [("orders", 2)]
    first = sent["topics"][0]["partitions"][0]
    assert (first["partition_index"], first["timestamp"], first["current_leader_epoch"]) == (3, -1, 6)


def test_offsets_are_read_with_their_errors() -> None:
    """By partition."""
    partitions = [
        {"partition_index": 3, "error_code": 0, "timestamp": -1, "offset": 30, "leader_epoch": 6},
        {"partition_index": 4, "error_code": 74, "timestamp": -1, "offset": -1, "leader_epoch": -1},
    ]
    frame = codec.encode_response(ApiKey.LIST_OFFSETS, 7, 1, {"topics": [{"name": "orders", "partitions": partitions}]})

    assert offsets_answers(codec.decode_response(ApiKey.LIST_OFFSETS, 7, frame)[1]) == {
        ORDERS: (ErrorCode.NONE, 30),
        OTHER: (ErrorCode.FENCED_LEADER_EPOCH, -1),
    }
