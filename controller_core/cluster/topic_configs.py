"""Is a topic's config map legal? The first error that a Kafka 3.9 broker would answer with, in Kafka's words.

Types and rules of single configs are in `config_rules`, their table in `topic_config_table`, the checks about tiered storage
in `remote_storage_rules`.
Source: Kafka's LogConfig.validate as its brokers call it, and the callers' own checks in ZkAdminManager.

Kafka checks in this order and stops at the first error; so does `topic_config_error`:
  1. values that are null;
  2. names it does not know (of several, Kafka names whichever its hash order meets first; ours is the first by name);
  3. each config's value, in the order of the table, whatever the order of the map;
  4. what configs say together: the bounds of the compaction lag, then tiered storage.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from controller_core.cluster.config_rules import Invalid
from controller_core.cluster.config_values import ConfigValue
from controller_core.cluster.remote_storage_rules import remote_storage_error
from controller_core.cluster.topic_config_error import ConfigError
from controller_core.cluster.topic_config_table import TOPIC_CONFIGS


@dataclass(frozen=True, slots=True)
class ConfigSetting:
    """What a broker knows beside the topic's own map.

    broker_defaults: the brokers' own defaults by the topic config's name, as text; what is absent has Kafka's default.
    existing:        the map that the topic has now; ZooKeeper-mode brokers pass an empty one, and so does the default.
    remote_storage:  whether `remote.log.storage.system.enable` is on.
    zookeeper:       whether the cluster lives in ZooKeeper, where some configs of tiered storage are refused.
    """

    broker_defaults: Mapping[str, str] | None = None
    existing: Mapping[str, str] | None = None
    remote_storage: bool = False
    zookeeper: bool = True


def topic_config_error(configs: Mapping[str, str | None], setting: ConfigSetting | None = None) -> ConfigError | None:
    """Return the error that Kafka answers for this map of a topic, or None when it is legal.

    >>> topic_config_error({"retention.ms": "abc"}).message
    'Invalid value abc for configuration retention.ms: Not a number of type LONG'
    >>> topic_config_error({"retention.ms": "-1"}) is None
    True
    """
    setting = setting or ConfigSetting()
    if nulls := [name for name, text in configs.items() if text is None]:
        return ConfigError(f"Null value not supported for topic configs: {','.join(nulls)}")
    if unknown := sorted(configs.keys() - TOPIC_CONFIGS.keys()):
        return ConfigError(f"Unknown topic config name: {unknown[0]}")
    texts = {**(setting.broker_defaults or {}), **{name: text for name, text in configs.items() if text is not None}}
    values: dict[str, ConfigValue] = {}
    for name in TOPIC_CONFIGS:
        value = config_value(name, texts)
        if isinstance(value, Invalid):
            return ConfigError(value.message, of_value=True)
        values[name] = value
    return compaction_lag_error(values) or remote_storage_error(
        values, setting.existing or {}, system_enabled=setting.remote_storage, zookeeper=setting.zookeeper
    )


def config_value(name: str, texts: Mapping[str, str]) -> ConfigValue | Invalid:
    """Return the value of one known config of a topic: from its map (over the brokers' defaults), else Kafka's default.

    >>> config_value("unclean.leader.election.enable", {})
    False
    """
    key = TOPIC_CONFIGS[name]
    return key.read(texts.get(name, key.default))


def compaction_lag_error(values: Mapping[str, ConfigValue]) -> ConfigError | None:
    """Check that no record must wait longer before compaction than it is allowed to wait."""
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least <= most:
        return None
    pair = f"min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
    return ConfigError(f"conflict topic config setting {pair}")
