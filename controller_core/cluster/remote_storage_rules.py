"""What a topic's configs must obey together where tiered storage (KIP-405) is concerned.

Our own brokers have no tiered storage, yet the controller of real brokers must refuse what they would refuse. This module
leaves out single values (`config_rules`). Source: the validate methods of Kafka 3.9's LogConfig, in their order.
"""

from collections.abc import Mapping

from controller_core.cluster.config_rules import Invalid
from controller_core.cluster.config_values import ConfigValue, parse_boolean
from controller_core.cluster.topic_config_error import ConfigError

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
        return ConfigError(Invalid(local, str(local_value), reason).message, of_value=True)
    if local_value > whole_value:
        reason = f"Value must not be more than {whole} property value: {whole_value}"
        return ConfigError(Invalid(local, str(local_value), reason).message, of_value=True)
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
