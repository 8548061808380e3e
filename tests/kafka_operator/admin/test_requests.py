"""Admin requests and responses: requests can be encoded in the versions of all brokers, and responses are read."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka_operator.admin import requests
from kafka_operator.admin.cluster_metrics import query_cluster_metrics
from kafka_operator.admin.connection import VERSIONS, Connection, decoder
from kafka_operator.admin.health import query_health
from kafka_operator.decide.elections.election import Elect
from kafka_operator.decide.kafka.observed import ConfigValue, Failure, KafkaTopic, Move
from kafka_operator.decide.steps import AlterConfig, CreateTopic, GrowTopic
from kafka_operator.resources.election import ElectionType
from kafka_operator.resources.reassignment import Partition
from kafka_wire import ApiKey, Body, codec
from kafka_wire.net.cluster import METADATA_VERSIONS, ClusterClient, NoController
from tests.kafka_operator.fake_connection import encode_answer

P0 = Partition("orders", 0)

BUILT = {
    "metadata": (requests.metadata_request(["orders"]), (4, 12)),
    "create": (requests.create_topics_request([CreateTopic("orders", 6, 3, (("a", "1"),))], 1000), (2, 7)),
    "grow": (requests.create_partitions_request([GrowTopic("orders", 8)], 1000), (0, 3)),
    "delete": (requests.delete_topics_request(["orders"], 1000), (1, 5)),
    "alter": (requests.alter_configs_request([AlterConfig("orders", (("a", "1"),), ("b",))]), (0, 1)),
    "describe": (requests.describe_configs_request(requests.TOPIC, {"orders": frozenset({"a"})}), (1, 4)),
    "describe all": (requests.describe_configs_request(requests.TOPIC, {"orders": None}), (1, 4)),
    "list": (requests.list_reassignments_request(1000), (0, 0)),
    "elect": (requests.elect_leaders_request(Elect(ElectionType.UNCLEAN, (P0,)), 1000), (1, 2)),
    "reassign": (requests.alter_reassignments_request({P0: (2, 3), Partition("orders", 1): None}, 1000), (0, 0)),
}


@pytest.mark.parametrize("name", BUILT)
def test_a_request_can_be_encoded_in_the_versions_that_brokers_speak(name: str) -> None:
    """Lowest and highest that Kafka 2.4 to 4.x answer."""
    request, versions = BUILT[name]

    for version in versions:
        assert codec.encode_request(request.key, version, 0, None, request.body)


def test_a_question_is_sent_as_one() -> None:
    """Nothing is done by a request whose validate_only is set; without a word it is an order."""
    create, grow, alter = CreateTopic("t", 1, 1, ()), GrowTopic("t", 2), AlterConfig("t", (("a", "1"),), ())
    for built in (
        lambda asks: requests.create_topics_request([create], 1000, **asks),
        lambda asks: requests.create_partitions_request([grow], 1000, **asks),
        lambda asks: requests.alter_configs_request([alter], **asks),
    ):
        assert built({"validate_only": True}).body["validate_only"]
        assert not built({}).body["validate_only"]


def answer(**fields: Any) -> Body:
    """A part of a response's body."""
    return fields


def test_topics_are_read_and_missing_ones_left_out() -> None:
    """UNKNOWN_TOPIC_OR_PARTITION is no failure but an absence."""
    partitions = [
        answer(partition_index=1, leader_id=-1, replica_nodes=[2, 3], isr_nodes=[2]),
        answer(partition_index=0, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1, 2]),
    ]
    topic_id = uuid.UUID(int=5)
    found = requests.topics_of(
        answer(
            topics=[
                answer(error_code=0, name="orders", topic_id=topic_id, partitions=partitions),
                answer(error_code=3, name="nope", topic_id=uuid.UUID(int=0), partitions=[]),
                answer(error_code=29, name="secret", topic_id=uuid.UUID(int=0), partitions=[]),
                answer(error_code=0, name="old", topic_id=uuid.UUID(int=0), partitions=[]),
            ]
        )
    )

    assert found.keys() == {"orders", "secret", "old"}
    orders, old, secret = found["orders"], found["old"], found["secret"]
    assert isinstance(orders, KafkaTopic)
    assert (str(topic_id), (0, 1), (1,)) == (
        orders.topic_id,
        tuple(partition.index for partition in orders.partitions),
        orders.leaderless,
    )
    assert isinstance(old, KafkaTopic)
    assert old.topic_id is None
    assert isinstance(secret, Failure)
    assert (secret.code, secret.name) == (29, "TOPIC_AUTHORIZATION_FAILED")


