"""A result's JSON is read back as it was, and what is no result is refused in words."""

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
    left_out=(LeftOut("a file", 1, "write it anew"),),
)


def test_a_result_is_read_back_as_it_was() -> None:
    """And written to the same bytes again."""
    text = to_json(RESULT)

    assert from_json(text) == RESULT
    assert text == to_json(from_json(text))


def test_a_field_that_is_new_is_passed_over() -> None:
    """A newer study may say more."""
    assert from_json(json.dumps({**json.loads(to_json(RESULT)), "weather": "fair"})) == RESULT


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[]", "schema None"),
        (to_json(replace(RESULT, schema=2)), "schema 2, this version reads 1"),
        (to_json(RESULT).replace('"gini": 0.25', '"gini": "a"'), r"skew\[0\].gini is str, not float"),
        (to_json(RESULT).replace('"partitions": 2,', ""), "result lacks partitions"),
        (to_json(RESULT).replace('"partitions": 2,', '"partitions": true,', 1), "is bool, not int"),
    ],
)
def test_what_is_no_result_is_refused_in_words(text: str, told: str) -> None:
    """The place and what is wrong there."""
    with pytest.raises(ResultError, match=told):
        from_json(text)
