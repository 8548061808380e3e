"""Requests for a broker's settings. Source: KafkaApis.handleDescribeConfigsRequest."""

from collections.abc import Awaitable, Callable

import pytest

from controller_core.model import Endpoint
from controller_core.shell.active import Defaults
from controller_core.shell.brokers import describe_configs
from controller_core.shell.brokers.describe_configs import BrokerSettings, BrokerSettingsError, read_broker_settings
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.brokers.channel_world import World
from tests.controller_core.shell.brokers.fake_broker import hang


def at(port: int) -> Endpoint:
    """A broker's endpoint."""
    return Endpoint("INTERNAL", "127.0.0.1", port, "PLAINTEXT")


async def test_the_settings_of_a_broker_are_read(world: World) -> None:
    """DescribeConfigs of the broker: a controller that is a broker reads its own configuration instead."""
    first, _ = world.brokers
    settings = {
        "reserved.broker.max.id": "1000",
        "num.partitions": "3",
        "default.replication.factor": "2",
        "delete.topic.enable": "false",
        "inter.broker.protocol.version": "3.9-IV0",
        "create.topic.policy.class.name": "com.example.Policy",
        "alter.config.policy.class.name": None,
    }
    first.react = returned(settings)

    policies = {"create.topic.policy.class.name": "com.example.Policy"}
    expected = BrokerSettings(Defaults(3, 2, delete_topic_enable=False, uses_topic_ids=True), 1000, policies)
    assert await read_broker_settings(1, at(first.port)) == expected
    ((_, request),) = first.taken
    (resource,) = request["resources"]
    assert (resource["resource_type"], resource["resource_name"]) == (4, "1")
    assert set(settings) < set(resource["configuration_keys"])
    assert request["include_synonyms"]


def returned(settings: dict[str, str | None], error_code: int = 0) -> Callable[[ApiKey, Body], Awaitable[Body | None]]:
    """Answer DescribeConfigs."""

    async def react(_key: ApiKey, _body: Body) -> Body | None:
        configs = [{"name": name, "value": value} for name, value in settings.items()]
        result = {"error_code": error_code, "error_message": "why", "configs": configs, "resource_name": "1"}
        return {"results": [result] if settings else []}

    return react


@pytest.mark.parametrize(
    ("changed", "error_code"),
    [
        pytest.param(None, 0, id="no result"),
        pytest.param({"num.partitions": "many"}, 0, id="no number"),
        pytest.param({"num.partitions": None}, 0, id="no value"),
        pytest.param({}, 0, id="a missing setting"),
        pytest.param({"num.partitions": "3"}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, id="not allowed"),
        pytest.param({"num.partitions": "3"}, 32_000, id="an unknown error"),
    ],
)
async def test_an_unusable_answer_is_one_kind_of_error(
    world: World, changed: dict[str, str | None] | None, error_code: int
) -> None:
    """BrokerSettingsError for every such answer, so that the broker is asked again later."""
    first, _ = world.brokers
    others = {"reserved.broker.max.id": "1000", "default.replication.factor": "2", "delete.topic.enable": "true"}
    first.react = returned({} if changed is None else others | changed, error_code)

    with pytest.raises(BrokerSettingsError, match="broker 1"):
        await read_broker_settings(1, at(first.port))


async def test_a_broker_that_cannot_be_reached_is_the_same_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is refused, the request is not supported, or there is no answer in time."""
    monkeypatch.setattr(describe_configs, "TIMEOUT_MS", 50)
    first, second = world.brokers
    del first.ranges[ApiKey.DESCRIBE_CONFIGS]
    second.react = hang

    for port in (1, first.port, second.port):
        with pytest.raises(BrokerSettingsError, match="broker 1"):
            await read_broker_settings(1, at(port))
