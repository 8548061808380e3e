"""Values of single topic configs: parsing, printing, and validation rules.

Values are parsed as by Kafka's ConfigDef and printed as by Java. A CLASS is the name of a Java class, which is not looked up.
The table of configs is in `topic_config_table`; checks across several configs are in `topic_configs`.
Source: ConfigDef.parseType and the number grammars of Java's parsers; the validators of Kafka's ConfigDef, CompressionType,
MetadataVersionValidator, ThrottledReplicaListValidator.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

ConfigValue = bool | int | float | str | tuple[str, ...]


class ConfigType(Enum):
    """Types of configs, by Kafka's names."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    STRING = "STRING"
    SHORT = "SHORT"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 - the name of a type


WHOLE_NUMBER = re.compile(r"[+-]?\d+")
"""Java, like Python, accepts the digits of every script; unlike Python it accepts no underscores and no spaces."""

WHOLE_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}

MAX_WHOLE_CHARACTERS = 4000
"""Python refuses to parse longer integers (its protection against quadratic run time); leading zeros may make a valid one long."""

DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
NOT_FINITE = re.compile(r"([+-]?)(NaN|Infinity)")

BLANKS_AROUND_COMMAS = " \t\n\v\f\r"

JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""Characters that Java's String.trim removes: all up to the space, and no other whitespace of Unicode."""

PLAIN_FROM, PLAIN_BELOW = 1e-3, 1e7
"""Java prints a double without an exponent within these bounds, and with one outside."""


def trim(text: str) -> str:
    """Strip both ends as Java's String.trim does."""
    return text.strip(JAVA_BLANKS)


def parse(kind: ConfigType, text: str) -> ConfigValue:
    """Parse `text` as a value of `kind`; a LIST becomes a tuple.

    Raises ValueError with Kafka's reason, such as "Not a number of type LONG".
    """
    trimmed = trim(text)
    match kind:
        case ConfigType.BOOLEAN:
            return parse_boolean(trimmed)
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            return parse_whole(trimmed, kind)
        case ConfigType.DOUBLE:
            return parse_double(trimmed)
        case ConfigType.LIST:
            return tuple(part.strip(BLANKS_AROUND_COMMAS) for part in trimmed.split(",")) if trimmed else ()
        case ConfigType.STRING | ConfigType.CLASS | ConfigType.PASSWORD:
            return trimmed


def parse_boolean(trimmed: str) -> bool:
    """Parse true or false in any case (Java's comparison treats the long s as an s; casefold does too)."""
    folded = trimmed.casefold()
    if folded not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return folded == "true"


def parse_whole(trimmed: str, kind: ConfigType) -> int:
    """Parse a whole number that fits the 16, 32 or 64 bits of its kind."""
    # Java reads single UTF-16 units, so it accepts no digits beyond the first plane.
    readable = len(trimmed) <= MAX_WHOLE_CHARACTERS and all(ord(character) <= 0xFFFF for character in trimmed)
    if readable and WHOLE_NUMBER.fullmatch(trimmed):
        value = int(trimmed)
        limit = 1 << (WHOLE_BITS[kind] - 1)
        if -limit <= value < limit:
            return value
    raise ValueError(f"Not a number of type {kind.value}")


def parse_double(trimmed: str) -> float:
    """Parse a number in Java's grammar: decimal or hexadecimal, with an optional suffix f or d; NaN, Infinity."""
    if match := NOT_FINITE.fullmatch(trimmed):
        return float(f"{match[1]}{'nan' if match[2] == 'NaN' else 'inf'}")
    if DECIMAL.fullmatch(trimmed):
        return float(trimmed.rstrip("fFdD"))
    if HEXADECIMAL.fullmatch(trimmed):
        # The exponent after p is decimal, so an f or d at the end is Java's suffix.
        try:
            return float.fromhex(trimmed.rstrip("fFdD"))
        except OverflowError:
            return -math.inf if trimmed.startswith("-") else math.inf
    raise ValueError("Not a number of type DOUBLE")


def java_string(value: ConfigValue) -> str:
    """Format a value as Java's toString does; Kafka's messages quote it in this form."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return java_double_string(value)
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return str(value)


def java_double_string(value: float) -> str:
    """Format a double as Java 19 and later do: with the shortest digits that parse to the same number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or PLAIN_FROM <= abs(value) < PLAIN_BELOW:
        return repr(value)  # the shortest unique digits, as in Java
    sign, digits, shift = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(shift, int), "it is finite"
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{fraction}E{len(digits) - 1 + shift}"


@dataclass(frozen=True, slots=True)
class InvalidValue:
    """An invalid value: the config, the value as Kafka quotes it, and Kafka's reason."""

    name: str
    shown: str
    reason: str
    is_whole_message: bool = False
    """Whether the reason names the config already, and is Kafka's whole message."""

    @property
    def message(self) -> str:
        """Kafka's error message."""
        if self.is_whole_message:
            return self.reason
        return f"Invalid value {self.shown} for configuration {self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class AnyValue:
    """Rule: every value of the type is valid."""

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:  # noqa: ARG002  # all rules have the same signature
        """Accept the value."""
        return None


