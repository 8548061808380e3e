"""What a single config's value must obey: the six kinds of rules that Kafka's topic configs use, and one row of their table.

The rows themselves are in `topic_config_table`; what several configs must obey together is in `topic_configs`.
Source: the validators of Kafka's ConfigDef, CompressionType, MetadataVersionValidator, ThrottledReplicaListValidator.
"""

# MERGED controller_core.rules.config_rules: """A config's text into a value and back, exactly as Kafka's ConfigDef reads and Java prints it.
# MERGED controller_core.rules.config_rules:
# MERGED controller_core.rules.config_rules: What is legal for one config is in `config_rules`; this module knows types only. It leaves out the types that no topic config
# MERGED controller_core.rules.config_rules: has (SHORT, CLASS, PASSWORD). Source: Kafka's ConfigDef.parseType, and the number grammars of Java's own parsers.
# MERGED controller_core.rules.config_rules: """
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

ConfigValue = bool | int | float | str | tuple[str, ...]


class ConfigType(Enum):
    """The types of topic configs, by Kafka's names."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    STRING = "STRING"


WHOLE_NUMBER = re.compile(r"[+-]?\d+")
"""Java, as Python, takes the digits of every script; unlike Python it takes no underscores and no spaces."""

WHOLE_BITS = {ConfigType.INT: 32, ConfigType.LONG: 64}

MAX_WHOLE_CHARACTERS = 4000
"""Python refuses to read longer integers (its guard against quadratic work); leading zeros may make a legal one long."""

DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
NOT_FINITE = re.compile(r"([+-]?)(NaN|Infinity)")

BLANKS_AROUND_COMMAS = " \t\n\v\f\r"

JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What Java's String.trim takes away: every character up to the space, and no blank of Unicode beyond it."""

PLAIN_FROM, PLAIN_BELOW = 1e-3, 1e7
"""Java prints a double plainly inside these bounds and with an exponent outside of them."""


def trim(text: str) -> str:
    """Take blanks off both ends as Java's String.trim does."""
    return text.strip(JAVA_BLANKS)


def parse(kind: ConfigType, text: str) -> ConfigValue:
    """Read `text` as a value of `kind`; a LIST becomes a tuple.

    Raises ValueError with Kafka's reason, such as "Not a number of type LONG".
    """
    trimmed = trim(text)
    match kind:
        case ConfigType.BOOLEAN:
            return parse_boolean(trimmed)
        case ConfigType.INT | ConfigType.LONG:
            return parse_whole(trimmed, kind)
        case ConfigType.DOUBLE:
            return parse_double(trimmed)
        case ConfigType.LIST:
            return tuple(part.strip(BLANKS_AROUND_COMMAS) for part in trimmed.split(",")) if trimmed else ()
        case ConfigType.STRING:
            return trimmed


def parse_boolean(trimmed: str) -> bool:
    """Read true or false in any case (Java's comparison takes the long s of old prints for an s; casefold does too)."""
    folded = trimmed.casefold()
    if folded not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return folded == "true"


def parse_whole(trimmed: str, kind: ConfigType) -> int:
    """Read a whole number that fits the 32 or 64 bits of its kind."""
    # Java looks at UTF-16 units one by one, so it never sees a digit from beyond the first plane.
    readable = len(trimmed) <= MAX_WHOLE_CHARACTERS and all(ord(character) <= 0xFFFF for character in trimmed)
    if readable and WHOLE_NUMBER.fullmatch(trimmed):
        value = int(trimmed)
        limit = 1 << (WHOLE_BITS[kind] - 1)
        if -limit <= value < limit:
            return value
    raise ValueError(f"Not a number of type {kind.value}")


def parse_double(trimmed: str) -> float:
    """Read a number in Java's grammar: decimal or hexadecimal, an optional f or d behind it, NaN, Infinity."""
    if match := NOT_FINITE.fullmatch(trimmed):
        return float(f"{match[1]}{'nan' if match[2] == 'NaN' else 'inf'}")
    if DECIMAL.fullmatch(trimmed):
        return float(trimmed.rstrip("fFdD"))
    if HEXADECIMAL.fullmatch(trimmed):
        # The exponent after p is decimal: whatever f or d stands at the end is Java's suffix.
        try:
            return float.fromhex(trimmed.rstrip("fFdD"))
        except OverflowError:
            return -math.inf if trimmed.startswith("-") else math.inf
    raise ValueError("Not a number of type DOUBLE")


def java_string(value: ConfigValue) -> str:
    """Print a value as Java's toString does, which is how Kafka's messages quote it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return java_double_string(value)
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return str(value)


def java_double_string(value: float) -> str:
    """Print a double as Java 19 and later do: the shortest digits that read back as the same number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or PLAIN_FROM <= abs(value) < PLAIN_BELOW:
        return repr(value)  # the shortest digits that are unique, as Java's
    sign, digits, shift = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(shift, int), "it is finite"
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{fraction}E{len(digits) - 1 + shift}"


@dataclass(frozen=True, slots=True)
class InvalidValue:
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

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:  # noqa: ARG002  # every rule is asked alike
        """Accept."""
        return None


@dataclass(frozen=True, slots=True)
class Range:
    """A number within bounds, both of them legal; None is no bound. Not-a-number passes, as it does in Kafka."""

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
    """A number within bounds, or one special number outside of them (gzip's "choose for me", -1)."""

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
    """One of some words; of a list, each element must be one, and the first that is not is named."""

    words: tuple[str, ...]

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Look every word up."""
        for word in value if isinstance(value, tuple) else (value,):
            if word not in self.words:
                return InvalidValue(name, java_string(word), f"String must be one of: {', '.join(self.words)}")
        return None


@dataclass(frozen=True, slots=True)
class VersionName:
    """The name of a version of Kafka, such as 3.0-IV1 or 3.0; a third number behind it is ignored (0.x versions: a fourth)."""

    known: frozenset[str]

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Cut what is ignored and look the name up."""
        assert isinstance(value, str)
        significant = 3 if value.startswith("0.") else 2
        # Java's split drops empty segments at the end, so "3.0." has two segments and stays whole.
        segments = value.rstrip(".").split(".") if value.strip(".") else []
        key = value if len(segments) <= significant else ".".join(segments[:significant])
        return None if key in self.known else InvalidValue(name, value, f"Version {value} is not a valid version")


PARTITION_AND_BROKER = re.compile(r"(?:[0-9]+:[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """Pairs partition:broker, or the single word * for all of them."""

    def check(self, name: str, value: ConfigValue) -> InvalidValue | None:
        """Look at every pair."""
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

    def read(self, text: str) -> ConfigValue | InvalidValue:
        """Read `text` as this config's value, or tell why it is none."""
        try:
            value = parse(self.kind, text)
        except ValueError as wrong:
            return InvalidValue(self.name, text, str(wrong))
        return self.rule.check(self.name, value) or value
