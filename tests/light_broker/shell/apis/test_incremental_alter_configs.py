"""IncrementalAlterConfigs at the light broker: loggers here, all other resources in the control plane (KIP-412, KafkaApis)."""

import logging

from kafka_node.configs.resource_types import ConfigResourceType
from kafka_wire import ApiKey, Body, ErrorCode
from tests.light_broker.fixed_control import FixedControl, topic_view, view_of
from tests.light_broker.shell.apis.calls import broker_with, call

LOGGER = "levels.of.a.broker"
KEY = ApiKey.INCREMENTAL_ALTER_CONFIGS


def resource(kind: ConfigResourceType, name: str, config: str, value: str) -> Body:
    """Return a resource of which one config is set."""
    return {
        "resource_type": kind,
        "resource_name": name,
        "configs": [{"name": config, "config_operation": 0, "value": value}],
    }


TOPIC = resource(ConfigResourceType.TOPIC, "orders", "retention.ms", "5")
LEVELS = resource(ConfigResourceType.BROKER_LOGGER, "1", LOGGER, "ERROR")


async def test_a_request_is_split_between_the_broker_and_the_control_plane() -> None:
    """The control plane gets no loggers; the response has all resources."""
    logging.getLogger(LOGGER)
    broker = broker_with(view_of(topic_view("orders")))
    control = broker.control
    assert isinstance(control, FixedControl)
    done = {
        "error_code": 0,
        "error_message": None,
        "resource_type": ConfigResourceType.TOPIC,
        "resource_name": "orders",
    }
    control.answers[KEY] = {"throttle_time_ms": 0, "responses": [done]}

    answer = await call(broker, KEY, {"resources": [LEVELS, TOPIC], "validate_only": False})

    assert answer is not None
    assert [(response["resource_name"], response["error_code"]) for response in answer["responses"]] == [
        ("orders", 0),
        ("1", 0),
    ]
    assert [resource["resource_name"] for _, _, body in control.requests for resource in body["resources"]] == [
        "orders"
    ]
    assert logging.getLogger(LOGGER).level == logging.ERROR


async def test_levels_are_listed_after_a_change_without_the_control_plane() -> None:
    """DescribeConfigs has the source DYNAMIC_BROKER_LOGGER_CONFIG."""
    logging.getLogger(LOGGER)
    broker = broker_with(view_of())
    await call(broker, KEY, {"resources": [LEVELS], "validate_only": False})
    loggers = {"resource_type": LEVELS["resource_type"], "resource_name": "1", "configuration_keys": [LOGGER]}

    answer = await call(broker, ApiKey.DESCRIBE_CONFIGS, {"resources": [loggers]})

    assert answer is not None
    (config,) = answer["results"][0]["configs"]
    assert (config["name"], config["value"], config["config_source"]) == (LOGGER, "ERROR", 6)
    assert isinstance(broker.control, FixedControl)
    assert broker.control.requests == []


async def test_loggers_of_another_broker_are_refused() -> None:
    """Method RuntimeLoggerManager.validateResourceNameIsNodeId."""
    other = {**LEVELS, "resource_name": "2"}
    answer = await call(broker_with(view_of()), KEY, {"resources": [other], "validate_only": False})

    assert answer is not None
    (refused,) = answer["responses"]
    assert refused["error_code"] == ErrorCode.INVALID_REQUEST
    assert refused["error_message"] == "Unexpected node id. Expected 1, but received 2"
