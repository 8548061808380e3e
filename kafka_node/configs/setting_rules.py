"""One setting of a Kafka node: its type, default and rule.

The table of all settings is in `setting_table`; rules across several settings are in `settings_reading`.
Source: ConfigDef of Kafka's clients.
"""

from dataclasses import dataclass

from kafka_node.configs.config_rules import AnyValue, ConfigType, ConfigValue, InvalidValue, OneOf, Range, parse


class SettingError(ValueError):
    """A setting is missing or invalid; the message is a sentence that names it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, its default as text (None: no value), and the rule for its values."""

    name: str
    kind: ConfigType
    default: str | None
    rule: AnyValue | OneOf | Range
    is_required: bool = False
    is_internal: bool = False
    """Whether Kafka neither documents nor describes it."""
    is_dynamic: bool = False
    """Whether nodes of Kafka apply a change of it while they run."""

    def read(self, text: str | None) -> ConfigValue | None:
        """Return the value of `text`, or of the default when it is None. Raises SettingError with Kafka's message."""
        if text is None and self.is_required:
            raise SettingError(f'Missing required configuration "{self.name}" which has no default value.')
        given = self.default if text is None else text
        if given is None:
            return None
        try:
            value = parse(self.kind, given)
        except ValueError as error:
            raise SettingError(InvalidValue(self.name, given, str(error)).message) from None
        invalid = self.rule.check(self.name, value)
        if invalid is not None:
            raise SettingError(invalid.message)
        return value
