"""The controller as the broker that it is listed as: its own configuration and log directories (KIP-226, KIP-73, KIP-113)."""

import pytest

from controller_core.model.broker import Endpoint
from controller_core.model.cluster import Cluster
from controller_core.shell.admin.own_broker import (
    alter_configs,
    describe_configs,
    describe_log_dirs,
    incremental_alter_configs,
)
from controller_core.shell.front.context import RelayInstead, RequestContext
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

    assert ["controller"] == [config["value"] for config in answer["results"][0]["configs"]]


@pytest.mark.parametrize(
    "resource",
    [{"resource_type": 2, "resource_name": "t"}, {"resource_type": 4, "resource_name": "1"}],
    ids=["topic", "broker"],
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

    assert expected == answer["responses"][0]["error_code"]


async def test_the_older_request_knows_no_removals_by_name() -> None:
    """AlterConfigs (before KIP-339) replaces all that is set: what is not named is removed, so no name at all is taken."""
    rate = {"name": "leader.replication.throttled.rate", "value": "1"}
    other = {"name": "log.retention.ms", "value": "1"}
    resources = [{**OWN, "configs": configs} for configs in ([], [rate], [rate, other])]
    answer = await alter_configs(Active(), CONTEXT, {"resources": resources, "validate_only": False})

    expected = [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_CONFIG]
    assert expected == [each["error_code"] for each in answer["responses"]]

    with pytest.raises(RelayInstead):
        await alter_configs(
            Active(), CONTEXT, {"resources": [{"resource_type": 2, "resource_name": "t", "configs": [other]}]}
        )


async def test_the_log_directories_hold_nothing() -> None:
    """kafka-log-dirs adds up what every broker holds, and takes no directory at all for CLUSTER_AUTHORIZATION_FAILED."""
    answer = await describe_log_dirs(Active(), CONTEXT, {"topics": None})

    assert [(ErrorCode.NONE, [])] == [(result["error_code"], result["topics"]) for result in answer["results"]]
