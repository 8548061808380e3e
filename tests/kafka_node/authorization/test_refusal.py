"""Refusals in every version of every API, readable by Kafka's clients."""

from typing import Any

import pytest

from controller_core.zookeeper_mode.required_rights import NEEDS
from kafka_node.authorization.refusal import refusal
from kafka_node.authorization.table import OPEN
from kafka_wire import ApiKey, Body, ErrorCode, Failure, codec
from tests.cases import case
from tests.kafka_node.authorization.samples import by_name, sample, versions_of

NO = Failure(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")
SILENT = {(ApiKey.DESCRIBE_LOG_DIRS, version) for version in range(3)}
"""Versions where an empty list of directories means a refusal."""
JUDGED = [key for key, row in NEEDS.items() if row != OPEN]


def codes(value: Any) -> list[int]:
    """List every error code in a response."""
    if isinstance(value, dict):
        own = [
            element for key, element in value.items() if key.endswith("error_code") and not isinstance(element, list)
        ]
        return own + [code for element in value.values() for code in codes(element)]
    return [code for element in value for code in codes(element)] if isinstance(value, list) else []


def refused(key: ApiKey, version: int, body: Body | None = None) -> Body:
    """Refuse a request; the response is encoded and decoded."""
    answer = refusal(key, version, sample(key, version) if body is None else body, NO)
    name = key.message + "Response"
    return codec.decode(name, version, codec.encode(name, version, answer))


@pytest.mark.parametrize("key", JUDGED, ids=by_name)
def test_refusal_has_an_error_code_in_every_version(key: ApiKey) -> None:
    """And can be encoded."""
    for version in versions_of(key):
        with case(key.message, version):
            answer = refused(key, version)

            assert (int(NO.code) in codes(answer)) is ((key, version) not in SILENT)


def test_refused_elements_have_their_names() -> None:
    """As in AbstractRequest.getErrorResponse of each API."""
    produce = refused(ApiKey.PRODUCE, 9)
    assert (produce["responses"][0]["name"], produce["responses"][0]["partition_responses"][0]["index"]) == ("x", 1)
    topics = refused(ApiKey.LIST_OFFSETS, 7)["topics"]
    (partition,) = topics[0]["partitions"]
    assert (topics[0]["name"], partition["partition_index"], partition["error_code"]) == ("x", 1, NO.code)
    assert refused(ApiKey.DESCRIBE_GROUPS, 5)["groups"][0]["group_id"] == "x"
    assert refused(ApiKey.DELETE_GROUPS, 2)["results"][0]["group_id"] == "x"
    assert refused(ApiKey.FIND_COORDINATOR, 4)["coordinators"][0]["key"] == "x"
    assert refused(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0)["results"][0]["user"] == "x"
    quota = refused(ApiKey.ALTER_CLIENT_QUOTAS, 1)["entries"][0]
    assert quota["entity"] == [{"entity_type": "x", "entity_name": "x"}]
    moved = refused(ApiKey.ALTER_REPLICA_LOG_DIRS, 2)["results"][0]
    assert (moved["topic_name"], moved["partitions"][0]["partition_index"]) == ("x", 1)
    config = refused(ApiKey.DESCRIBE_CONFIGS, 4)["results"][0]
    assert (config["resource_type"], config["resource_name"], config["error_message"]) == (1, "x", "no")


def test_refused_election_lists_its_partitions() -> None:
    """Version 0 has no error code at the top; a request without partitions gets an empty response."""
    result = refused(ApiKey.ELECT_LEADERS, 0)["replica_election_results"][0]
    assert (result["topic"], result["partition_result"][0]["partition_id"]) == ("x", 1)
    everything = {**sample(ApiKey.ELECT_LEADERS, 0), "topic_partitions": None}
    assert refused(ApiKey.ELECT_LEADERS, 0, everything)["replica_election_results"] == []
