"""Interpretation of brokers' answers. Sources: protocol notes, Z30, Z47 and Z81; ReplicaManager's errors."""

from typing import Any
from uuid import UUID

import numpy as np
import pytest

from controller_core.model import Broker, Cluster, TopicPartition
from controller_core.model.zookeeper_changes import BrokersObserved
from controller_core.model.zookeeper_events import LeaderAndIsrAnswered, StopReplicaAnswered
from controller_core.shell.brokers.answers import AnswerStatus, interpret_answer, replicas_answered
from controller_core.shell.brokers.requests import StatesBody
from controller_core.zookeeper_mode.apis import CALLED
from controller_core.zookeeper_mode.transitions import apply
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.columns.states import StateColumns, TopicStates
from tests.controller_core.shell.zookeeper.vocabulary import read_change

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
DELETE: Body = {
    "topic_states": [
        {
            "topic_name": "a",
            "partition_states": [
                {"partition_index": number, "leader_epoch": 3, "delete_partition": True} for number in (0, 1)
            ],
        }
    ]
}


def answer(key: ApiKey, version: int, body: Body) -> Body:
    """An answer as decoded: it has every field that any version has."""
    name = key.message + "Response"
    return codec.decode(name, version, codec.encode(name, version, body))


def errors(*found: tuple[int, int]) -> list[dict[str, Any]]:
    """Partition errors of a StopReplica answer."""
    return [{"topic_name": "a", "partition_index": index, "error_code": code} for index, code in found]


@pytest.mark.parametrize("key", [ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA])
@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ErrorCode.NONE, AnswerStatus.ACCEPTED),
        (ErrorCode.STALE_CONTROLLER_EPOCH, AnswerStatus.STALE_CONTROLLER),
        (ErrorCode.STALE_BROKER_EPOCH, AnswerStatus.STALE_BROKER),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, AnswerStatus.UNAUTHORIZED),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, AnswerStatus.FAILED),
        (32_000, AnswerStatus.FAILED),
    ],
)
def test_the_top_level_error_is_the_status_of_an_answer(key: ApiKey, code: int, status: AnswerStatus) -> None:
    """Protocol notes, Z2 and Z3: the broker answers a stale controller epoch with 11 and a stale broker epoch with 77, at the top."""
    for version in (CALLED[key].lowest, CALLED[key].highest):
        found = answer(key, version, {"error_code": code})
        assert interpret_answer(1, key, {"topic_states": []}, found).status is status


A_ID = UUID(int=7)
LEAD_A = StatesBody(ApiKey.LEADER_AND_ISR, {}, StateColumns((TopicStates("a", A_ID, 2),), {}, {}, {}))


@pytest.mark.parametrize("version", [4, 5, 7])
def test_a_partition_that_has_the_leader_epoch_already_is_no_failure(version: int) -> None:
    """Protocol notes, Z30: partition error 11 is normal when the broker has the leader epoch; it does not depose the controller."""
    found = [{"topic_name": "a", "partition_index": 0, "error_code": ErrorCode.STALE_CONTROLLER_EPOCH}]
    body = {"partition_errors": found} if version < 5 else {"topics": [{"partition_errors": found[:0]}]}
    if version >= 5:
        body["topics"][0]["partition_errors"] = [{"partition_index": 0, "error_code": 11}]
    result = interpret_answer(1, ApiKey.LEADER_AND_ISR, LEAD_A, answer(ApiKey.LEADER_AND_ISR, version, body))

    assert result.status is AnswerStatus.ACCEPTED
    assert result.failed == ()


@pytest.mark.parametrize("version", [4, 7])
def test_a_partition_that_a_broker_cannot_host_is_named(version: int) -> None:
    """Below version 5 by its topic's name, later by its topic's id, whose name is in the request."""
    flat = [{"topic_name": "a", "partition_index": 1, "error_code": ErrorCode.KAFKA_STORAGE_ERROR}]
    by_topic = [
        {"topic_id": A_ID, "partition_errors": [{"partition_index": 1, "error_code": ErrorCode.KAFKA_STORAGE_ERROR}]}
    ]
    body = {"partition_errors": flat} if version < 5 else {"topics": by_topic}
    ((partition, error),) = interpret_answer(
        1, ApiKey.LEADER_AND_ISR, LEAD_A, answer(ApiKey.LEADER_AND_ISR, version, body)
    ).failed

    assert partition == TopicPartition("a", 1)
    assert error == "KAFKA_STORAGE_ERROR"


