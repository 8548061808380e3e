"""Configs of topics and brokers: effective values, and where each value comes from.

A topic's value is its own dynamic config, else the broker setting that is its default. A setting's value is the dynamic config of the
broker, else that of all brokers, else that of the file, else Kafka's default. Source: ConfigHelper, DynamicBrokerConfig, LogConfig.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from kafka_node.configs.config_rules import ConfigType, ConfigValue, InvalidValue, java_string
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.configs.topic_defaults import broker_names, in_unit
from light_broker.core.settings import Settings


class ConfigSource(IntEnum):
    """Origin of a value (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


DYNAMIC_SETTINGS = frozenset(
    {
        setting
        for name in TOPIC_CONFIGS
        for setting, unit in broker_names(name, TOPIC_CONFIGS)
        if unit == 1 and setting in SETTINGS
    }
    - {"log.flush.scheduler.interval.ms"}
    | {
        "background.threads",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "producer.id.expiration.ms",
    }
)
"""Settings that may be changed while the broker runs (DynamicBrokerConfig.AllDynamicConfigs, without those of parts that it lacks)."""

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
    return ConfigEntry(
        name,
        value_text(topic_value(name, overrides, settings)),
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        tuple(synonyms),
        is_read_only=False,
        is_sensitive=False,
        wire_type=_WIRE_TYPES[TOPIC_CONFIGS[name].kind],
    )


def broker_entry(name: str, settings: Settings) -> ConfigEntry:
    """Return a broker's setting as DescribeConfigs lists it; one that Kafka does not have is sensitive, since its type is unknown."""
    synonyms = _synonyms(name, _same_setting(name), settings)
    sensitive = is_sensitive(name)
    if sensitive:
        synonyms = [Synonym(one.name, None, one.source) for one in synonyms]
    return ConfigEntry(
        name,
        None if sensitive else value_text(settings.value(name)),
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        tuple(synonyms),
        is_read_only=name not in DYNAMIC_SETTINGS,
        is_sensitive=sensitive,
        wire_type=_wire_type(name),
    )


def cluster_default_entry(name: str, settings: Settings) -> ConfigEntry:
    """Return a dynamic default of all brokers as DescribeConfigs lists it."""
    sensitive = is_sensitive(name)
    value = None if sensitive else settings.cluster[name]
    return ConfigEntry(
        name,
        value,
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        (Synonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER),),
        is_read_only=name not in DYNAMIC_SETTINGS,
        is_sensitive=sensitive,
        wire_type=_wire_type(name),
    )


def is_sensitive(name: str) -> bool:
    """Return whether a setting's value is never shown."""
    return name not in SETTINGS or SETTINGS[name].kind is ConfigType.PASSWORD


def _wire_type(name: str) -> int:
    return _WIRE_TYPES[SETTINGS[name].kind] if name in SETTINGS else UNKNOWN_TYPE


def _synonyms(name: str, names: list[str], settings: Settings) -> list[Synonym]:
    """List the values of a setting by all of its names; Kafka's default is only listed under the setting's own name."""
    layers = (
        (settings.own, ConfigSource.DYNAMIC_BROKER),
        (settings.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (settings.file, ConfigSource.STATIC_BROKER),
    )
    found = [Synonym(each, values[each], source) for values, source in layers for each in names if each in values]
    if name in SETTINGS and (default := SETTINGS[name].default) is not None:
        found.append(Synonym(name, default, ConfigSource.DEFAULT))
    return found


def _same_setting(name: str) -> list[str]:
    """List the names of a setting in all of its units, the first one that is set applies (DynamicBrokerConfig.brokerConfigSynonyms)."""
    for names in _UNITS:
        if name in names:
            return list(names)
    return [name]


def _units() -> Iterator[tuple[str, ...]]:
    for name in ("segment.ms", "segment.jitter.ms", "retention.ms"):
        yield tuple(setting for setting, _ in broker_names(name, TOPIC_CONFIGS))


_UNITS = tuple(_units())
