"""Requests whose answer follows from there being one node. Kafka 4.3 is the judge of their codes in `test_same_answers_as_kafka`."""

from uuid import UUID

import pytest

from kafka_wire import ErrorCode
from light_broker.control.standalone.one_node import (
    alter_reassignments,
    describe_client_quotas,
    elect_leaders,
    update_features,
)
from light_broker.control.standalone.state import State, TopicState

STATE = State("cluster", 1, topics={"orders": TopicState(UUID(int=1), partitions=2, created_at=0)})


@pytest.mark.parametrize(
    ("partition", "replicas", "expected"),
    [
        (0, [1], (ErrorCode.NONE, None)),
        (
            0,
            [2],
            (
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes broker 2, but no such broker is registered.",
            ),
        ),
        (0, None, (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS.message)),
        (2, [1], (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition orders:2.")),
    ],
)
def test_a_partition_may_only_be_assigned_to_the_node_that_has_it(
    partition: int, replicas: list[int] | None, expected: tuple[ErrorCode, str | None]
) -> None:
    """ReplicationControlManager.alterPartitionReassignments (KIP-455)."""
    parts = [{"partition_index": partition, "replicas": replicas}]
    body = {"topics": [{"name": "orders", "partitions": parts}], "allow_replication_factor_change": True}

    ((found,),) = (response["partitions"] for response in alter_reassignments(STATE, body)["responses"])

    assert (found["error_code"], found["error_message"]) == expected


def test_a_feature_is_refused_with_its_name() -> None:
    """FeatureControlManager.updateFeature (KIP-584)."""
    answer = update_features(STATE, {"feature_updates": [{"feature": "metadata.version", "max_version_level": 29}]})

    assert answer == {
        "error_code": ErrorCode.INVALID_UPDATE_VERSION,
        "error_message": "The update failed for all features since the following feature had an error: "
        "Invalid update version 29 for feature metadata.version. Local controller 1 does not support this feature.",
        "results": [],
    }


def test_no_entity_has_a_quota() -> None:
    """The broker enforces none (KIP-546)."""
    assert describe_client_quotas()["entries"] == []


def test_no_partition_needs_an_election() -> None:
    """Its only replica leads it (KIP-460)."""
    body = {"topic_partitions": [{"topic": "orders", "partitions": [0, 5]}]}

    (found,) = elect_leaders(STATE, body)["replica_election_results"]

    assert [result["error_code"] for result in found["partition_result"]] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
