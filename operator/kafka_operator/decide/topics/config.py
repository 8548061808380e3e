"""Topic configuration: keys to set, and keys to reset to the cluster's defaults.

Only the settings that the spec names are managed. One that was taken out of the spec is reset if this Topic may have set it: the
names are noted on the resource before they are set (annotation), so that neither a crash nor a spec that changes in the meantime
leaves one behind. Settings of other clients, such as the throttle of a reassignment, are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_operator.decide.kafka.observed import ConfigValue

TRUTH = {"true": True, "false": False}


def config_changes(
    wanted: Mapping[str, str], managed: frozenset[str], current: Mapping[str, ConfigValue]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return (what to set, what to reset), each in order of name; both are empty when the topic is as wanted."""
    to_set = tuple(
        (name, value)
        for name, value in sorted(wanted.items())
        if name not in current or not same_value(value, current[name])
    )
    to_reset = tuple(sorted(name for name in managed if name not in wanted and name in current))
    return to_set, to_reset


def same_value(wanted: str, current: ConfigValue) -> bool:
    """Return whether a value as the user writes it is the one that Kafka has, which parses it and writes it back its own way.

    A value that Kafka hides (a password) counts as the same: it cannot be compared, and it would be set again in every reconciliation.
    """
    if current.value is None:
        return True
    return _parsed(wanted, current.type) == _parsed(current.value, current.type)


def _parsed(text: str, config_type: str) -> object:
    """Parse as Kafka's ConfigDef does; what does not parse is compared as text, and left for the broker to refuse."""
    trimmed = text.strip()
    try:
        if config_type == "BOOLEAN":
            return TRUTH.get(trimmed.lower(), trimmed)
        if config_type in {"INT", "SHORT", "LONG"}:
            return int(trimmed)
        if config_type == "DOUBLE":
            return float(trimmed)
    except ValueError:
        return trimmed
    if config_type == "LIST":
        return [item.strip() for item in trimmed.split(",")] if trimmed else []
    return trimmed
