"""Configs of topics and nodes: effective values, and where each value comes from.

A topic's value is its own dynamic config, else the broker setting that is its default. A setting's value is the dynamic config of the
broker, else that of all brokers, else that of the file, else Kafka's default. Source: ConfigHelper, DynamicBrokerConfig, LogConfig.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import dropwhile

from kafka_node.configs.config_rules import ConfigKey, ConfigType, ConfigValue, InvalidValue, java_string
from kafka_node.configs.group_configs import group_value
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_config_table import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.configs.topic_defaults import broker_names, in_unit


class ConfigSource(IntEnum):
    """Origin of a value (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


ALL_DYNAMIC = frozenset(name for name, setting in SETTINGS.items() if setting.is_dynamic)
"""Settings that nodes of Kafka apply while they run (DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS)."""

_WIRE_TYPES = {
    ConfigType.BOOLEAN: 1,
    ConfigType.STRING: 2,
    ConfigType.INT: 3,
    ConfigType.SHORT: 4,
    ConfigType.LONG: 5,
    ConfigType.DOUBLE: 6,
    ConfigType.LIST: 7,
    ConfigType.CLASS: 8,
    ConfigType.PASSWORD: 9,
}
UNKNOWN_TYPE = 0
"""Source: DescribeConfigsResponse.ConfigType."""


@dataclass(frozen=True, slots=True)
class Synonym:
    """A value that a config would have without those before it."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config as DescribeConfigs lists it."""

    name: str
    value: str | None
    """None: it has no value, or is sensitive."""
    source: ConfigSource
    synonyms: tuple[Synonym, ...]
    is_read_only: bool
    is_sensitive: bool
    wire_type: int


def value_text(value: ConfigValue | None) -> str | None:
    """Format a value as ConfigDef.convertToString does."""
    if isinstance(value, tuple):
        return ",".join(value)
    return None if value is None else java_string(value)


def topic_text(name: str, overrides: Mapping[str, str], settings: Settings) -> str:
    """Return a topic config as text: the topic's own value, else the default of its broker."""
    if name in overrides:
        return overrides[name]
    for setting, unit in broker_names(name, TOPIC_CONFIGS):
        text = settings.text(setting) if setting in SETTINGS else None
        if text is not None:
            return in_unit(text, unit)
    return TOPIC_CONFIGS[name].default


def topic_value(name: str, overrides: Mapping[str, str], settings: Settings) -> ConfigValue:
    """Return a topic config. Values were checked when they were set; an invalid one in stored metadata counts as Kafka's default."""
    key = TOPIC_CONFIGS[name]
    value = key.read(topic_text(name, overrides, settings))
    if isinstance(value, InvalidValue):
        value = key.read(key.default)
    assert not isinstance(value, InvalidValue), f"Kafka's default of {name} is valid"
    return value


def topic_entry(name: str, overrides: Mapping[str, str], settings: Settings) -> ConfigEntry:
    """Return a topic config as DescribeConfigs lists it."""
    synonyms = [Synonym(name, overrides[name], ConfigSource.TOPIC)] if name in overrides else []
    settings_of_name = [setting for setting, _ in broker_names(name, TOPIC_CONFIGS)]
    if settings_of_name:
        synonyms += _synonyms(settings_of_name[0], settings_of_name, settings)
    return _writable_entry(TOPIC_CONFIGS[name], topic_value(name, overrides, settings), synonyms)


def broker_entry(name: str, settings: Settings, dynamic: Container[str]) -> ConfigEntry:
    """Return a node's setting as DescribeConfigs lists it; one that Kafka does not have is sensitive, since its type is unknown.

    `dynamic` has the settings that may change while the node runs.
    """
    synonyms = _synonyms(name, _same_setting(name), settings)
    sensitive = is_sensitive(name)
    if sensitive:
        synonyms = [Synonym(synonym.name, None, synonym.source) for synonym in synonyms]
    return ConfigEntry(
        name,
        None if sensitive else value_text(settings.value(name)),
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        tuple(synonyms),
        is_read_only=name not in dynamic,
        is_sensitive=sensitive,
        wire_type=_wire_type(name),
    )


def cluster_default_entry(name: str, settings: Settings, dynamic: Container[str]) -> ConfigEntry:
    """Return a dynamic default of all brokers as DescribeConfigs lists it."""
    sensitive = is_sensitive(name)
    value = None if sensitive else settings.cluster[name]
    return ConfigEntry(
        name,
        value,
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        (Synonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER),),
        is_read_only=name not in dynamic,
        is_sensitive=sensitive,
        wire_type=_wire_type(name),
    )


