"""Which settings are set, reset and left alone."""

from __future__ import annotations

import pytest

from kafka_operator.decide.kafka.observed import ConfigValue
from kafka_operator.decide.topics.config import config_changes, same_value


def test_what_differs_is_set_and_what_was_ours_is_reset() -> None:
    """Only named settings and those that we may have set; foreign ones stay."""
    current = {name: ConfigValue(value, "STRING") for name, value in {"a": "1", "b": "2", "c": "3", "d": "4"}.items()}

    changes = config_changes({"a": "1", "b": "9", "e": "5"}, frozenset({"a", "b", "c", "z"}), current)

    assert changes == ((("b", "9"), ("e", "5")), ("c",))


@pytest.mark.parametrize(
    ("config_type", "wanted", "current", "same"),
    [
        ("LONG", " 007 ", "7", True),
        ("LONG", "7", "8", False),
        ("INT", "abc", "7", False),
        ("BOOLEAN", "True", "true", True),
        ("BOOLEAN", "yes", "true", False),
        ("DOUBLE", "1", "1.0", True),
        ("DOUBLE", "x", "1.0", False),
        ("LIST", "a ,b", "a,b", True),
        ("LIST", "b,a", "a,b", False),
        ("LIST", "", "", True),
        ("STRING", " zstd ", "zstd", True),
        ("STRING", "ZSTD", "zstd", False),
        ("", "x", "x", True),
    ],
)
def test_values_are_compared_as_kafka_parses_them(config_type: str, wanted: str, current: str, same: bool) -> None:
    """ConfigDef.parseType: numbers, booleans, lists, trimmed text."""
    assert same is same_value(wanted, ConfigValue(current, config_type))


def test_a_hidden_value_is_never_set_again() -> None:
    """It cannot be compared; it would be set at each poll (O7)."""
    assert same_value("secret", ConfigValue(None, "PASSWORD"))
