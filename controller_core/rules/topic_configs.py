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

# MERGED controller_core.rules.topic_configs: """The error of a topic's config map, and how the APIs of Kafka word it. It leaves out when it occurs: see `topic_configs`."""
# MERGED controller_core.rules.topic_configs: """What a topic's configs must obey together where tiered storage (KIP-405) is concerned.
# MERGED controller_core.rules.topic_configs:
# MERGED controller_core.rules.topic_configs: Our own brokers have no tiered storage, yet the controller of real brokers must refuse what they would refuse. This module
# MERGED controller_core.rules.topic_configs: leaves out single values (`config_rules`). Source: the validate methods of Kafka 3.9's LogConfig, in their order.
# MERGED controller_core.rules.topic_configs: """
from collections.abc import Mapping
from dataclasses import dataclass

from controller_core.rules.config_rules import ConfigValue, InvalidValue, parse_boolean
from controller_core.rules.topic_config_table import TOPIC_CONFIGS


@dataclass(frozen=True, slots=True)
class ConfigError:
    """What is wrong with a config map, in Kafka's words; on the wire its error code is INVALID_CONFIG.

    `of_value` marks what Kafka throws as a ConfigException: AlterConfigs and IncrementalAlterConfigs name the resource in
    front of those, and of those alone; CreateTopics answers both kinds bare.
    """

    message: str
    of_value: bool = False


SAME_AS_WHOLE = -2
"""The local retention that follows the whole one."""

UNLIMITED = -1

LOCAL_AND_WHOLE = (("local.retention.bytes", "retention.bytes"), ("local.retention.ms", "retention.ms"))


def remote_storage_error(
    values: Mapping[str, ConfigValue], existing: Mapping[str, str], *, system_enabled: bool, zookeeper: bool
) -> ConfigError | None:
    """Return Kafka's error for all values of a topic (names of the whole table), or None.

    existing is the topic's map before the change, system_enabled the brokers' `remote.log.storage.system.enable`.
    """
    copy_disabled, delete_on_disable = values["remote.log.copy.disable"], values["remote.log.delete.on.disable"]
    if zookeeper and (copy_disabled or delete_on_disable):
        both = "`remote.log.delete.on.disable` or `remote.log.copy.disable`"
        return ConfigError(f"It is invalid to set {both} under Zookeeper's mode.")
    if values["remote.storage.enable"]:
        return enabling_error(values, system_enabled=system_enabled)
    return disabling_error(existing, delete_on_disable=bool(delete_on_disable))


def enabling_error(values: Mapping[str, ConfigValue], *, system_enabled: bool) -> ConfigError | None:
    """Check a topic whose records go to remote storage."""
    if not system_enabled:
        reason = "Topic cannot be configured with remote log storage."
        return ConfigError(f"Tiered Storage functionality is disabled in the broker. {reason}", of_value=True)
    policy = values["cleanup.policy"]
    assert isinstance(policy, tuple)
    if "compact" in policy:
        return ConfigError("Remote log storage is unsupported for the compacted topics", of_value=True)
    for local, whole in LOCAL_AND_WHOLE:
        if error := local_retention_error(local, number(values, local), whole, number(values, whole)):
            return error
    if not values["remote.log.copy.disable"]:
        return None
    for local, whole in LOCAL_AND_WHOLE:
        if number(values, local) not in (SAME_AS_WHOLE, number(values, whole)):
            must = f"the `{local}` and `{whole}` must be set to the identical value"
            why = "because there will be no more logs copied to the remote storage."
            return ConfigError(f"When `remote.log.copy.disable` is set to true, {must} {why}")
    return None


def local_retention_error(local: str, local_value: int, whole: str, whole_value: int) -> ConfigError | None:
    """Check one pair: what is kept locally must be a part of what is kept."""
    # Kafka asks of bytes whether they are above -1 and of milliseconds whether they are not -1; lower milliseconds are illegal.
    if whole_value <= UNLIMITED or local_value == SAME_AS_WHOLE:
        return None
    if local_value == UNLIMITED:
        reason = f"Value must not be -1 as {whole} value is set as {whole_value}."
        return ConfigError(InvalidValue(local, str(local_value), reason).message, of_value=True)
    if local_value > whole_value:
        reason = f"Value must not be more than {whole} property value: {whole_value}"
        return ConfigError(InvalidValue(local, str(local_value), reason).message, of_value=True)
    return None


def disabling_error(existing: Mapping[str, str], *, delete_on_disable: bool) -> ConfigError | None:
    """Check that turning remote storage off orphans no remote records."""
    try:
        was_enabled = parse_boolean(existing.get("remote.storage.enable", "false"))
    except ValueError:
        was_enabled = False  # as Java's parseBoolean has it
    if not was_enabled or delete_on_disable:
        return None
    return ConfigError(
        "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote data and turn to"
        " read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote storage"
        " and delete all remote data, please set `remote.storage.enable=false,remote.log.delete.on.disable=true`."
    )


def number(values: Mapping[str, ConfigValue], name: str) -> int:
    """Return the value of a config that is a whole number."""
    value = values[name]
    assert isinstance(value, int)
    return value


@dataclass(frozen=True, slots=True)
class ConfigContext:
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


def topic_config_error(configs: Mapping[str, str | None], setting: ConfigContext | None = None) -> ConfigError | None:
    """Return the error that Kafka answers for this map of a topic, or None when it is legal.

    >>> topic_config_error({"retention.ms": "abc"}).message
    'Invalid value abc for configuration retention.ms: Not a number of type LONG'
    >>> topic_config_error({"retention.ms": "-1"}) is None
    True
    """
    setting = setting or ConfigContext()
    if nulls := [name for name, text in configs.items() if text is None]:
        return ConfigError(f"Null value not supported for topic configs: {','.join(nulls)}")
    if unknown := sorted(configs.keys() - TOPIC_CONFIGS.keys()):
        return ConfigError(f"Unknown topic config name: {unknown[0]}")
    texts = {**(setting.broker_defaults or {}), **{name: text for name, text in configs.items() if text is not None}}
    values: dict[str, ConfigValue] = {}
    for name in TOPIC_CONFIGS:
        value = config_value(name, texts)
        if isinstance(value, InvalidValue):
            return ConfigError(value.message, of_value=True)
        values[name] = value
    return compaction_lag_error(values) or remote_storage_error(
        values, setting.existing or {}, system_enabled=setting.remote_storage, zookeeper=setting.zookeeper
    )


def config_value(name: str, texts: Mapping[str, str]) -> ConfigValue | InvalidValue:
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
