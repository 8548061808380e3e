"""Configurations in responses to CreateTopics (KIP-525, ConfigDef.convertToString)."""

import pytest

from controller_core.shell.admin.topic_creation import created_configs, printed_value
from kafka_node.configs.topic_config_table import TOPIC_CONFIGS


def test_every_topic_config_is_listed_once() -> None:
    """ConfigHelper.allConfigs."""
    assert list(TOPIC_CONFIGS) == [entry["name"] for entry in created_configs({}, {})]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("retention.ms", " 7 ", "7"),
        ("unclean.leader.election.enable", "TRUE", "true"),
        ("cleanup.policy", "compact, delete", "compact,delete"),
        ("min.cleanable.dirty.ratio", "5e-1", "0.5"),
        ("leader.replication.throttled.replicas", "", ""),
    ],
)
def test_values_are_printed_as_kafka_parses_them(name: str, text: str, expected: str) -> None:
    """ConfigDef.parseType and convertToString."""
    assert printed_value(TOPIC_CONFIGS[name], text) == expected


def test_invalid_broker_default_is_returned_unchanged() -> None:
    """An invalid default of brokers must not fail the request."""
    assert printed_value(TOPIC_CONFIGS["retention.ms"], "?") == "?"
