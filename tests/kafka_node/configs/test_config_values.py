"""Parsing of config values as by Kafka's ConfigDef and formatting as by Java; `judged` compares with Java itself."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_node.configs import topic_config_table_4
from kafka_node.configs.config_rules import ConfigType, ConfigValue, InvalidValue, java_string, parse
from kafka_node.configs.topic_config_table import TOPIC_CONFIGS


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.SHORT, "32767", 2**15 - 1),
        (ConfigType.CLASS, " org.example.Policy ", "org.example.Policy"),
        (ConfigType.PASSWORD, " secret ", "secret"),
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
def test_a_value_is_parsed_as_by_java(kind: ConfigType, text: str, value: ConfigValue) -> None:
    """ConfigDef.parseType."""
    assert value == parse(kind, text)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ConfigType.SHORT, "32768", "Not a number of type SHORT"),
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
def test_an_unparsable_value_is_refused_with_kafkas_reason(kind: ConfigType, text: str, reason: str) -> None:
    """ConfigDef.parseType; Python's number grammar is wider in some cases and narrower in others."""
    with pytest.raises(ValueError, match=reason):
        parse(kind, text)


def test_nan_is_a_valid_double() -> None:
    """Java's Double.parseDouble accepts NaN, and no bound excludes it."""
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
def test_a_value_is_formatted_as_by_java(value: ConfigValue, text: str) -> None:
    """Kafka's messages quote the parsed value with Java's toString."""
    assert java_string(value) == text


@given(st.floats())
def test_a_formatted_double_parses_to_the_same_value(value: float) -> None:
    """Java's Double.toString: the shortest unique digits."""
    back = parse(ConfigType.DOUBLE, java_string(value))

    assert value == back or math.isnan(value)


@given(st.sampled_from(ConfigType), st.text())
def test_any_text_is_parsed_or_refused(kind: ConfigType, text: str) -> None:
    """Users may write anything into a manifest."""
    try:
        parse(kind, text)
        reason = ""
    except ValueError as refused:
        reason = str(refused)

    assert reason.startswith(("Not a number", "Expected value")) or not reason


def test_an_empty_element_of_a_list_has_a_message_of_its_own_in_kafka_4() -> None:
    """Kafka 3.9 names the element as it does any other wrong one (ConfigDef.ValidList)."""
    found = [table["cleanup.policy"].read("delete,") for table in (TOPIC_CONFIGS, topic_config_table_4.TOPIC_CONFIGS)]

    assert [outcome.message for outcome in found if isinstance(outcome, InvalidValue)] == [
        "Invalid value  for configuration cleanup.policy: String must be one of: compact, delete",
        "Configuration 'cleanup.policy' values must not be empty.",
    ]
