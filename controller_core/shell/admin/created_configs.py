"""The configs of a new topic as CreateTopics answers them from version 5 on (KIP-525): all there are, each with its source.

Values are printed as Kafka prints them after reading them. Source: ZkAdminManager.maybePopulateMetadataAndConfigs,
ConfigDef.convertToString. Leaves out DescribeConfigs: brokers answer that.
"""

from collections.abc import Mapping
from enum import IntEnum

from controller_core.cluster.config_rules import ConfigKey, Invalid
from controller_core.cluster.config_values import show
from controller_core.cluster.topic_config_table import TOPIC_CONFIGS
from kafka_wire.codec import Body


class ConfigSource(IntEnum):
    """Where a value comes from (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


def created_configs(own: Mapping[str, str], broker_defaults: Mapping[str, str]) -> list[Body]:
    """List every topic config: the topic's own, else what the brokers set for all topics, else Kafka's default.

    `broker_defaults` maps topic configs' names to the text that the brokers have for them.
    """
    return [_entry(key, own, broker_defaults) for key in TOPIC_CONFIGS.values()]


def _entry(key: ConfigKey, own: Mapping[str, str], broker_defaults: Mapping[str, str]) -> Body:
    if key.name in own:
        source, text = ConfigSource.TOPIC, own[key.name]
    elif key.name in broker_defaults:
        source, text = ConfigSource.STATIC_BROKER, broker_defaults[key.name]
    else:
        source, text = ConfigSource.DEFAULT, key.default
    return {
        "name": key.name,
        "value": printed(key, text),
        "read_only": False,
        "config_source": source,
        "is_sensitive": False,
    }


def printed(key: ConfigKey, text: str) -> str:
    """Print a value as Kafka does after reading it: without blanks around it, numbers in their plain form.

    >>> printed(TOPIC_CONFIGS["cleanup.policy"], " compact , delete ")
    'compact,delete'
    """
    value = key.read(text)
    if isinstance(value, Invalid):
        return text
    return ",".join(value) if isinstance(value, tuple) else show(value)
