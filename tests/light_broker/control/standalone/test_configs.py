"""AlterConfigs and IncrementalAlterConfigs of a standalone broker. Source: ConfigurationControlManagerTest of Kafka 4.3."""

from typing import Any
from uuid import UUID

import pytest

from kafka_node.authorization.guard import EVERYTHING
from kafka_node.configs.alterations import AlterOperation
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_wire import ErrorCode
from light_broker.control.standalone.configs import alter_configs
from light_broker.control.standalone.state import State, TopicState

STATE = State("cluster", 1).with_topic(
    "orders", TopicState(UUID(int=1), 1, 0, {"retention.ms": "5", "cleanup.policy": "compact"})
)
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
Changes = list[tuple[str, str | None, AlterOperation]]


def altered(
    changes: Changes, kind: int = TOPIC, name: str = "orders", *, incremental: bool = True, validate_only: bool = False
) -> tuple[State, ErrorCode, str | None]:
    """Return the next state and the outcome for one resource."""
    configs: list[dict[str, Any]] = [
        {"name": config, "value": value, "config_operation": operation} for config, value, operation in changes
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    body = {"resources": [resource], "validate_only": validate_only}
    after, answer = alter_configs(STATE, body, EVERYTHING, Settings(1), incremental=incremental)
    return after, answer["responses"][0]["error_code"], answer["responses"][0]["error_message"]


def test_the_configs_of_a_topic_change_one_by_one() -> None:
    """KIP-339: set, delete, append to a list, subtract from it."""
    after, code, _ = altered(
        [
            ("segment.bytes", "2000000", AlterOperation.SET),
            ("retention.ms", None, AlterOperation.DELETE),
            ("cleanup.policy", "delete", AlterOperation.APPEND),
        ]
    )

    assert code == ErrorCode.NONE
    assert after.topics["orders"].configs == {"segment.bytes": "2000000", "cleanup.policy": "compact,delete"}


def test_an_element_is_removed_from_a_list() -> None:
    """Where the topic has no value, from the default."""
    after, code, _ = altered([("cleanup.policy", "compact", AlterOperation.SUBTRACT)])

    assert code == ErrorCode.NONE
    assert after.topics["orders"].configs["cleanup.policy"] == ""


def test_all_configs_are_replaced_by_the_older_api() -> None:
    """AlterConfigs: what the request does not name has its default again."""
    after, code, _ = altered([("segment.bytes", "2000000", AlterOperation.SET)], incremental=False)

    assert code == ErrorCode.NONE
    assert after.topics["orders"].configs == {"segment.bytes": "2000000"}


def test_a_request_that_only_validates_changes_no_config() -> None:
    """And returns the same outcome."""
    after, code, _ = altered([("retention.ms", "1", AlterOperation.SET)], validate_only=True)

    assert (after, code) == (STATE, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("retention.ms", "abc", AlterOperation.SET)], ErrorCode.INVALID_CONFIG),
        ([("no.such.config", "1", AlterOperation.SET)], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", "1", AlterOperation.APPEND)], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", None, AlterOperation.SET)], ErrorCode.INVALID_REQUEST),
        ([("segment.ms", "1", AlterOperation.SET)] * 2, ErrorCode.INVALID_REQUEST),
        (
            [("segment.ms", "1", AlterOperation.SET), ("retention.ms", "x", AlterOperation.SET)],
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_a_wrong_change_leaves_the_topic_as_it_is(changes: Changes, code: ErrorCode) -> None:
    """A resource changes as a whole or not at all."""
    after, found, _ = altered(changes)

    assert (after, found) == (STATE, code)


@pytest.mark.parametrize("config", ["log.retention.ms", "sasl.kerberos.min.time.before.relogin"])
@pytest.mark.parametrize("name", ["", "1"])
def test_dynamic_settings_of_brokers_change(name: str, config: str) -> None:
    """Of all brokers by the empty name, or of one; also those of logins that a light broker does not have (DynamicListenerConfig)."""
    after, code, _ = altered([(config, "7", AlterOperation.SET)], BROKER, name)

    assert code == ErrorCode.NONE
    assert after.broker_configs == {name: {config: "7"}}


@pytest.mark.parametrize(
    ("kind", "name", "config", "code"),
    [
        (BROKER, "1", ("listeners", "PLAINTEXT://:1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("num.io.threads", "none"), ErrorCode.INVALID_CONFIG),
        (BROKER, "2", ("num.io.threads", "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "none", ("retention.ms", "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ConfigResourceType.GROUP, "g", ("consumer.session.timeout.ms", "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_resources_and_settings_are_refused(
    kind: int, name: str, config: tuple[str, str], code: ErrorCode
) -> None:
    """Static settings only change with a restart (DynamicBrokerConfig)."""
    after, found, message = altered([(*config, AlterOperation.SET)], kind, name)

    assert (after, found) == (STATE, code)
    assert message
