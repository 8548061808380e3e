"""Requests to the controller as one listed node: it holds no replica and coordinates no group and no transaction."""

import pytest

from controller_core.shell.admin.handlers import handlers
from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, ask, latest

EVERY_NODE = [(ApiKey.LIST_GROUPS, version) for version in range(6)] + [
    (ApiKey.LIST_TRANSACTIONS, version) for version in range(2)
]
"""What Java's Admin client asks of every node of the cluster (AllBrokersStrategy, listConsumerGroups)."""


def test_requests_for_every_node_are_served() -> None:
    """A request that every listed node gets must be answered by this node and never by a broker in its place."""
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
async def test_nothing_is_coordinated_here_in_every_version(key: ApiKey, version: int) -> None:
    """ListGroups, ListTransactions: an empty list without an error, also while another process is the controller."""
    answer = await ask(None, key, {}, version)

    lists = {name: value for name, value in answer.items() if isinstance(value, list)}
    assert answer["error_code"] == ErrorCode.NONE
    assert set(map(tuple, lists.values())) == {()}


async def test_unknown_states_of_transactions_are_named() -> None:
    """TransactionStateManager.listTransactionStates: names of states are case-sensitive."""
    states = ["Ongoing", "PrepareEpochFence", "ongoing", "Dead", "Sleeping"]
    answer = await ask(None, ApiKey.LIST_TRANSACTIONS, {"state_filters": states})

    assert answer["unknown_state_filters"] == ["ongoing", "Sleeping"]


async def test_the_types_and_states_of_groups_may_be_filtered() -> None:
    """KIP-518, KIP-848: filters only take away, so the list stays empty."""
    body = {"states_filter": ["Stable", "No such state"], "types_filter": ["consumer", "no such type"]}
    answer = await ask(None, ApiKey.LIST_GROUPS, body)

    assert (answer["error_code"], answer["groups"]) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", range(1, 3))
async def test_no_replica_can_be_moved_to_a_log_directory_here(version: int) -> None:
    """ReplicaManager.alterReplicaLogDirs: a broker that does not have the directory answers LOG_DIR_NOT_FOUND."""
    dirs = [
        {"path": "/a", "topics": [{"name": "t", "partitions": [0, 1]}]},
        {"path": "/b", "topics": [{"name": "t", "partitions": [2]}, {"name": "u", "partitions": [0]}]},
    ]
    answer = await ask(None, ApiKey.ALTER_REPLICA_LOG_DIRS, {"dirs": dirs}, version)

    found = {
        (topic["topic_name"], partition["partition_index"]): partition["error_code"]
        for topic in answer["results"]
        for partition in topic["partitions"]
    }
    assert found == dict.fromkeys([("t", 0), ("t", 1), ("t", 2), ("u", 0)], ErrorCode.LOG_DIR_NOT_FOUND)
    assert len(answer["results"]) == len({topic["topic_name"] for topic in answer["results"]})


async def test_no_partition_has_producers_here() -> None:
    """KafkaApis.handleDescribeProducersRequest, for a broker that has no replica of the partition."""
    active = await active_with_topic("t", {0: (1, 2)})
    topics = [{"name": name, "partition_indexes": indexes} for name, indexes in {"t": [0, 7], "x": [0]}.items()]
    answer = await ask(active, ApiKey.DESCRIBE_PRODUCERS, {"topics": topics})
    illegal = await ask(active, ApiKey.DESCRIBE_PRODUCERS, {"topics": [{"name": "a b", "partition_indexes": [0]}]})
    standby = await ask(None, ApiKey.DESCRIBE_PRODUCERS, {"topics": topics})

    def codes(body: dict[str, list[dict[str, list[dict[str, int]]]]]) -> list[list[int]]:
        return [[partition["error_code"] for partition in topic["partitions"]] for topic in body["topics"]]

    not_here, unknown = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer) == [[not_here, unknown], [unknown]]
    assert codes(illegal) == [[ErrorCode.INVALID_TOPIC_EXCEPTION]]
    assert codes(standby) == [[not_here, not_here], [not_here]]


@pytest.mark.parametrize("version", range(latest(ApiKey.DESCRIBE_LOG_DIRS) + 1))
async def test_log_directories_are_described_while_another_process_is_the_controller(version: int) -> None:
    """A standby holds no data either; no broker is asked in its place."""
    answer = await ask(None, ApiKey.DESCRIBE_LOG_DIRS, {"topics": None}, version)

    assert [(result["error_code"], result["topics"]) for result in answer["results"]] == [(ErrorCode.NONE, [])]
