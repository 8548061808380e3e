"""The controller as the broker that it is listed as: its own configuration and log directories (KIP-226, KIP-73, KIP-113)."""

import pytest

from controller_core.model.broker import Endpoint
from controller_core.model.cluster import Cluster
from controller_core.shell.admin.controller_node import alter_configs, describe_configs, incremental_alter_configs
from controller_core.shell.front.handler import RelayInstead
from kafka_node.context import RequestContext
from kafka_wire.errors import ErrorCode

CONTEXT = RequestContext(listener="CLIENT", client_id=None, peer_host="", correlation_id=1, api_version=1)
OWN = {"resource_type": 4, "resource_name": "1000"}


class Active:
    """What own_broker asks of a tenure."""

    cluster = Cluster(1000, 1)

    def advertised(self) -> list[Endpoint]:
        """One listener."""
        return [Endpoint("CLIENT", "here", 9, "PLAINTEXT")]


def operation(name: str, kind: int) -> dict[str, object]:
    """One operation of IncrementalAlterConfigs."""
    return {**OWN, "configs": [{"name": name, "config_operation": kind, "value": "1"}]}


async def test_the_controllers_own_configuration_is_answered() -> None:
    """DescribeConfigs of a broker must reach that broker, and the controller is listed as one."""
    asked = {**OWN, "configuration_keys": ["broker.id", "process.roles"]}
    answer = await describe_configs(Active(), CONTEXT, {"resources": [asked]})

    told = {config["name"]: config["value"] for config in answer["results"][0]["configs"]}
    assert told == {"broker.id": "1000", "process.roles": "controller"}


async def test_the_controller_says_that_it_is_no_broker() -> None:
    """KIP-631: `process.roles` of a node that holds no data; who counts brokers for a replication factor leaves it out."""
    asked = {**OWN, "configuration_keys": ["process.roles"]}
    answer = await describe_configs(Active(), CONTEXT, {"resources": [asked]})

    assert [config["value"] for config in answer["results"][0]["configs"]] == ["controller"]


@pytest.mark.parametrize(
    "resource",
    [{"resource_type": 2, "resource_name": "t"}, {"resource_type": 16, "resource_name": "m"}],
    ids=["topic", "client metrics"],
)
async def test_anything_else_is_left_to_a_broker(resource: dict[str, object]) -> None:
    """Brokers know their defaults and judge keys and values."""
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
async def test_throttles_are_taken_and_the_rest_is_refused(expected: ErrorCode, name: str, kind: int) -> None:
    """kafka-reassign-partitions takes throttles off every broker it finds."""
    body = {"resources": [operation(name, kind)], "validate_only": False}
    answer = await incremental_alter_configs(Active(), CONTEXT, body)

    assert answer["responses"][0]["error_code"] == expected


async def test_the_older_request_knows_no_removals_by_name() -> None:
    """AlterConfigs (before KIP-339) replaces all that is set: what is not named is removed, so no name at all is taken."""
    rate = {"name": "leader.replication.throttled.rate", "value": "1"}
    other = {"name": "log.retention.ms", "value": "1"}
    resources = [{**OWN, "configs": configs} for configs in ([], [rate], [rate, other])]
    answer = await alter_configs(Active(), CONTEXT, {"resources": resources, "validate_only": False})

    expected = [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_CONFIG]
    assert [each["error_code"] for each in answer["responses"]] == expected

    with pytest.raises(RelayInstead):
        await alter_configs(
            Active(), CONTEXT, {"resources": [{"resource_type": 2, "resource_name": "t", "configs": [other]}]}
        )


LOGGERS = {"resource_type": 8, "resource_name": "1000"}


@pytest.mark.parametrize("kind", [4, 8], ids=["broker", "broker loggers"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("1", "Unexpected broker id, expected 1000, but received 1"),
        ("1x", "Node id must be an integer, but it is: 1x"),
    ],
)
async def test_another_nodes_resources_are_refused_and_never_relayed(kind: int, name: str, words: str) -> None:
    """ConfigHelper.describeConfigs, ConfigAdminManager.preprocess: a node answers for itself only."""
    resource = {"resource_type": kind, "resource_name": name}
    configs = [{"name": "leader.replication.throttled.rate", "config_operation": 0, "value": "1"}]
    described = await describe_configs(Active(), CONTEXT, {"resources": [{**resource, "configuration_keys": None}]})
    altered = await incremental_alter_configs(Active(), CONTEXT, {"resources": [{**resource, "configs": configs}]})

    answers = [described["results"][0], altered["responses"][0]]
    assert [answer["error_code"] for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
    assert [answer["error_message"] for answer in answers] == [words] * 2


async def test_the_controller_has_no_loggers() -> None:
    """KIP-412: an empty list; a level cannot be set or removed for a logger that does not exist (RuntimeLoggerManager)."""
    described = await describe_configs(Active(), CONTEXT, {"resources": [{**LOGGERS, "configuration_keys": None}]})
    configs = [{"name": "kafka.server", "config_operation": 0, "value": "DEBUG"}]
    altered = await incremental_alter_configs(Active(), CONTEXT, {"resources": [{**LOGGERS, "configs": configs}]})
    older = await alter_configs(Active(), CONTEXT, {"resources": [{**LOGGERS, "configs": []}]})

    assert (described["results"][0]["error_code"], described["results"][0]["configs"]) == (ErrorCode.NONE, [])
    assert altered["responses"][0]["error_code"] == ErrorCode.INVALID_CONFIG
    assert altered["responses"][0]["error_message"].startswith("Logger kafka.server does not exist!")
    assert older["responses"][0]["error_code"] == ErrorCode.INVALID_REQUEST


async def test_no_keys_mean_all_keys() -> None:
    """ConfigHelper.describeConfigs: an empty list of keys is as null."""
    answers = [
        await describe_configs(Active(), CONTEXT, {"resources": [{**OWN, "configuration_keys": keys}]})
        for keys in (None, [])
    ]

    assert answers[0] == answers[1]
    assert len(answers[0]["results"][0]["configs"]) == 3


async def test_the_default_of_all_brokers_is_left_to_a_broker() -> None:
    """A broker resource without a name (KIP-226) is kept in ZooKeeper, and brokers validate it."""
    resource = {"resource_type": 4, "resource_name": "", "configuration_keys": None}
    with pytest.raises(RelayInstead):
        await describe_configs(Active(), CONTEXT, {"resources": [resource]})
