"""AlterPartition (KIP-497, KIP-704, KIP-841, KIP-903, KafkaController.alterPartitions)."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from controller_core.model.ids import TopicPartition
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, add_topic, ask, only, pick
from tests.controller_core.shell.admin.fake_active import FakeActive, broker

VERSIONS = [0, 1, 2, 3]
P0 = TopicPartition("a", 0)


async def active() -> FakeActive:
    """Topic a on brokers 1 and 2, led by 1, both in sync."""
    return await active_with_topic("a", {0: (1, 2), 1: (1, 2)})


def wish(
    version: int, isr: list[int], *, partition: int = 0, epochs: dict[int, int] | None = None, **others: Any
) -> Body:
    """One partition's wish, as the version writes it."""
    body: Body = {"partition_index": partition, "leader_epoch": 0, "partition_epoch": 0, **others}
    if version < 3:
        return {**body, "new_isr": isr}
    lives = [{"broker_id": one, "broker_epoch": (epochs or {}).get(one, -1)} for one in isr]
    return {**body, "new_isr_with_epochs": lives}


def asking(active: FakeActive, version: int, *wishes: Body, broker_id: int = 1, broker_epoch: int = 101) -> Body:
    """A request of broker 1 for topic a, as the version writes it."""
    topic = {"topic_name": "a"} if version < 2 else {"topic_id": active.cluster.topics["a"].topic_id}
    return {
        "broker_id": broker_id,
        "broker_epoch": broker_epoch,
        "topics": [{**topic, "partitions": list(wishes)}],
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_isr_shrinks(version: int) -> None:
    """The answer is the new state, under the next partition epoch; topics are named as the request names them."""
    started = await active()

    response = await ask(started, ApiKey.ALTER_PARTITION, asking(started, version, wish(version, [1])), version)

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
async def test_a_recovering_leader_is_answered_as_recovering(version: int) -> None:
    """LeaderRecoveryState is the one that was asked for (KIP-704); version 0 has no field for it."""
    started = await active()
    started.cluster.columns.recovering[started.row(P0)] = True
    asked = asking(started, version, wish(version, [1], leader_recovery_state=1))

    response = await ask(started, ApiKey.ALTER_PARTITION, asked, version)

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
async def test_a_wish_that_does_not_stand_is_refused_and_the_others_are_written(
    others: dict[str, Any], code: ErrorCode
) -> None:
    """Each partition stands on its own; a refused one has an error and nothing else."""
    started = await active()
    bad: dict[str, Any] = {"partition": 1, **others}
    asked = asking(started, 3, wish(3, [1], **bad), wish(3, [1]))

    partitions = only(await ask(started, ApiKey.ALTER_PARTITION, asked), "topics")["partitions"]

    assert [(one["partition_index"], one["error_code"]) for one in partitions] == [
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
async def test_a_replica_that_is_away_does_not_join(version: int, code: ErrorCode) -> None:
    """KIP-841; versions 0 and 1 do not know the code."""
    started = await active()
    started.sync(P0, (1,))
    started.brokers_are(broker(1))
    asked = asking(started, version, wish(version, [1, 2], partition_epoch=1))

    response = await ask(started, ApiKey.ALTER_PARTITION, asked, version)

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
async def test_a_replica_joins_in_the_life_that_the_leader_knows(epoch: int, code: ErrorCode) -> None:
    """KIP-903: a restarted follower may have lost what made it fit; -1 is any life (brokers in ZooKeeper mode)."""
    started = await active()
    started.sync(P0, (1,))
    asked = asking(started, 3, wish(3, [1, 2], partition_epoch=1, epochs={1: 101, 2: epoch}))

    response = await ask(started, ApiKey.ALTER_PARTITION, asked)

    assert code == only(response, "topics", "partitions")["error_code"]
    expected = (1, 2) if code == ErrorCode.NONE else (1,)
    assert started.cluster.columns.isr_of(started.row(P0)) == expected


@pytest.mark.parametrize("version", [2, 3])
async def test_an_unknown_id_is_answered_for_each_partition(version: int) -> None:
    """UNKNOWN_TOPIC_ID with the id; the request's other topics are decided."""
    started = await active()
    unknown = uuid4()
    asked = asking(started, version, wish(version, [1]))
    asked["topics"].insert(
        0, {"topic_id": unknown, "partitions": [wish(version, [1]), wish(version, [1], partition=1)]}
    )

    response = await ask(started, ApiKey.ALTER_PARTITION, asked, version)

    first, second = response["topics"]
    assert unknown == first["topic_id"]
    assert [one["error_code"] for one in first["partitions"]] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2
    assert only(second, "partitions")["error_code"] == ErrorCode.NONE


@pytest.mark.parametrize(("broker_id", "broker_epoch"), [(1, 5), (9, 109)])
async def test_a_stale_or_unknown_broker_is_refused_at_the_top(broker_id: int, broker_epoch: int) -> None:
    """STALE_BROKER_EPOCH (KIP-380)."""
    started = await active()
    asked = asking(started, 3, wish(3, [1]), broker_id=broker_id, broker_epoch=broker_epoch)

    response = await ask(started, ApiKey.ALTER_PARTITION, asked)

    assert pick(response, "error_code", "topics") == {"error_code": ErrorCode.STALE_BROKER_EPOCH, "topics": []}


async def test_of_two_wishes_for_one_partition_the_last_counts() -> None:
    """KafkaController collects them in a map; a row is written once in a decision."""
    started = await active()
    asked = asking(started, 3, wish(3, [1, 2]), wish(3, [1]))

    response = await ask(started, ApiKey.ALTER_PARTITION, asked)

    assert [one["isr"] for one in only(response, "topics")["partitions"]] == [[1], [1]]
    assert started.cluster.columns.isr_of(started.row(P0)) == (1,)


async def test_several_topics_are_answered_in_their_order() -> None:
    """Each with its own partitions."""
    started = await active()
    await add_topic(started, "b", {0: (1, 2)})
    asked = asking(started, 1, wish(1, [1]))
    asked["topics"].append({"topic_name": "b", "partitions": [wish(1, [1])]})

    response = await ask(started, ApiKey.ALTER_PARTITION, asked, 1)

    assert [topic["topic_name"] for topic in response["topics"]] == ["a", "b"]


async def test_without_a_tenure_it_is_said_at_the_top() -> None:
    """The broker then looks for the controller anew (KafkaApis.handleAlterPartitionRequest)."""
    response = await ask(None, ApiKey.ALTER_PARTITION, {"broker_id": 1})

    assert pick(response, "error_code", "topics") == {"error_code": ErrorCode.NOT_CONTROLLER, "topics": []}