@dataclass(frozen=True, slots=True)
class Range:
    """Rule: a number within inclusive bounds; None is no bound. NaN is valid, as in Kafka."""

    least: int | None
    most: int | None = None

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Compare with both bounds."""
        assert isinstance(value, int | float)
        if self.least is not None and value < self.least:
            return InvalidValue(name, java_string(value), f"Value must be at least {self.least}")
        if self.most is not None and value > self.most:
            return InvalidValue(name, java_string(value), f"Value must be no more than {self.most}")
        return None


@dataclass(frozen=True, slots=True)
class RangeOr:
    """Rule: a number within bounds, or one special number outside them (such as gzip's default level, -1)."""

    least: int
    most: int
    special: int

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Compare with the bounds and the special number."""
        assert isinstance(value, int)
        if self.least <= value <= self.most or value == self.special:
            return None
        reason = f"Value must be between {self.least} and {self.most} or equal to {self.special}"
        return InvalidValue(name, java_string(value), reason)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Rule: one of some values. In a list each element must be one; the error names the first that is not.

    `names_empty`: the error of an empty element is one of its own, as in Kafka 4 (ConfigDef.ValidList).
    """

    allowed: tuple[str, ...]
    names_empty: bool = False

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Check every word."""
        for word in value if isinstance(value, tuple) else (value,):
            if self.names_empty and not word:
                return InvalidValue(
                    name, "", f"Configuration '{name}' values must not be empty.", is_whole_message=True
                )
            if word not in self.allowed:
                return InvalidValue(name, java_string(word), f"String must be one of: {', '.join(self.allowed)}")
        return None


@dataclass(frozen=True, slots=True)
class VersionName:
    """Rule: the name of a Kafka version, such as 3.0-IV1 or 3.0; a third number is ignored (in 0.x versions: a fourth)."""

    known: frozenset[str]

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Cut the ignored part and check the name."""
        assert isinstance(value, str)
        significant = 3 if value.startswith("0.") else 2
        # Java's split drops trailing empty segments, so "3.0." has two segments and is not cut.
        segments = value.rstrip(".").split(".") if value.strip(".") else []
        key = value if len(segments) <= significant else ".".join(segments[:significant])
        return None if key in self.known else InvalidValue(name, value, f"Version {value} is not a valid version")


PARTITION_AND_BROKER = re.compile(r"(?:[0-9]+:[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """Rule: pairs partition:broker, or the single word * for all replicas."""

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Check every pair."""
        assert isinstance(value, tuple)
        pairs = [trim(pair) for pair in value]
        if all(PARTITION_AND_BROKER.fullmatch(pair) for pair in pairs) or "".join(pairs) == "*":
            return None
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        return InvalidValue(
            name,
            java_string(value),
            f"{name} must be the literal '*' or a list of replicas in the following format: {form}",
        )


@dataclass(frozen=True, slots=True)
class Words:
    """Rule: a list of elements, none of them empty (ConfigDef.ValidList.anyNonDuplicateValues; Kafka removes repeated ones before)."""

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Look for an empty word."""
        assert isinstance(value, tuple)
        if "" not in value:
            return None
        reason = f"Configuration '{name}' values must not be empty."
        return InvalidValue(name, java_string(value), reason, is_whole_message=True)


DURATION = re.compile(
    r"P(?=.)(?:[-+]?[0-9]{1,18}D)?(?:T(?=.)(?:[-+]?[0-9]{1,18}H)?(?:[-+]?[0-9]{1,18}M)?(?:[-+]?[0-9]{1,18}(?:[.,][0-9]{0,9})?S)?)?",
    re.IGNORECASE,
)
"""Java's Duration.parse, without a sign in front."""


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Rule: earliest, latest, or by_duration with a duration in ISO 8601 (ShareGroupAutoOffsetResetStrategy.Validator)."""

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Check the word or the duration."""
        assert isinstance(value, str)
        kind, colon, duration = value.partition(":")
        is_duration = kind == "by_duration" and colon and DURATION.fullmatch(duration) and "-" not in duration
        if value in {"earliest", "latest"} or is_duration:
            return None
        form = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        return InvalidValue(name, value, f"Invalid value `{value}` for configuration {name}. {form}")


Rule = AnyValue | Range | RangeOr | OneOf | VersionName | ThrottledReplicas | Words | OffsetReset


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A config of topics or other resources: its type, its default as text, its rule, and the broker setting that provides its default.

    `broker_name` is None if brokers have no such setting.
    """

    name: str
    kind: ConfigType
    default: str
    rule: Rule
    broker_name: str | None

    def read(self, text: str) -> ConfigValue | InvalidValue:
        """Parse `text` as this config's value, or return why it is invalid."""
        try:
            value = parse(self.kind, text)
        except ValueError as error:
            return InvalidValue(self.name, text, str(error))
        return self.rule.check(self.name, value) or value
