"""Configs of one group: effective values, and the bounds that the settings of the node give them.

Source: GroupConfig.validate, GroupCoordinatorConfig.extractGroupConfigMap.
"""

from collections.abc import Iterator, Mapping

from kafka_node.configs.config_rules import ConfigValue, InvalidValue
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_config_table import GROUP_CONFIGS

_CHECKED_IF_SET = frozenset(name for name in GROUP_CONFIGS if name.endswith(".assignment.interval.ms"))
"""Configs whose default is Kafka's and not that of the node's settings, and which are compared with bounds only where they are set."""

_BOUNDS = (
    ("consumer.heartbeat.interval.ms", "group.consumer.{}.heartbeat.interval.ms"),
    ("consumer.session.timeout.ms", "group.consumer.{}.session.timeout.ms"),
    ("consumer.assignment.interval.ms", "group.consumer.{}.assignment.interval.ms"),
    ("share.heartbeat.interval.ms", "group.share.{}.heartbeat.interval.ms"),
    ("share.session.timeout.ms", "group.share.{}.session.timeout.ms"),
    ("share.record.lock.duration.ms", "group.share.{}.record.lock.duration.ms"),
    ("share.delivery.count.limit", "group.share.{}.delivery.count.limit"),
    ("share.partition.max.record.locks", "group.share.{}.partition.max.record.locks"),
    ("share.assignment.interval.ms", "group.share.{}.assignment.interval.ms"),
    ("streams.heartbeat.interval.ms", "group.streams.{}.heartbeat.interval.ms"),
    ("streams.session.timeout.ms", "group.streams.{}.session.timeout.ms"),
    ("streams.num.standby.replicas", "group.streams.{}.standby.replicas"),
    ("streams.assignment.interval.ms", "group.streams.{}.assignment.interval.ms"),
)
"""Configs and the settings of their bounds, in Kafka's order; {} is min or max."""

_WITHOUT_MINIMUM = frozenset({"streams.num.standby.replicas"})

_LONGER = (
    ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"),
    ("share.session.timeout.ms", "share.heartbeat.interval.ms"),
    ("streams.session.timeout.ms", "streams.heartbeat.interval.ms"),
)
"""Configs that must be greater than others."""


def group_value(name: str, overrides: Mapping[str, str], settings: Settings) -> ConfigValue | InvalidValue:
    """Return a config of a group: its own value, else that of the node's setting, else Kafka's default."""
    key = GROUP_CONFIGS[name]
    text = overrides.get(name)
    if text is None and key.broker_name is not None and name not in _CHECKED_IF_SET:
        text = settings.text(key.broker_name)
    return key.read(key.default if text is None else text)


def group_config_error(configs: Mapping[str, str], settings: Settings) -> str | None:
    """Return Kafka's message for configs that a group cannot have; None if it can. The error is INVALID_CONFIG.

    >>> group_config_error({"consumer.session.timeout.ms": "1"}, Settings(1))
    'consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms'
    """
    for name in sorted(configs.keys() - GROUP_CONFIGS.keys()):
        return f"Unknown group config name: {name}"
    values: dict[str, ConfigValue] = {}
    for name in GROUP_CONFIGS:
        value = group_value(name, configs, settings)
        if isinstance(value, InvalidValue):
            return value.message
        values[name] = value
    return next(_broken_bounds(configs, values, settings), None)


def _broken_bounds(configs: Mapping[str, str], values: Mapping[str, ConfigValue], settings: Settings) -> Iterator[str]:
    for name, bound in _BOUNDS:
        if name in _CHECKED_IF_SET and name not in configs:
            continue
        least, most = bound.format("min"), bound.format("max")
        if name not in _WITHOUT_MINIMUM and _number(values, name) < settings.number(least):
            yield f"{name} must be greater than or equal to {least}"
        if _number(values, name) > settings.number(most):
            yield f"{name} must be less than or equal to {most}"
    for longer, shorter in _LONGER:
        if _number(values, longer) <= _number(values, shorter):
            yield f"{longer} must be greater than {shorter}"


def _number(values: Mapping[str, ConfigValue], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), name
    return value
