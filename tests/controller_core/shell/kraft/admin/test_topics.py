"""Requests about topics and configs to the active controller, on a quorum in memory."""

import logging
from functools import partial
from random import Random
from typing import Any

import pytest

from controller_core.metadata.quota_changes import QuotaAlteration, alter_client_quotas
from controller_core.model.quota import QuotaChange, QuotaEntity
from controller_core.rules.mutation_quota import QUOTA
from controller_core.shell.kraft.admin.configs import ConfigApis
from controller_core.shell.kraft.admin.topics_table import SERVED, topic_handlers
from kafka_metadata.records import ResourceType
from kafka_node.authorization.acl import Operation
from kafka_node.configs.described_configs import ConfigSource
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from tests.controller_core.shell.kraft.memory_quorum import Member

RANDOM = Random(1)
"""Each topic gets an id of its own."""

FILE = Settings(101, {"node.id": "101", "log.retention.hours": "2", "ssl.key.password": "secret"})
"""The properties file of the controller."""

CREATE = {"topics": [{"name": "orders", "num_partitions": 3, "replication_factor": 1}], "timeout_ms": 1000}


@pytest.fixture
async def active(active: Member) -> Member:
    """The active controller of a cluster with one broker in service."""
    await active.start_broker(1)
    return active


async def send(member: Member, key: ApiKey, request: Body) -> Any:
    """Send a request through the codec in the highest served version, and return the decoded response."""
    version = SERVED[key].highest
    body = codec.decode(f"{key.message}Request", version, codec.encode(f"{key.message}Request", version, request))
    context = RequestContext("CONTROLLER", "app", "127.0.0.1", 1, version, "User:alice")
    response = await topic_handlers(member.controller, None, RANDOM, FILE)[key](context, body)
    assert isinstance(response, dict)
    return codec.decode(f"{key.message}Response", version, codec.encode(f"{key.message}Response", version, response))


async def test_topics_are_created_changed_and_deleted(active: Member) -> None:
    """Each answer is about what is committed (ControllerApis)."""
    created, again = await send(active, ApiKey.CREATE_TOPICS, CREATE), await send(active, ApiKey.CREATE_TOPICS, CREATE)
    grown = await send(
        active,
        ApiKey.CREATE_PARTITIONS,
        {"topics": [{"name": "orders", "count": 5, "assignments": None}], "timeout_ms": 1000},
    )
    count = len(active.controller.cluster.topics["orders"].rows)
    deleted = await send(active, ApiKey.DELETE_TOPICS, {"topics": [{"name": "orders"}], "timeout_ms": 1000})

    assert (created["topics"][0]["error_code"], created["topics"][0]["num_partitions"]) == (ErrorCode.NONE, 3)
    assert again["topics"][0]["error_code"] == ErrorCode.TOPIC_ALREADY_EXISTS
    assert (grown["results"][0]["error_code"], count) == (ErrorCode.NONE, 5)
    assert deleted["responses"][0]["error_code"] == ErrorCode.NONE
    assert active.controller.committed_image.topic("orders") is None


async def test_a_created_topic_is_answered_with_the_configs_of_kafka_4(active: Member) -> None:
    """KIP-525: all names of Kafka 4.3's table; a value is the topic's, else that of the controller's file, else Kafka's default."""
    topic = {**CREATE["topics"][0], "configs": [{"name": "cleanup.policy", "value": "compact"}]}
    answer = await send(active, ApiKey.CREATE_TOPICS, {**CREATE, "topics": [topic]})

    found = {config["name"]: (config["value"], config["config_source"]) for config in answer["topics"][0]["configs"]}
    assert list(found) == list(TOPIC_CONFIGS)
    assert found["cleanup.policy"] == ("compact", ConfigSource.TOPIC)
    assert found["retention.ms"] == ("7200000", ConfigSource.STATIC_BROKER)
    assert found["segment.bytes"] == ("1073741824", ConfigSource.DEFAULT)


