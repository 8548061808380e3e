"""AlterPartition (KIP-497, KIP-704, KIP-841, KIP-903, KafkaController.alterPartitions)."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from controller_core.model import TopicPartition
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, add_topic, call, only, pick
from tests.controller_core.shell.admin.fake_active import FakeActive, broker

VERSIONS = [0, 1, 2, 3]
P0 = TopicPartition("a", 0)


async def active() -> FakeActive:
    """Topic a on brokers 1 and 2, led by 1, both in sync."""
    return await active_with_topic("a", {0: (1, 2), 1: (1, 2)})


def isr_change(
    version: int, isr: list[int], *, partition: int = 0, epochs: dict[int, int] | None = None, **others: Any
) -> Body:
    """Return the ISR change of one partition, in the format of the version."""
    body: Body = {"partition_index": partition, "leader_epoch": 0, "partition_epoch": 0, **others}
    if version < 3:
        return {**body, "new_isr": isr}
    members = [{"broker_id": broker, "broker_epoch": (epochs or {}).get(broker, -1)} for broker in isr]
    return {**body, "new_isr_with_epochs": members}


def request(active: FakeActive, version: int, *changes: Body, broker_id: int = 1, broker_epoch: int = 101) -> Body:
    """Return a request of broker 1 for topic a, in the format of the version."""
    topic = {"topic_name": "a"} if version < 2 else {"topic_id": active.cluster.topics["a"].topic_id}
    return {
        "broker_id": broker_id,
        "broker_epoch": broker_epoch,
        "topics": [{**topic, "partitions": list(changes)}],
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_isr_shrinks(version: int) -> None:
    """The answer is the new state with the next partition epoch; topics are identified as in the request."""
    started = await active()

    response = await call(started, ApiKey.ALTER_PARTITION, request(started, version, isr_change(version, [1])), version)

    assert response["error_code"] == ErrorCode.NONE
    topic = only(response, "topics")
    expected = ("a", UUID(int=0)) if version < 2 else ("", started.cluster.topics["a"].topic_id)
    assert (topic["topic_name"], topic["topic_id"]) == expected
    assert only(topic, "partitions") == {
        "partition_index": 0,
        "error_code": ErrorCode.NONE,
        "leader_id": 1,
        "leader_epoch": 0,
        "isr": [1],
        "leader_recovery_state": 0,
        "partition_epoch": 1,
    }
    assert started.cluster.columns.isr_of(started.row(P0)) == (1,)


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_leader_recovery_state_is_returned(version: int) -> None:
    """LeaderRecoveryState is the requested one (KIP-704); version 0 has no field for it."""
    started = await active()
    started.cluster.columns.recovering[started.row(P0)] = True
    requested = request(started, version, isr_change(version, [1], leader_recovery_state=1))

    response = await call(started, ApiKey.ALTER_PARTITION, requested, version)

    assert only(response, "topics", "partitions")["leader_recovery_state"] == 1


@pytest.mark.parametrize(
    ("others", "code"),
    [
        ({"leader_epoch": 4}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_invalid_isr_change_does_not_affect_other_partitions(others: dict[str, Any], code: ErrorCode) -> None:
    """The refused partition has an error and no state."""
    started = await active()
    bad: dict[str, Any] = {"partition": 1, **others}
    requested = request(started, 3, isr_change(3, [1], **bad), isr_change(3, [1]))

    partitions = only(await call(started, ApiKey.ALTER_PARTITION, requested), "topics")["partitions"]

    assert [(partition["partition_index"], partition["error_code"]) for partition in partitions] == [
        (bad["partition"], code),
        (0, ErrorCode.NONE),
    ]


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (0, ErrorCode.OPERATION_NOT_ATTEMPTED),
        (1, ErrorCode.OPERATION_NOT_ATTEMPTED),
        (2, ErrorCode.INELIGIBLE_REPLICA),
        (3, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
async def test_offline_replica_does_not_join_isr(version: int, code: ErrorCode) -> None:
    """KIP-841; versions 0 and 1 have another error code."""
    started = await active()
    started.sync(P0, (1,))
    started.brokers_are(broker(1))
    requested = request(started, version, isr_change(version, [1, 2], partition_epoch=1))

    response = await call(started, ApiKey.ALTER_PARTITION, requested, version)

    assert code == only(response, "topics", "partitions")["error_code"]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (102, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
        (77, ErrorCode.INELIGIBLE_REPLICA),
        (300, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
async def test_replica_joins_isr_only_with_registered_broker_epoch(epoch: int, code: ErrorCode) -> None:
    """KIP-903: a restarted follower may have lost records; -1 matches any epoch (brokers in ZooKeeper mode)."""
    started = await active()
    started.sync(P0, (1,))
    requested = request(started, 3, isr_change(3, [1, 2], partition_epoch=1, epochs={1: 101, 2: epoch}))

    response = await call(started, ApiKey.ALTER_PARTITION, requested)

    assert code == only(response, "topics", "partitions")["error_code"]
    expected = (1, 2) if code == ErrorCode.NONE else (1,)
    assert started.cluster.columns.isr_of(started.row(P0)) == expected


@pytest.mark.parametrize("version", [2, 3])
async def test_unknown_topic_id_is_answered_for_each_partition(version: int) -> None:
    """UNKNOWN_TOPIC_ID with the id; other topics of the request are processed."""
    started = await active()
    unknown = uuid4()
    requested = request(started, version, isr_change(version, [1]))
    requested["topics"].insert(
        0, {"topic_id": unknown, "partitions": [isr_change(version, [1]), isr_change(version, [1], partition=1)]}
    )

    response = await call(started, ApiKey.ALTER_PARTITION, requested, version)

    first, second = response["topics"]
    assert unknown == first["topic_id"]
    assert [partition["error_code"] for partition in first["partitions"]] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2
    assert only(second, "partitions")["error_code"] == ErrorCode.NONE


@pytest.mark.parametrize(("broker_id", "broker_epoch"), [(1, 5), (9, 109)])
async def test_stale_or_unknown_broker_gets_top_level_error(broker_id: int, broker_epoch: int) -> None:
    """STALE_BROKER_EPOCH (KIP-380)."""
    started = await active()
    requested = request(started, 3, isr_change(3, [1]), broker_id=broker_id, broker_epoch=broker_epoch)

    response = await call(started, ApiKey.ALTER_PARTITION, requested)

    assert pick(response, "error_code", "topics") == {"error_code": ErrorCode.STALE_BROKER_EPOCH, "topics": []}


async def test_last_of_two_changes_for_a_partition_is_used() -> None:
    """KafkaController collects them in a map; a decision writes a row once."""
    started = await active()
    requested = request(started, 3, isr_change(3, [1, 2]), isr_change(3, [1]))

    response = await call(started, ApiKey.ALTER_PARTITION, requested)

    assert [partition["isr"] for partition in only(response, "topics")["partitions"]] == [[1], [1]]
    assert started.cluster.columns.isr_of(started.row(P0)) == (1,)


async def test_topics_are_answered_in_request_order() -> None:
    """Each with its partitions."""
    started = await active()
    await add_topic(started, "b", {0: (1, 2)})
    requested = request(started, 1, isr_change(1, [1]))
    requested["topics"].append({"topic_name": "b", "partitions": [isr_change(1, [1])]})

    response = await call(started, ApiKey.ALTER_PARTITION, requested, 1)

    assert [topic["topic_name"] for topic in response["topics"]] == ["a", "b"]


async def test_standby_answers_not_controller() -> None:
    """As a top-level error, after which the broker looks up the controller (KafkaApis.handleAlterPartitionRequest)."""
    response = await call(None, ApiKey.ALTER_PARTITION, {"broker_id": 1})

    assert pick(response, "error_code", "topics") == {"error_code": ErrorCode.NOT_CONTROLLER, "topics": []}