def test_a_topic_reported_only_as_leaderless_does_not_count_as_one_without_partitions() -> None:
    """A controller that is starting reports it for every topic, and brokers for one that is being created: the partitions are unknown.

    Otherwise partitions would be added to an existing topic, and its known state be lost.
    """
    leaderless = answer(partition_index=0, leader_id=-1, replica_nodes=[1], isr_nodes=[1])
    response = answer(
        error_code=0,
        brokers=[],
        topics=[
            answer(error_code=5, name="unknown", topic_id=uuid.UUID(int=0), partitions=[]),
            answer(error_code=5, name="dark", topic_id=uuid.UUID(int=0), partitions=[leaderless]),
        ],
    )
    found = requests.topics_of(response)

    assert isinstance(found["unknown"], Failure)
    assert isinstance(found["dark"], KafkaTopic)
    assert requests.codes_of_metadata(response) == (41,)
    assert requests.codes_of_metadata(answer(error_code=0, brokers=[answer(node_id=1)])) == (0,)


@pytest.mark.parametrize(
    "query",
    [
        query_cluster_metrics,
        lambda connection: query_health(connection, {}),
        lambda connection: connection.topics(["a"]),
    ],
    ids=["numbers", "replicas before a broker is stopped", "topics"],
)
async def test_a_response_without_nodes_is_not_an_empty_cluster(
    query: Callable[[Connection], Awaitable[object]],
) -> None:
    """Otherwise any broker could be stopped, and none would hold any data: a controller that is starting answers so."""

    class Starting(ClusterClient):
        def __init__(self) -> None:
            """Have no connections."""

        async def call_controller(  # type: ignore[override]
            self, key: ApiKey, _body: Body, decode: Any, codes_of: Any, *, deadline: float, versions: tuple[int, int]
        ) -> Any:
            assert (key, deadline, versions[0]) == (ApiKey.METADATA, 9.0, METADATA_VERSIONS[0])
            frame = encode_answer(key, 12, {"brokers": [], "topics": [], "controller_id": -1})
            if 41 in codes_of(await decode(12, frame)):
                raise NoController("starting")

    with pytest.raises(NoController):
        await query(Connection(Starting(), 9.0))


async def test_large_responses_are_decoded_as_small_ones_are() -> None:
    """By a thread, so that the event loop is not blocked."""
    topics = [{"name": f"topic-{number}", "error_code": 0} for number in range(10_000)]
    small, large = (encode_answer(ApiKey.CREATE_TOPICS, 5, {"topics": some}) for some in (topics[:10], topics))
    decode = decoder(ApiKey.CREATE_TOPICS)

    assert [topic["name"] for topic in (await decode(5, small))["topics"]] == [topic["name"] for topic in topics[:10]]
    assert [topic["name"] for topic in (await decode(5, large))["topics"]] == [topic["name"] for topic in topics]


def test_versions_are_limited_to_those_with_the_fields_that_are_used() -> None:
    """DescribeConfigs has the source of a setting since version 1, Metadata does not create topics since version 4."""
    assert VERSIONS[ApiKey.DESCRIBE_CONFIGS][0] == 1
    assert VERSIONS[ApiKey.METADATA][0] == 4


def test_only_settings_of_the_topic_itself_are_read() -> None:
    """Defaults of the broker and the cluster are not set on the topic."""
    configs = [
        answer(name="retention.ms", value="5", config_source=1, config_type=5),
        answer(name="cleanup.policy", value="delete", config_source=5, config_type=7),
    ]
    found = requests.configs_of(
        answer(
            results=[
                answer(resource_name="orders", error_code=0, error_message=None, configs=configs),
                answer(resource_name="nope", error_code=3, error_message="no", configs=[]),
                answer(resource_name="bare", error_code=0, error_message=None, configs=[]),
            ]
        )
    )

    assert found["orders"] == {"retention.ms": ConfigValue("5", "LONG")}
    assert found["nope"] == Failure(3, "UNKNOWN_TOPIC_OR_PARTITION", "no")
    assert found["bare"] == {}


def test_moves_and_refusals_are_read() -> None:
    """The target is what remains without the replicas that are removed."""
    moving = answer(partition_index=0, replicas=[2, 3, 1], adding_replicas=[3], removing_replicas=[1])
    moves = requests.moves_of(answer(topics=[answer(name="orders", partitions=[moving])]))
    refused = requests.refused_partitions(
        answer(
            responses=[
                answer(
                    name="orders",
                    partitions=[
                        answer(partition_index=0, error_code=0, error_message=None),
                        answer(partition_index=1, error_code=85, error_message=None),
                    ],
                )
            ]
        )
    )

    assert moves == {P0: Move((2, 3, 1), (3,), (1,))}
    assert moves[P0].target == (2, 3)
    assert list(refused) == [Partition("orders", 1)]


def test_a_code_that_is_not_known_keeps_its_number() -> None:
    """A newer broker than our client."""
    failure = requests.failure_of(12345, "words")

    assert failure is not None
    assert (failure.code, failure.message) == (12345, "words")
    assert requests.failure_of(0) is None
