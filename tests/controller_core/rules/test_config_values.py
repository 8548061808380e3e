"""Texts of configs as Kafka's ConfigDef reads them and Java prints them; Java itself judges in `judged`."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.rules.config_rules import ConfigType, ConfigValue, java_string, parse


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.INT, "+7", 7),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.LONG, "\u0661\u0662", 12),
        (ConfigType.DOUBLE, ".5", 0.5),
        (ConfigType.DOUBLE, "1d", 1.0),
        (ConfigType.DOUBLE, "0x1.8p1", 3.0),
        (ConfigType.DOUBLE, "0x1p9999f", math.inf),
        (ConfigType.DOUBLE, "-Infinity", -math.inf),
        (ConfigType.LIST, " compact ,\tdelete ", ("compact", "delete")),
        (ConfigType.LIST, "a,,b,", ("a", "", "b", "")),
        (ConfigType.LIST, "  ", ()),
        (ConfigType.STRING, "\tgzip\n", "gzip"),
    ],
)
def test_a_text_is_read_as_java_reads_it(kind: ConfigType, text: str, value: ConfigValue) -> None:
    """ConfigDef.parseType."""
    assert value == parse(kind, text)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, "1_000", "Not a number of type INT"),
        (ConfigType.INT, "\u00a07", "Not a number of type INT"),
        (ConfigType.INT, "\U0001d7ce", "Not a number of type INT"),
        (ConfigType.LONG, "", "Not a number of type LONG"),
        (ConfigType.LONG, "9" * 5000, "Not a number of type LONG"),
        (ConfigType.LONG, "1.0", "Not a number of type LONG"),
        (ConfigType.DOUBLE, "nan", "Not a number of type DOUBLE"),
        (ConfigType.DOUBLE, "1e", "Not a number of type DOUBLE"),
    ],
)
def test_a_text_that_java_does_not_read_is_refused_with_kafkas_reason(kind: ConfigType, text: str, reason: str) -> None:
    """ConfigDef.parseType; Python's own number grammar is wider in places and narrower in others."""
    with pytest.raises(ValueError, match=reason):
        parse(kind, text)


def test_not_a_number_is_a_double() -> None:
    """Java's Double.parseDouble takes NaN, and no bound refuses it."""
    value = parse(ConfigType.DOUBLE, "NaN")

    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (-5, "-5"),
        (1.5, "1.5"),
        (100.0, "100.0"),
        (1e7, "1.0E7"),
        (1.25e-5, "1.25E-5"),
        (-0.0, "-0.0"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (("a", "b"), "[a, b]"),
        ("plain", "plain"),
    ],
)
def test_a_value_is_printed_as_java_prints_it(value: ConfigValue, text: str) -> None:
    """Kafka's messages quote the value that was read, by Java's toString."""
    assert text == java_string(value)


@given(st.floats())
def test_a_printed_double_reads_back_as_itself(value: float) -> None:
    """Java's Double.toString: the shortest digits that are unique."""
    back = parse(ConfigType.DOUBLE, java_string(value))

    assert value == back or math.isnan(value)


@given(st.sampled_from(ConfigType), st.text())
def test_no_text_at_all_breaks_the_reader(kind: ConfigType, text: str) -> None:
    """Whatever a user writes into a manifest is read or refused."""
    try:
        parse(kind, text)
        reason = ""
    except ValueError as refused:
        reason = str(refused)

    assert reason.startswith(("Not a number", "Expected value")) or not reason