@pytest.mark.parametrize("version", [4, 7])
def test_a_refused_replica_is_an_event_with_its_error_and_the_topics_id(version: int) -> None:
    """ReplicaManager.becomeLeaderOrFollower: INCONSISTENT_TOPIC_ID; the id identifies the topic among those of that name."""
    flat = [
        {"topic_name": "a", "partition_index": 0, "error_code": ErrorCode.KAFKA_STORAGE_ERROR},
        {"topic_name": "a", "partition_index": 1, "error_code": ErrorCode.INCONSISTENT_TOPIC_ID},
    ]
    by_topic = [{"topic_id": A_ID, "partition_errors": flat}]
    found = answer(ApiKey.LEADER_AND_ISR, version, {"partition_errors": flat} if version < 5 else {"topics": by_topic})
    request = LEAD_A.to(101)
    failed = interpret_answer(1, ApiKey.LEADER_AND_ISR, request, found).failed

    event = replicas_answered(1, request, found, Cluster(1000, 1), failed)

    refused = {A1: "INCONSISTENT_TOPIC_ID"}
    assert event == LeaderAndIsrAnswered(1, 101, (A0,), (), refused, {"a": A_ID})


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH])
def test_a_broker_that_has_a_partition_which_another_broker_refuses_is_an_event(code: ErrorCode) -> None:
    """ReplicaManager checks the topic id before the leader epoch: STALE_CONTROLLER_EPOCH means that it has the partition."""
    cluster = Cluster(1000, 1)
    apply(cluster, BrokersObserved((Broker(1, 101, ()), Broker(2, 102, ()))))
    apply(cluster, read_change(cluster, "topic a id=7 0=1,2 1=2,1"))
    cluster.refused_replicas = {int(row): {2: "INCONSISTENT_TOPIC_ID"} for row in cluster.topics["a"].rows}
    flat = [{"partition_index": 0, "error_code": code}, {"partition_index": 1, "error_code": 103}]
    found = answer(ApiKey.LEADER_AND_ISR, 7, {"topics": [{"topic_id": A_ID, "partition_errors": flat}]})
    numbers = {"partition_index": np.array([0, 1], np.int32), "leader_epoch": np.array([3, 3], np.int32)}
    request = StatesBody(ApiKey.LEADER_AND_ISR, {}, StateColumns((TopicStates("a", A_ID, 2),), numbers, {}, {})).to(101)
    failed = interpret_answer(1, ApiKey.LEADER_AND_ISR, request, found).failed

    event = replicas_answered(1, request, found, cluster, failed)

    assert event == LeaderAndIsrAnswered(1, 101, (), (), {A1: "INCONSISTENT_TOPIC_ID"}, {"a": A_ID}, (A0,))


def test_deleted_replicas_are_an_event() -> None:
    """A replica that the broker never had is deleted as well (UNKNOWN_TOPIC_OR_PARTITION)."""
    found = answer(
        ApiKey.STOP_REPLICA,
        4,
        {"partition_errors": errors((0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))},
    )

    expected = StopReplicaAnswered(3, (A0, A1), {}, {A0: 3, A1: 3})
    assert interpret_answer(3, ApiKey.STOP_REPLICA, DELETE, found).event == expected


def test_replicas_that_could_not_be_deleted_are_named_with_their_error() -> None:
    """Protocol notes, Z81: the topic stays queued until every replica answered."""
    found = answer(ApiKey.STOP_REPLICA, 4, {"partition_errors": errors((0, 56), (1, 32_000))})

    expected = StopReplicaAnswered(3, (), {A0: "KAFKA_STORAGE_ERROR", A1: "error 32000"}, {A0: 3, A1: 3})
    assert interpret_answer(3, ApiKey.STOP_REPLICA, DELETE, found).event == expected


def test_a_refusal_of_the_whole_request_refuses_every_replica() -> None:
    """Nothing was deleted."""
    found = answer(ApiKey.STOP_REPLICA, 3, {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR})

    expected = StopReplicaAnswered(3, (), dict.fromkeys((A0, A1), "UNKNOWN_SERVER_ERROR"), {A0: 3, A1: 3})
    assert interpret_answer(3, ApiKey.STOP_REPLICA, DELETE, found).event == expected


@pytest.mark.parametrize("code", [ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH])
def test_an_answer_from_a_stale_controller_or_broker_epoch_reports_no_replicas(code: int) -> None:
    """Another controller is active, or the broker has registered again: the deletion is sent again in both cases."""
    assert (
        interpret_answer(3, ApiKey.STOP_REPLICA, DELETE, answer(ApiKey.STOP_REPLICA, 4, {"error_code": code})).event
        is None
    )


def test_an_answer_to_a_stop_without_deletion_reports_no_replicas() -> None:
    """Controlled shutdown, and the first of the two StopReplica requests of a deletion."""
    request = {
        "topic_states": [{"topic_name": "a", "partition_states": [{"partition_index": 0, "delete_partition": False}]}]
    }

    assert interpret_answer(3, ApiKey.STOP_REPLICA, request, answer(ApiKey.STOP_REPLICA, 4, {})).event is None
