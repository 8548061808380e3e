"""Results as JSON: parsing returns the written result, and rejects invalid text with the reason."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from balance_analytics.model.results import (
    Forecast,
    HeatMap,
    HeavyKey,
    KeySkew,
    LeaderImbalance,
    LeftOut,
    Result,
    Skew,
    Window,
)
from balance_analytics.model.results_json import ResultError, from_json, to_json

RESULT = Result(
    schema=1,
    cluster_id="c",
    window=Window("2026-01-01T00:00:00Z", "2026-01-15T00:00:00Z", 336, 330),
    partitions=2,
    topics=1,
    skew=(Skew("bytes_in", 0.25, 2.0, 0.5, "offsets"),),
    skew_over_time=(),
    brokers=(),
    leader_imbalance=LeaderImbalance(2, 1, 0.5, 3, 1.0, 0),
    hot_partitions_found=0,
    hot_partitions=(),
    hot_rule="a rule",
    forecasts=(Forecast(1, 5, None, 1.5, None, None, None, 365.0, "a method"),),
    topic_skew=(),
    key_skew=(KeySkew("t", 10, (HeavyKey("k", 0.5, 0.6),), 0.5),),
    heat_map=HeatMap(1, ("2026-01-01T00:00:00Z",), (1, 2), ((7,), (None,))),
    left_out=(LeftOut("a file", 1, "write it again"),),
)


def test_parsing_returns_the_written_result() -> None:
    """Writing it again gives the same text."""
    text = to_json(RESULT)

    assert from_json(text) == RESULT
    assert to_json(from_json(text)) == text


def test_unknown_fields_are_ignored() -> None:
    """A newer version may have added them."""
    assert from_json(json.dumps({**json.loads(to_json(RESULT)), "weather": "fair"})) == RESULT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "schema None"),
        (to_json(replace(RESULT, schema=2)), "schema 2, this version reads 1"),
        (to_json(RESULT).replace('"gini": 0.25', '"gini": "a"'), r"skew\[0\].gini is str, not float"),
        (to_json(RESULT).replace('"partitions": 2,', ""), "result lacks partitions"),
        (to_json(RESULT).replace('"partitions": 2,', '"partitions": true,', 1), "is bool, not int"),
    ],
)
def test_invalid_results_are_rejected_with_the_reason(text: str, message: str) -> None:
    """The error names the field and the problem."""
    with pytest.raises(ResultError, match=message):
        from_json(text)
