"""Skew, series, leader imbalance and hot partitions agree with their definitions, written in a simple way."""

from __future__ import annotations

import math
import statistics
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.study import hot_partitions, leadership, series, skew

LOADS = st.lists(st.floats(0, 1e9).map(lambda load: round(load, 3)), min_size=1, max_size=30)


def plain_gini(loads: list[float]) -> float:
    """Half the mean difference between any two (each pair both ways, and with itself), over the mean."""
    mean = sum(loads) / len(loads)
    differences = 2 * sum(abs(load - other) for load, other in combinations(loads, 2))
    return differences / (2 * len(loads) ** 2 * mean) if mean else 0.0


@given(LOADS)
def test_skew_is_what_its_definitions_say(loads: list[float]) -> None:
    """Gini over pairs, maximum over mean, population deviation over mean."""
    mean = statistics.fmean(loads)
    expected = (
        plain_gini(loads),
        max(loads) / mean if mean else 1.0,
        statistics.pstdev(loads) / mean if mean else 0.0,
    )

    found = skew.unevenness(np.array(loads))

    assert pytest.approx(expected, rel=1e-6, abs=1e-6) == (
        found.gini,
        found.max_over_mean,
        found.coefficient_of_variation,
    )


@given(LOADS, st.floats(0.5, 8))
def test_skew_does_not_depend_on_the_unit_or_the_order(loads: list[float], factor: float) -> None:
    """Bytes or kilobytes, brokers in any order: a figure of sharing alone."""
    one = skew.gini(np.array(loads))
    other = skew.gini(np.array(loads[::-1]) * factor)

    assert pytest.approx(one, abs=1e-9) == other


def test_nothing_to_share_is_shared_evenly() -> None:
    """Zero loads, and no brokers at all, are no division by zero."""
    for nothing in (np.zeros(3), np.zeros(0)):
        assert skew.unevenness(nothing) == skew.Unevenness(0.0, 1.0, 0.0)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=1, max_size=60))
def test_a_series_counts_known_hours_alone(rates: list[float | None]) -> None:
    """Mean, nearest-rank percentile and the first busiest hour, over the hours that are known."""
    known = [rate for rate in rates if rate is not None]

    found = series.summary(np.array([math.nan if rate is None else rate for rate in rates]))

    if not known:
        assert found is None
        return
    rank = max(1, math.ceil(0.95 * len(known)))
    assert found is not None
    assert (len(known), sorted(known)[rank - 1], max(known), rates.index(max(known))) == (
        found.hours,
        found.p95,
        found.peak,
        found.peak_at,
    )
    assert pytest.approx(statistics.fmean(known)) == found.mean


@given(st.floats(-100, 100), st.floats(-1e4, 1e4), st.integers(2, 60))
def test_a_line_has_its_own_slope(slope: float, base: float, hours: int) -> None:
    """Least squares of a straight line is the line."""
    times = np.arange(float(hours))

    assert pytest.approx(slope, abs=1e-6) == series.slope(times, base + slope * times)


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 4)), max_size=40))
def test_leader_imbalance_is_counted_as_kafka_counts(pairs: list[tuple[int, int]]) -> None:
    """KafkaController.checkAndTriggerAutoLeaderRebalance: by the broker that is preferred."""
    found = leadership.imbalance(
        np.array([leader for leader, _ in pairs], dtype=np.int64),
        np.array([first for _, first in pairs], dtype=np.int64),
    )

    away = {
        broker: statistics.fmean([leader != broker for leader, first in pairs if first == broker])
        for broker in {first for _, first in pairs}
    }
    worst = min(away, key=lambda broker: (-away[broker], broker), default=None)
    assert (sum(leader != first for leader, first in pairs), worst) == (found.not_preferred, found.worst_broker)
    assert pytest.approx(max(away.values(), default=0.0)) == found.worst_ratio
    assert sum(leader == -1 for leader, _ in pairs) == found.without_leader


# The median of some topics is as small as a number can be: a load is then infinitely many times the median.
@pytest.mark.filterwarnings("ignore:overflow encountered in divide:RuntimeWarning")
@given(st.lists(st.lists(st.floats(0, 1e6), min_size=1, max_size=9), min_size=1, max_size=6), st.integers(1, 12))
def test_hot_partitions_follow_the_rule(topics: list[list[float]], brokers: int) -> None:
    """The two sentences of the module, partition by partition."""
    loads = [load for topic in topics for load in topic]
    numbers = [number for number, topic in enumerate(topics) for _ in topic]
    mean_broker = sum(loads) / brokers

    expected = []
    for topic in topics:
        median = statistics.median_low(topic)
        for load in topic:
            uneven = len(topic) >= 4 and load >= 4 * median and load > 0 and load >= 0.02 * mean_broker
            expected.append(mean_broker > 0 and (uneven or load >= 0.25 * mean_broker))

    found = hot_partitions.heat(np.array(loads), np.array(numbers), brokers)

    near = np.isclose(found.of_broker, 0.25) | np.isclose(found.of_broker, 0.02) | np.isclose(found.over_topic, 4)
    assert [row for row, edge in zip(expected, near, strict=True) if not edge] == found.hot[~near].tolist()
