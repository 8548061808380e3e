"""Configs of subscriptions to client metrics (KIP-714). Kafka's controller is the judge in `tests/integration/test_kafka_4_configs.py`."""

import pytest

from kafka_node.configs.client_metrics_configs import client_metrics_failure, is_valid_match
from kafka_node.configs.described_configs import ConfigSource, client_metrics_entry
from kafka_node.configs.documentation import client_metrics_documentation
from kafka_node.configs.resource_config_table import CLIENT_METRICS_CONFIGS
from kafka_wire import ErrorCode, Failure


@pytest.mark.parametrize(
    ("name", "configs", "code", "message"),
    [
        ("", {}, ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        ("a", {"colour": "red"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: colour"),
        (
            "a",
            {"interval.ms": "99"},
            ErrorCode.INVALID_REQUEST,
            "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ("a", {"metrics": "a,,b"}, ErrorCode.INVALID_CONFIG, "Configuration 'metrics' values must not be empty."),
        ("a", {"match": "colour=red"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: colour=red"),
    ],
)
def test_a_wrong_subscription_is_refused(name: str, configs: dict[str, str], code: ErrorCode, message: str) -> None:
    """ClientMetricsConfigs.validate."""
    assert client_metrics_failure(name, configs) == Failure(code, message)


@pytest.mark.parametrize("interval_ms", ["100", "3600000"])
def test_a_subscription_pushes_metrics_at_least_once_an_hour(interval_ms: str) -> None:
    """Both bounds are included."""
    assert client_metrics_failure("a", {"interval.ms": interval_ms, "metrics": "*"}) is None


@pytest.mark.parametrize(
    ("pattern", "is_valid"),
    [
        ("client_id=app-.*", True),
        (" client_source_port = [0-9]+ ", True),
        (r"client_software_name=\p{Alpha}+", True),
        (r"client_software_name=(?<kind>a|b)\k<kind>", True),
        ("client_id==", False),
        ("client_id=a=b", False),
        ("client_id=(", False),
        ("client_id=" + "(" * 5_000, False),
    ],
)
def test_a_match_is_a_parameter_and_a_regular_expression(pattern: str, is_valid: bool) -> None:
    """Java's patterns have parts that Python's do not have."""
    assert is_valid_match(pattern) is is_valid


def test_the_entry_of_a_subscription_has_each_word_once() -> None:
    """ConfigDef.parseValue removes repeated ones."""
    entry, default = client_metrics_entry("metrics", {"metrics": "a,b,a"}), client_metrics_entry("interval.ms", {})

    assert (entry.value, entry.source) == ("a,b", ConfigSource.CLIENT_METRICS)
    assert (default.value, default.source, default.synonyms) == ("300000", ConfigSource.DEFAULT, ())
    assert client_metrics_entry("interval.ms", {"interval.ms": "x"}).value == "300000"
    assert [name for name in CLIENT_METRICS_CONFIGS if client_metrics_documentation(name) is None] == []
