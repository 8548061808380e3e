"""The configs of a new topic as CreateTopics answers them from version 5 on (KIP-525): all there are, each with its source.

Values are printed as Kafka prints them after reading them. Source: ZkAdminManager.maybePopulateMetadataAndConfigs,
ConfigDef.convertToString. Leaves out DescribeConfigs: brokers answer that.
"""

from collections.abc import Mapping
from enum import IntEnum

from controller_core.cluster.config_rules import ConfigKey, Invalid
from controller_core.cluster.config_values import show
from controller_core.cluster.topic_config_table import TOPIC_CONFIGS
from controller_core.shell.active import TopicDefault
from kafka_wire.codec import Body


class ConfigSource(IntEnum):
    """Where a value comes from (DescribeConfigsResponse.ConfigSource), when it is not from brokers: these tell themselves."""

    TOPIC = 1
    DEFAULT = 5


def created_configs(own: Mapping[str, str], broker_defaults: Mapping[str, TopicDefault]) -> list[Body]:
    """List every topic config: the topic's own, else what the brokers set for all topics, else Kafka's default.

    `broker_defaults` are by the topic configs' names.
    """
    return [_entry(key, own, broker_defaults) for key in TOPIC_CONFIGS.values()]


def _entry(key: ConfigKey, own: Mapping[str, str], broker_defaults: Mapping[str, TopicDefault]) -> Body:
    if key.name in own:
        text, source = own[key.name], int(ConfigSource.TOPIC)
    elif key.name in broker_defaults:
        text, source = broker_defaults[key.name]
    else:
        text, source = key.default, int(ConfigSource.DEFAULT)
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
