"""The controller as the broker that it is listed as: its own configuration and log directories (KIP-226, KIP-73, KIP-113)."""

import logging

import pytest

from controller_core.model import Cluster, Endpoint
from controller_core.shell.admin.controller_node import alter_configs, describe_configs, incremental_alter_configs
from controller_core.shell.front.handler import RelayInstead
from kafka_node.context import RequestContext
from kafka_wire import ErrorCode

CONTEXT = RequestContext(listener="CLIENT", client_id=None, peer_host="", correlation_id=1, api_version=1)
OWN = {"resource_type": 4, "resource_name": "1000"}


class Active:
    """An active controller as the handlers use it."""

    cluster = Cluster(1000, 1)

    def advertised(self) -> list[Endpoint]:
        """One listener."""
        return [Endpoint("CLIENT", "here", 9, "PLAINTEXT")]


def operation(name: str, kind: int) -> dict[str, object]:
    """Return one operation of IncrementalAlterConfigs."""
    return {**OWN, "configs": [{"name": name, "config_operation": kind, "value": "1"}]}


async def test_configuration_of_the_controller_is_described() -> None:
    """DescribeConfigs of a broker must be answered by that broker, and the controller is listed as one."""
    requested = {**OWN, "configuration_keys": ["broker.id", "process.roles"]}
    answer = await describe_configs(Active(), CONTEXT, {"resources": [requested]})

    answered = {config["name"]: config["value"] for config in answer["results"][0]["configs"]}
    assert answered == {"broker.id": "1000", "process.roles": "controller"}


async def test_controller_reports_process_role_controller() -> None:
    """KIP-631: tools that count brokers for a replication factor use `process.roles` to skip a node without data."""
    requested = {**OWN, "configuration_keys": ["process.roles"]}
    answer = await describe_configs(Active(), CONTEXT, {"resources": [requested]})

    assert [config["value"] for config in answer["results"][0]["configs"]] == ["controller"]


@pytest.mark.parametrize(
    "resource",
    [{"resource_type": 2, "resource_name": "t"}, {"resource_type": 16, "resource_name": "m"}],
    ids=["topic", "client metrics"],
)
async def test_requests_about_other_resources_are_relayed(resource: dict[str, object]) -> None:
    """Brokers have the defaults and validate keys and values."""
    with pytest.raises(RelayInstead):
        await describe_configs(Active(), CONTEXT, {"resources": [{**resource, "configuration_keys": None}]})


@pytest.mark.parametrize(
    ("expected", "name", "kind"),
    [
        (ErrorCode.NONE, "leader.replication.throttled.rate", 0),
        (ErrorCode.NONE, "log.retention.ms", 1),
        (ErrorCode.INVALID_CONFIG, "log.retention.ms", 0),
    ],
    ids=["a throttle is set", "anything is removed", "anything else is set"],
)
async def test_throttles_are_accepted_and_other_configurations_refused(
    expected: ErrorCode, name: str, kind: int
) -> None:
    """kafka-reassign-partitions removes throttles from every listed broker."""
    body = {"resources": [operation(name, kind)], "validate_only": False}
    answer = await incremental_alter_configs(Active(), CONTEXT, body)

    assert answer["responses"][0]["error_code"] == expected


async def test_alter_configs_refuses_every_name_but_throttles() -> None:
    """AlterConfigs (before KIP-339) replaces all configurations, so every name in it is a change."""
    rate = {"name": "leader.replication.throttled.rate", "value": "1"}
    other = {"name": "log.retention.ms", "value": "1"}
    resources = [{**OWN, "configs": configs} for configs in ([], [rate], [rate, other])]
    answer = await alter_configs(Active(), CONTEXT, {"resources": resources, "validate_only": False})

    expected = [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_CONFIG]
    assert [response["error_code"] for response in answer["responses"]] == expected

    with pytest.raises(RelayInstead):
        await alter_configs(
            Active(), CONTEXT, {"resources": [{"resource_type": 2, "resource_name": "t", "configs": [other]}]}
        )


LOGGERS = {"resource_type": 8, "resource_name": "1000"}


@pytest.mark.parametrize("kind", [4, 8], ids=["broker", "broker loggers"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("1", "Unexpected broker id, expected 1000, but received 1"),
        ("1x", "Node id must be an integer, but it is: 1x"),
    ],
)
async def test_resources_of_other_nodes_are_refused_and_never_relayed(kind: int, name: str, message: str) -> None:
    """ConfigHelper.describeConfigs, ConfigAdminManager.preprocess: a node answers only for itself."""
    resource = {"resource_type": kind, "resource_name": name}
    configs = [{"name": "leader.replication.throttled.rate", "config_operation": 0, "value": "1"}]
    described = await describe_configs(Active(), CONTEXT, {"resources": [{**resource, "configuration_keys": None}]})
    altered = await incremental_alter_configs(
        Active(), CONTEXT, {"resources": [{**resource, "configs": configs}], "validate_only": False}
    )

    answers = [described["results"][0], altered["responses"][0]]
    assert [answer["error_code"] for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
    assert [answer["error_message"] for answer in answers] == [message] * 2


async def test_levels_of_loggers_are_listed_and_changed() -> None:
    """KIP-412 (RuntimeLoggerManager); AlterConfigs does not know the type."""
    name = "levels.of.a.controller"
    logging.getLogger(name)
    changes = [
        {**LOGGERS, "configs": [{"name": logger, "config_operation": 0, "value": "ERROR"}]} for logger in (name, "none")
    ]
    altered = await incremental_alter_configs(Active(), CONTEXT, {"resources": changes, "validate_only": False})
    described = await describe_configs(Active(), CONTEXT, {"resources": [{**LOGGERS, "configuration_keys": [name]}]})
    older = await alter_configs(Active(), CONTEXT, {"resources": [{**LOGGERS, "configs": []}]})

    assert [response["error_code"] for response in altered["responses"]] == [ErrorCode.NONE, ErrorCode.INVALID_CONFIG]
    assert altered["responses"][1]["error_message"] == "Logger none does not exist!"
    level = {
        "name": name,
        "value": "ERROR",
        "read_only": False,
        "config_source": 6,
        "is_sensitive": False,
        "config_type": 0,
    }
    assert described["results"][0]["configs"] == [level]
    assert older["responses"][0]["error_code"] == ErrorCode.INVALID_REQUEST


async def test_empty_list_of_keys_means_all_keys() -> None:
    """ConfigHelper.describeConfigs: an empty list of keys is treated as null."""
    answers = [
        await describe_configs(Active(), CONTEXT, {"resources": [{**OWN, "configuration_keys": keys}]})
        for keys in (None, [])
    ]

    assert answers[0] == answers[1]
    assert len(answers[0]["results"][0]["configs"]) == 3


async def test_default_of_all_brokers_is_relayed() -> None:
    """A broker resource without a name (KIP-226) is validated by brokers."""
    resource = {"resource_type": 4, "resource_name": "", "configuration_keys": None}
    with pytest.raises(RelayInstead):
        await describe_configs(Active(), CONTEXT, {"resources": [resource]})
