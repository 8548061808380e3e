"""Configs that Kafka 4.3 knows: records of others, which earlier versions wrote, have no effect (DefaultSupportedConfigChecker of Kafka)."""

from collections.abc import Container, Mapping

from kafka_metadata.records import ConfigRecord, ResourceType
from kafka_node.configs.resource_config_table import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS

_NAMES: Mapping[int, Container[str]] = {
    ResourceType.TOPIC: {*TOPIC_CONFIGS, "internal.segment.bytes"},
    ResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    ResourceType.GROUP: GROUP_CONFIGS,
}


def is_supported(record: ConfigRecord) -> bool:
    """Return whether a config counts. Those of brokers do: names with the listener's prefix, and of plugins, cannot be listed.

    >>> is_supported(ConfigRecord(ResourceType.TOPIC, "orders", "message.format.version", "3.0"))
    False
    """
    if record.resource_type == ResourceType.BROKER:
        return True
    return record.name in _NAMES.get(record.resource_type, ())
