"""Validation of topic configs, with the error message of a Kafka 3.9 broker, or of Kafka 4 with its table.

Types and rules of single configs are in `config_rules`, their tables are in `topic_config_table` and `topic_config_table_4`.
Like Kafka, `topic_config_error` checks in this order and stops at the first error:
  1. null values;
  2. unknown names (of several, Kafka returns the first by hash order, this module the first by name);
  3. each config's value, in the order of the table, regardless of the order of the map;
  4. configs together: the bounds of the compaction lag, then tiered storage (KIP-405).

Source: Kafka's LogConfig.validate as its brokers call it, and the callers' checks in ZkAdminManager.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from kafka_node.configs.config_rules import ConfigKey, ConfigValue, InvalidValue, parse_boolean
from kafka_node.configs.topic_config_table import TOPIC_CONFIGS

SAME_AS_TOTAL = -2
"""Local retention that is the same as the total one."""

UNLIMITED = -1

LOCAL_AND_TOTAL = (("local.retention.bytes", "retention.bytes"), ("local.retention.ms", "retention.ms"))


@dataclass(frozen=True, slots=True)
class ConfigError:
    """Error of a config map, with Kafka's message; its error code is INVALID_CONFIG.

    `of_value`: Kafka throws a ConfigException. AlterConfigs and IncrementalAlterConfigs put the resource in front of these
    messages only; CreateTopics returns both kinds as they are.
    """

    message: str
    of_value: bool = False


@dataclass(frozen=True, slots=True)
class ConfigContext:
    """Settings outside a topic's config map that its validation depends on.

    broker_defaults: the brokers' defaults by topic config name, as text; missing ones have Kafka's default.
    existing:        the topic's current map; ZooKeeper-mode brokers pass an empty one, which is the default here.
    remote_storage:  whether `remote.log.storage.system.enable` is true.
    zookeeper:       whether the cluster is in ZooKeeper mode, where some configs of tiered storage are refused.
    table:           the configs of the brokers' version.
    """

    broker_defaults: Mapping[str, str] | None = None
    existing: Mapping[str, str] | None = None
    remote_storage: bool = False
    zookeeper: bool = True
    table: Mapping[str, ConfigKey] = field(default_factory=lambda: TOPIC_CONFIGS)


def topic_config_error(configs: Mapping[str, str | None], context: ConfigContext | None = None) -> ConfigError | None:
    """Return Kafka's error for this map of a topic, or None if it is valid.

    >>> topic_config_error({"retention.ms": "abc"}).message
    'Invalid value abc for configuration retention.ms: Not a number of type LONG'
    >>> topic_config_error({"retention.ms": "-1"}) is None
    True
    """
    context = context or ConfigContext()
    if nulls := [name for name, text in configs.items() if text is None]:
        return ConfigError(f"Null value not supported for topic configs: {','.join(nulls)}")
    if unknown := sorted(configs.keys() - context.table.keys()):
        return ConfigError(f"Unknown topic config name: {unknown[0]}")
    texts = {**(context.broker_defaults or {}), **{name: text for name, text in configs.items() if text is not None}}
    if not texts and not context.existing:
        return None  # Kafka's defaults are valid together.
    values: dict[str, ConfigValue] = {}
    for name in context.table:
        value = config_value(name, texts, context.table)
        if isinstance(value, InvalidValue):
            return ConfigError(value.message, of_value=True)
        values[name] = value
    return compaction_lag_error(values) or remote_storage_error(
        values, context.existing or {}, system_enabled=context.remote_storage, zookeeper=context.zookeeper
    )


def config_value(
    name: str, texts: Mapping[str, str], table: Mapping[str, ConfigKey] = TOPIC_CONFIGS
) -> ConfigValue | InvalidValue:
    """Return the value of one known config of a topic: from `texts` (its map on top of the brokers' defaults), else Kafka's default.

    >>> config_value("unclean.leader.election.enable", {})
    False
    """
    text = texts.get(name)
    return _default_value(table[name]) if text is None else table[name].read(text)


@cache
def _default_value(key: ConfigKey) -> ConfigValue | InvalidValue:
    """Return Kafka's default, which is the same for each of a thousand topics that are created together."""
    return key.read(key.default)


def compaction_lag_error(values: Mapping[str, ConfigValue]) -> ConfigError | None:
    """Check that the minimum compaction lag does not exceed the maximum."""
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least <= most:
        return None
    pair = f"min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
    return ConfigError(f"conflict topic config setting {pair}")


def remote_storage_error(
    values: Mapping[str, ConfigValue], existing: Mapping[str, str], *, system_enabled: bool, zookeeper: bool
) -> ConfigError | None:
    """Return Kafka's error for all values of a topic (with all names of the table), or None.

    `existing` is the topic's map before the change, `system_enabled` the brokers' `remote.log.storage.system.enable`.
    """
    copy_disabled, delete_on_disable = values["remote.log.copy.disable"], values["remote.log.delete.on.disable"]
    if zookeeper and (copy_disabled or delete_on_disable):
        both = "`remote.log.delete.on.disable` or `remote.log.copy.disable`"
        return ConfigError(f"It is invalid to set {both} under Zookeeper's mode.")
    if values["remote.storage.enable"]:
        return enabling_error(values, system_enabled=system_enabled)
    return disabling_error(existing, delete_on_disable=bool(delete_on_disable))


def enabling_error(values: Mapping[str, ConfigValue], *, system_enabled: bool) -> ConfigError | None:
    """Check a topic with remote storage."""
    if not system_enabled:
        reason = "Topic cannot be configured with remote log storage."
        return ConfigError(f"Tiered Storage functionality is disabled in the broker. {reason}", of_value=True)
    policy = values["cleanup.policy"]
    assert isinstance(policy, tuple)
    if "compact" in policy:
        return ConfigError("Remote log storage is unsupported for the compacted topics", of_value=True)
    for local, total in LOCAL_AND_TOTAL:
        if error := local_retention_error(local, number(values, local), total, number(values, total)):
            return error
    if not values["remote.log.copy.disable"]:
        return None
    for local, total in LOCAL_AND_TOTAL:
        if number(values, local) not in (SAME_AS_TOTAL, number(values, total)):
            must = f"the `{local}` and `{total}` must be set to the identical value"
            why = "because there will be no more logs copied to the remote storage."
            return ConfigError(f"When `remote.log.copy.disable` is set to true, {must} {why}")
    return None


def local_retention_error(local: str, local_value: int, total: str, total_value: int) -> ConfigError | None:
    """Check that a local retention does not exceed the total one."""
    # Kafka compares bytes by > -1 and milliseconds by != -1; lower milliseconds are invalid.
    if total_value <= UNLIMITED or local_value == SAME_AS_TOTAL:
        return None
    if local_value == UNLIMITED:
        reason = f"Value must not be -1 as {total} value is set as {total_value}."
        return ConfigError(InvalidValue(local, str(local_value), reason).message, of_value=True)
    if local_value > total_value:
        reason = f"Value must not be more than {total} property value: {total_value}"
        return ConfigError(InvalidValue(local, str(local_value), reason).message, of_value=True)
    return None


def disabling_error(existing: Mapping[str, str], *, delete_on_disable: bool) -> ConfigError | None:
    """Check that disabling remote storage leaves no orphaned remote records."""
    try:
        was_enabled = parse_boolean(existing.get("remote.storage.enable", "false"))
    except ValueError:
        was_enabled = False  # as in Java's parseBoolean
    if not was_enabled or delete_on_disable:
        return None
    return ConfigError(
        "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote data and turn to"
        " read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote storage"
        " and delete all remote data, please set `remote.storage.enable=false,remote.log.delete.on.disable=true`."
    )


def number(values: Mapping[str, ConfigValue], name: str) -> int:
    """Return the value of a whole-number config."""
    value = values[name]
    assert isinstance(value, int)
    return value
