"""Requests to the controller as one listed node: it holds no replica and coordinates no group and no transaction."""

import pytest

from controller_core.shell.admin.handlers import handlers
from kafka_wire import ApiKey, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, call, latest

EVERY_NODE = [(ApiKey.LIST_GROUPS, version) for version in range(6)] + [
    (ApiKey.LIST_TRANSACTIONS, version) for version in range(2)
]
"""Requests that Java's Admin client sends to every node of the cluster (AllBrokersStrategy, listConsumerGroups)."""


def test_requests_to_every_node_are_answered_by_the_controller() -> None:
    """A request that clients send to every listed node must never be relayed."""
    served = handlers(lambda: None)

    for_one_node = {
        ApiKey.LIST_GROUPS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_PRODUCERS,
    }
    assert for_one_node - served.keys() == set()


@pytest.mark.parametrize(("key", "version"), EVERY_NODE)
async def test_no_groups_and_transactions_are_listed(key: ApiKey, version: int) -> None:
    """An empty list without an error in every version, also on a standby."""
    answer = await call(None, key, {}, version)

    lists = {name: value for name, value in answer.items() if isinstance(value, list)}
    assert answer["error_code"] == ErrorCode.NONE
    assert set(map(tuple, lists.values())) == {()}


async def test_unknown_transaction_states_are_returned() -> None:
    """TransactionStateManager.listTransactionStates: names of states are case-sensitive."""
    states = ["Ongoing", "PrepareEpochFence", "ongoing", "Dead", "Sleeping"]
    answer = await call(None, ApiKey.LIST_TRANSACTIONS, {"state_filters": states})

    assert answer["unknown_state_filters"] == ["ongoing", "Sleeping"]


async def test_group_filters_are_accepted() -> None:
    """KIP-518, KIP-848: filters only remove groups, so the list stays empty."""
    body = {"states_filter": ["Stable", "No such state"], "types_filter": ["consumer", "no such type"]}
    answer = await call(None, ApiKey.LIST_GROUPS, body)

    assert (answer["error_code"], answer["groups"]) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", range(1, 3))
async def test_moving_a_replica_to_a_log_directory_is_refused(version: int) -> None:
    """ReplicaManager.alterReplicaLogDirs: a broker without the directory answers LOG_DIR_NOT_FOUND."""
    dirs = [
        {"path": "/a", "topics": [{"name": "t", "partitions": [0, 1]}]},
        {"path": "/b", "topics": [{"name": "t", "partitions": [2]}, {"name": "u", "partitions": [0]}]},
    ]
    answer = await call(None, ApiKey.ALTER_REPLICA_LOG_DIRS, {"dirs": dirs}, version)

    found = {
        (topic["topic_name"], partition["partition_index"]): partition["error_code"]
        for topic in answer["results"]
        for partition in topic["partitions"]
    }
    assert found == dict.fromkeys([("t", 0), ("t", 1), ("t", 2), ("u", 0)], ErrorCode.LOG_DIR_NOT_FOUND)
    assert len(answer["results"]) == len({topic["topic_name"] for topic in answer["results"]})


async def test_no_partition_has_producers() -> None:
    """KafkaApis.handleDescribeProducersRequest, for a broker without a replica of the partition."""
    active = await active_with_topic("t", {0: (1, 2)})
    topics = [{"name": name, "partition_indexes": indexes} for name, indexes in {"t": [0, 7], "x": [0]}.items()]
    answer = await call(active, ApiKey.DESCRIBE_PRODUCERS, {"topics": topics})
    illegal = await call(active, ApiKey.DESCRIBE_PRODUCERS, {"topics": [{"name": "a b", "partition_indexes": [0]}]})
    standby = await call(None, ApiKey.DESCRIBE_PRODUCERS, {"topics": topics})

    def codes(body: dict[str, list[dict[str, list[dict[str, int]]]]]) -> list[list[int]]:
        return [[partition["error_code"] for partition in topic["partitions"]] for topic in body["topics"]]

    not_here, unknown = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer) == [[not_here, unknown], [unknown]]
    assert codes(illegal) == [[ErrorCode.INVALID_TOPIC_EXCEPTION]]
    assert codes(standby) == [[not_here, not_here], [not_here]]


@pytest.mark.parametrize("version", range(latest(ApiKey.DESCRIBE_LOG_DIRS) + 1))
async def test_standby_describes_log_directories(version: int) -> None:
    """A standby has no data, and the request is not relayed."""
    answer = await call(None, ApiKey.DESCRIBE_LOG_DIRS, {"topics": None}, version)

    assert [(result["error_code"], result["topics"]) for result in answer["results"]] == [(ErrorCode.NONE, [])]