async def test_configs_of_kafka_4_are_changed_and_validated(active: Member) -> None:
    """The table of Kafka 4.3 has no message.format.version; a resource that is refused leaves the others."""
    await send(active, ApiKey.CREATE_TOPICS, CREATE)
    operations = [{"name": "retention.ms", "config_operation": 0, "value": "5"}]
    old = [{"name": "message.format.version", "config_operation": 0, "value": "2.8"}]
    resources = [
        {"resource_type": ResourceType.TOPIC, "resource_name": "orders", "configs": operations},
        {"resource_type": ResourceType.TOPIC, "resource_name": "none", "configs": operations},
        {"resource_type": ResourceType.BROKER, "resource_name": "1", "configs": []},
    ]
    altered = await send(active, ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": resources, "validate_only": False})
    refused = await send(
        active,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        {"resources": [{**resources[0], "configs": old}], "validate_only": False},
    )

    codes = [response["error_code"] for response in altered["responses"]]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert refused["responses"][0]["error_code"] == ErrorCode.INVALID_CONFIG
    assert active.controller.committed_image.config_values(ResourceType.TOPIC, "orders") == {"retention.ms": "5"}


async def test_types_of_resources_without_configs_here_are_refused(active: Member) -> None:
    """ControllerApis.handleLegacyAlterConfigs; levels of loggers are changed only by the newer API."""
    names = (ResourceType.BROKER_LOGGER, "101"), (3, "q"), (ResourceType.BROKER, "1"), (ResourceType.BROKER, "1")
    resources = [{"resource_type": kind, "resource_name": name, "configs": []} for kind, name in names]
    altered = await send(active, ApiKey.ALTER_CONFIGS, {"resources": resources, "validate_only": False})

    assert [(response["error_code"], response["error_message"]) for response in altered["responses"]] == [
        (ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER."),
        (ErrorCode.UNSUPPORTED_VERSION, "Unknown resource type 3."),
        (ErrorCode.INVALID_REQUEST, "Duplicate resource."),
        (ErrorCode.INVALID_REQUEST, "Duplicate resource."),
    ]


LEVEL = {"name": "levels.of.a.controller", "config_operation": 0, "value": "ERROR"}
LOGGERS = {"resource_type": ResourceType.BROKER_LOGGER, "resource_name": "101", "configs": [LEVEL]}


async def test_levels_of_loggers_are_changed_at_each_controller_and_listed(active: Member) -> None:
    """ControllerApis.handleIncrementalAlterConfigs: a standby changes its own, and leaves the rest to the active controller."""
    logging.getLogger(LEVEL["name"])
    active.log.elect(None)
    altered = await send(active, ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [LOGGERS], "validate_only": False})
    asked = {"resource_type": ResourceType.BROKER_LOGGER, "resource_name": "101", "configuration_keys": [LEVEL["name"]]}
    described = await send(active, ApiKey.DESCRIBE_CONFIGS, {"resources": [asked]})

    assert [response["error_code"] for response in altered["responses"]] == [ErrorCode.NONE]
    (config,) = described["results"][0]["configs"]
    assert (config["value"], config["config_source"]) == ("ERROR", ConfigSource.DYNAMIC_BROKER_LOGGER)
    assert (config["read_only"], config["is_sensitive"], config["config_type"]) == (False, False, 0)


async def test_loggers_and_other_resources_of_a_request_are_both_answered(active: Member) -> None:
    """The loggers of a request come last, as in Kafka."""
    await send(active, ApiKey.CREATE_TOPICS, CREATE)
    topic = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "configs": [{"name": "retention.ms", "config_operation": 0, "value": "5"}],
    }
    refused = {**LOGGERS, "resource_name": "7"}
    body = {"resources": [refused, topic], "validate_only": False}
    altered = await send(active, ApiKey.INCREMENTAL_ALTER_CONFIGS, body)

    assert [(response["resource_type"], response["error_code"]) for response in altered["responses"]] == [
        (ResourceType.TOPIC, ErrorCode.NONE),
        (ResourceType.BROKER_LOGGER, ErrorCode.INVALID_REQUEST),
    ]
    assert active.controller.committed_image.config_values(ResourceType.TOPIC, "orders") == {"retention.ms": "5"}


async def test_levels_of_loggers_need_cluster_action(active: Member) -> None:
    """ControllerApis.handleIncrementalAlterConfigs authorizes loggers as requests of nodes."""
    asked: list[Operation] = []

    def ask(operation: Operation, *_: object, **__: object) -> bool:
        asked.append(operation)
        return False

    context = RequestContext("CONTROLLER", "app", "127.0.0.1", 1, 1, "User:alice")
    configs = ConfigApis(active.controller, FILE, lambda _: ask)
    answer = await configs.alter_incrementally(context, {"resources": [LOGGERS], "validate_only": False})

    assert [response["error_code"] for response in answer["responses"]] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert asked == [Operation.CLUSTER_ACTION]


async def test_a_standby_answers_not_controller(active: Member) -> None:
    """NOT_CONTROLLER for every topic and resource: the client finds the active controller."""
    active.log.elect(None)
    resource = {"resource_type": ResourceType.TOPIC, "resource_name": "orders", "configs": []}
    created = await send(active, ApiKey.CREATE_TOPICS, CREATE)
    altered = await send(active, ApiKey.ALTER_CONFIGS, {"resources": [resource], "validate_only": True})

    assert created["topics"][0]["error_code"] == ErrorCode.NOT_CONTROLLER
    assert altered["responses"][0]["error_code"] == ErrorCode.NOT_CONTROLLER


async def test_the_mutation_quota_of_the_metadata_applies(active: Member) -> None:
    """KIP-599: one token is one partition; a bucket below 0 refuses a request that can be refused."""
    quota = QuotaAlteration(QuotaEntity(user="alice"), (QuotaChange(QUOTA, 0.001),))
    await active.controller.write(partial(alter_client_quotas, alterations=[quota], validate_only=False))
    handlers = topic_handlers(active.controller, None, RANDOM, FILE)
    context = RequestContext("CONTROLLER", "app", "127.0.0.1", 1, SERVED[ApiKey.CREATE_TOPICS].highest, "User:alice")
    name = f"{ApiKey.CREATE_TOPICS.message}Request"
    codes = []
    for topic in ("first", "second"):
        request = {**CREATE, "topics": [{**CREATE["topics"][0], "name": topic}]}
        body = codec.decode(name, context.api_version, codec.encode(name, context.api_version, request))
        response = await handlers[ApiKey.CREATE_TOPICS](context, body)
        assert isinstance(response, dict)
        codes.append(response["topics"][0]["error_code"])

    assert codes == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
