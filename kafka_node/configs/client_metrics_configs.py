"""Configs of one subscription to the metrics of clients (KIP-714): which clients, which metrics, how often.

Source: ClientMetricsConfigs.
"""

import re
from collections.abc import Mapping

from kafka_node.configs.config_rules import InvalidValue, trim
from kafka_node.configs.resource_config_table import CLIENT_METRICS_CONFIGS
from kafka_wire import ErrorCode, Failure

INTERVAL_MS, MATCH = "interval.ms", "match"

LEAST_INTERVAL_MS, MOST_INTERVAL_MS = 100, 3_600_000

MATCHED = frozenset(
    (
        *("client_instance_id", "client_id", "client_software_name", "client_software_version"),
        *("client_source_address", "client_source_port"),
    )
)
"""Properties of a client that a pattern may match."""

_ONLY_JAVA = (
    (re.compile(r"\\[pP](?:\{[A-Za-z0-9_=]+\}|[A-Z])"), r"\\w"),
    (re.compile(r"\\[hHvVRXzZG]"), r"\\s"),
    (re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>"), r"(?P<\1>"),
    (re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>"), r"(?P=\1)"),
)
"""Parts of Java's patterns that Python writes in another way or does not have, and what is as valid in their place."""


def client_metrics_failure(name: str, configs: Mapping[str, str]) -> Failure | None:
    """Return why a subscription cannot have these configs; None if it can."""
    if not name:
        return Failure(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key in configs:
        if key not in CLIENT_METRICS_CONFIGS:
            return Failure(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}")
    values = {key: row.read(configs.get(key, row.default)) for key, row in CLIENT_METRICS_CONFIGS.items()}
    for value in values.values():
        if isinstance(value, InvalidValue):
            return Failure(ErrorCode.INVALID_CONFIG, value.message)
    interval_ms, patterns = values[INTERVAL_MS], values[MATCH]
    assert isinstance(interval_ms, int)
    assert isinstance(patterns, tuple)
    if not LEAST_INTERVAL_MS <= interval_ms <= MOST_INTERVAL_MS:
        message = f"Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between 100 and 3600000 (1 hour)"
        return Failure(ErrorCode.INVALID_REQUEST, message)
    for pattern in patterns:
        if not is_valid_match(pattern):
            return Failure(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
    return None


def is_valid_match(pattern: str) -> bool:
    """Return whether an entry of `match` is PARAMETER=REGULAR_EXPRESSION.

    >>> is_valid_match("client_id=app-.*"), is_valid_match("colour=red"), is_valid_match("client_id=["), is_valid_match("client_id=")
    (True, False, False, False)
    """
    # Java's split drops empty parts at the end.
    parts = pattern.rstrip("=").split("=")
    return len(parts) == 2 and trim(parts[0]) in MATCHED and _compiles(trim(parts[1]))


def _compiles(pattern: str) -> bool:
    """Return whether Java compiles a regular expression, as far as Python can determine: a broker that cannot compile it ignores the subscription."""
    for only_java, instead in _ONLY_JAVA:
        pattern = only_java.sub(instead, pattern)
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True
