"""Broker settings that are the defaults of topic configs.

Brokers have them under other names, some of them in addition in coarser units: the first one that is set applies. Source:
ServerTopicConfigSynonyms.
"""

from collections.abc import Iterator, Mapping

from kafka_node.configs.config_rules import ConfigKey
from kafka_node.configs.topic_config_table import TOPIC_CONFIGS

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
OTHER_NAMES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "segment.ms": (("log.roll.hours", HOUR_MS),),
    "segment.jitter.ms": (("log.roll.jitter.hours", HOUR_MS),),
    "flush.ms": (("log.flush.scheduler.interval.ms", 1),),
    "retention.ms": (("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
}
"""By topic configuration: further names in order, and the factor from their unit to the configuration's own unit."""


def broker_names(topic_name: str, table: Mapping[str, ConfigKey] = TOPIC_CONFIGS) -> Iterator[tuple[str, int]]:
    """Yield the settings of a broker for a topic config, the first one first, with the factor from their unit to that of the config.

    `table` has the configs of the brokers' version, by default 3.9.
    """
    first = table[topic_name].broker_name
    if first is not None:
        yield first, 1
        yield from OTHER_NAMES.get(topic_name, ())


def in_unit(text: str, unit: int) -> str:
    """Convert a value to the topic configuration's unit; a negative value means "no limit" in every unit."""
    if unit == 1:
        return text
    try:
        value = int(text)
    except ValueError:
        return text  # The broker validates its settings; the value is passed on unchanged.
    return str(value * unit if value >= 0 else -1)
