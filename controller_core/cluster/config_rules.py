"""What a single config's value must obey: the six kinds of rules that Kafka's topic configs use, and one row of their table.

The rows themselves are in `topic_config_table`; what several configs must obey together is in `topic_configs`.
Source: the validators of Kafka's ConfigDef, CompressionType, MetadataVersionValidator, ThrottledReplicaListValidator.
"""

import re
from dataclasses import dataclass

from controller_core.cluster.config_values import ConfigType, ConfigValue, parse, show, trim


@dataclass(frozen=True, slots=True)
class Invalid:
    """A value that a config refuses: which config, the value as Kafka quotes it, and Kafka's reason."""

    name: str
    shown: str
    reason: str

    @property
    def message(self) -> str:
        """Kafka's whole sentence."""
        return f"Invalid value {self.shown} for configuration {self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class AnyValue:
    """Every value of the type is legal."""

    def check(self, name: str, value: ConfigValue) -> Invalid | None:  # noqa: ARG002  # every rule is asked alike
        """Accept."""
        return None


@dataclass(frozen=True, slots=True)
class Range:
    """A number within bounds, both of them legal; None is no bound. Not-a-number passes, as it does in Kafka."""

    least: int | None
    most: int | None = None

    def check(self, name: str, value: ConfigValue) -> Invalid | None:
        """Compare with both bounds."""
        assert isinstance(value, int | float)
        if self.least is not None and value < self.least:
            return Invalid(name, show(value), f"Value must be at least {self.least}")
        if self.most is not None and value > self.most:
            return Invalid(name, show(value), f"Value must be no more than {self.most}")
        return None


@dataclass(frozen=True, slots=True)
class RangeOr:
    """A number within bounds, or one special number outside of them (gzip's "choose for me", -1)."""

    least: int
    most: int
    special: int

    def check(self, name: str, value: ConfigValue) -> Invalid | None:
        """Compare with the bounds and the special number."""
        assert isinstance(value, int)
        if self.least <= value <= self.most or value == self.special:
            return None
        reason = f"Value must be between {self.least} and {self.most} or equal to {self.special}"
        return Invalid(name, show(value), reason)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words; of a list, each element must be one, and the first that is not is named."""

    words: tuple[str, ...]

    def check(self, name: str, value: ConfigValue) -> Invalid | None:
        """Look every word up."""
        for word in value if isinstance(value, tuple) else (value,):
            if word not in self.words:
                return Invalid(name, show(word), f"String must be one of: {', '.join(self.words)}")
        return None


@dataclass(frozen=True, slots=True)
class VersionName:
    """The name of a version of Kafka, such as 3.0-IV1 or 3.0; a third number behind it is ignored (0.x versions: a fourth)."""

    known: frozenset[str]

    def check(self, name: str, value: ConfigValue) -> Invalid | None:
        """Cut what is ignored and look the name up."""
        assert isinstance(value, str)
        significant = 3 if value.startswith("0.") else 2
        # Java's split drops empty segments at the end, so "3.0." has two segments and stays whole.
        segments = value.rstrip(".").split(".") if value.strip(".") else []
        key = value if len(segments) <= significant else ".".join(segments[:significant])
        return None if key in self.known else Invalid(name, value, f"Version {value} is not a valid version")


PARTITION_AND_BROKER = re.compile(r"(?:[0-9]+:[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """Pairs partition:broker, or the single word * for all of them."""

    def check(self, name: str, value: ConfigValue) -> Invalid | None:
        """Look at every pair."""
        assert isinstance(value, tuple)
        pairs = [trim(pair) for pair in value]
        if all(PARTITION_AND_BROKER.fullmatch(pair) for pair in pairs) or "".join(pairs) == "*":
            return None
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        return Invalid(
            name, show(value), f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
        )


Rule = AnyValue | Range | RangeOr | OneOf | VersionName | ThrottledReplicas


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One row of the table: a topic config, its type, its default as text, its rule, and the broker's setting behind it.

    `broker_name` is None where brokers have no setting that would give the default.
    """

    name: str
    kind: ConfigType
    default: str
    rule: Rule
    broker_name: str | None

    def read(self, text: str) -> ConfigValue | Invalid:
        """Read `text` as this config's value, or tell why it is none."""
        try:
            value = parse(self.kind, text)
        except ValueError as wrong:
            return Invalid(self.name, text, str(wrong))
        return self.rule.check(self.name, value) or value