def is_sensitive(name: str) -> bool:
    """Return whether a setting's value is never shown."""
    return name not in SETTINGS or SETTINGS[name].kind is ConfigType.PASSWORD


def _wire_type(name: str) -> int:
    return _WIRE_TYPES[SETTINGS[name].kind] if name in SETTINGS else UNKNOWN_TYPE


def group_entry(name: str, overrides: Mapping[str, str], settings: Settings) -> ConfigEntry:
    """Return a config of a group as DescribeConfigs lists it (ConfigHelper.createGroupConfigEntry)."""
    key = GROUP_CONFIGS[name]
    value = group_value(name, overrides, settings)
    if isinstance(value, InvalidValue):  # It was checked when it was set, by other settings of the node.
        value = group_value(name, {}, settings)
    assert not isinstance(value, InvalidValue), f"the settings of the node are valid for {name}"
    if key.broker_name is None:
        synonyms = [Synonym(name, key.default, ConfigSource.DEFAULT)]
    else:
        synonyms = _synonyms(key.broker_name, _same_setting(key.broker_name), settings)
    if name in overrides:
        synonyms = [Synonym(name, value_text(value), ConfigSource.GROUP), *synonyms]
    return _writable_entry(key, value, synonyms)


def client_metrics_entry(name: str, overrides: Mapping[str, str]) -> ConfigEntry:
    """Return a config of a subscription to client metrics as DescribeConfigs lists it."""
    key = CLIENT_METRICS_CONFIGS[name]
    value = key.read(overrides.get(name, key.default))
    if isinstance(value, InvalidValue):  # It was checked when it was set, by another version.
        value = key.read(key.default)
    assert not isinstance(value, InvalidValue), f"Kafka's default of {name} is valid"
    if isinstance(value, tuple):
        value = tuple(dict.fromkeys(value))
    synonyms = [Synonym(name, value_text(value), ConfigSource.CLIENT_METRICS)] if name in overrides else []
    return _writable_entry(key, value, synonyms)


def _writable_entry(key: ConfigKey, value: ConfigValue, synonyms: Sequence[Synonym]) -> ConfigEntry:
    return ConfigEntry(
        key.name,
        value_text(value),
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        tuple(synonyms),
        is_read_only=False,
        is_sensitive=False,
        wire_type=_WIRE_TYPES[key.kind],
    )


def topic_source(name: str, overrides: Mapping[str, str], settings: Settings) -> ConfigSource:
    """Return where the value of a topic config comes from, as CreateTopics lists it (KafkaConfigSchema.resolveEffectiveTopicConfig)."""
    if name in overrides:
        return ConfigSource.TOPIC
    names = [setting for setting, _ in broker_names(name, TOPIC_CONFIGS)]
    return next(
        (source for values, source in _layers(settings) if not values.keys().isdisjoint(names)), ConfigSource.DEFAULT
    )


def _layers(settings: Settings) -> tuple[tuple[Mapping[str, str], ConfigSource], ...]:
    return (
        (settings.own, ConfigSource.DYNAMIC_BROKER),
        (settings.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (settings.file, ConfigSource.STATIC_BROKER),
    )


def _synonyms(name: str, names: Sequence[str], settings: Settings) -> list[Synonym]:
    """List the values of a setting by all of its names, from the first one under its own name on.

    So a setting that has a value only under another name has no synonyms, and Kafka's default as its source (ConfigHelper.configSynonyms).
    """
    found = [
        Synonym(synonym, values[synonym], source)
        for values, source in _layers(settings)
        for synonym in names
        if synonym in values
    ]
    defaults = ((synonym, SETTINGS[synonym].default) for synonym in names if synonym in SETTINGS)
    found += (Synonym(synonym, default, ConfigSource.DEFAULT) for synonym, default in defaults if default is not None)
    return list(dropwhile(lambda synonym: synonym.name != name, found))


def _same_setting(name: str) -> Sequence[str]:
    """List the names of a setting in all of its units, the first one that is set applies (DynamicBrokerConfig.brokerConfigSynonyms)."""
    return _UNITS.get(name, (name,))


def _units() -> Iterator[tuple[str, tuple[str, ...]]]:
    for topic_config in ("segment.ms", "segment.jitter.ms", "retention.ms", "flush.ms"):
        names = tuple(setting for setting, _ in broker_names(topic_config, TOPIC_CONFIGS))
        # The scheduler's interval is the default of the flush interval, and not the other way round.
        yield from ((name, names) for name in (names[:1] if topic_config == "flush.ms" else names))


_UNITS = dict(_units())
