"""A study finds what the generator planted, over seeds: hot partitions, skew, leader imbalance, full disks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from balance_analytics.model.results import MAX_HEAT_CELLS
from balance_analytics.model.results_json import from_json, to_json
from balance_analytics.study.answer import study
from balance_analytics.study.heat_map import heat_map
from balance_analytics.study.key_skew import KeySketch
from lab.generated_load import truth_of
from lab.generated_load.truth import days_until_full
from tests.balance_analytics.generated import question, seeded

SEEDS = range(8)
FORECAST_SEEDS = range(10)


@pytest.mark.slow
def test_hot_partitions_are_found_and_no_others() -> None:
    """Precision and recall of 0.95 and more, over all seeds together."""
    hits = found = planted = 0
    for seed in SEEDS:
        layout = seeded(seed)
        hot = {
            (hot_partition.topic, hot_partition.partition)
            for hot_partition in study(question(layout), ()).hot_partitions
        }
        truth = truth_of(layout).hot
        hits, found, planted = hits + len(hot & truth), found + len(hot), planted + len(truth)

    assert hits / found >= 0.95
    assert hits / planted >= 0.95
    assert planted == len(SEEDS) * 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_skew_is_within_two_percent_of_the_truth(seed: int) -> None:
    """And leader imbalance is counted exactly."""
    layout = seeded(seed)
    truth = truth_of(layout)

    result = study(question(layout), ())

    found = next(skew for skew in result.skew if skew.resource == "bytes_in")
    expected = (truth.gini, truth.max_over_mean, truth.coefficient_of_variation)
    assert pytest.approx(expected, rel=0.02) == (found.gini, found.max_over_mean, found.coefficient_of_variation)
    assert truth.not_preferred == result.leader_imbalance.not_preferred


@pytest.mark.slow
def test_full_disks_lie_in_their_intervals_in_nine_of_ten_cases() -> None:
    """Generated load goes on after the window until each disk is full; its brokers share days, so that seeds count, not disks."""
    covered = total = 0
    for seed in FORECAST_SEEDS:
        layout = seeded(seed, partitions=40, topics=6, hot=1, deleted_topics=0, resets=0)
        truth = truth_of(layout)
        capacities = {broker: int(truth.disk_bytes[broker] + 20 * truth.disk_growth[broker]) for broker in (1, 2)}
        days = days_until_full(layout, capacities)
        for forecast in study(question(layout, capacities), ()).forecasts:
            if forecast.broker in days:
                low = forecast.days_low if forecast.days_low is not None else float("inf")
                high = forecast.days_high if forecast.days_high is not None else float("inf")
                covered += low <= days[forecast.broker] <= high
                total += 1

    assert total == 2 * len(FORECAST_SEEDS)
    assert covered / total >= 0.9


def test_a_broker_missing_in_half_of_the_hours_is_named_and_not_counted() -> None:
    """It would let all others appear loaded."""
    asked = question(seeded(1))
    brokers = asked.brokers
    for columns in (brokers.led, brokers.bytes_in):
        columns[2, : 3 * columns.shape[1] // 5] = 0

    result = study(asked, ())

    assert [broker.counted for broker in result.brokers if broker.broker == 3] == [False]
    assert any("broker 3 led nothing in 201 of 336 hours" in note.what for note in result.left_out)


def test_a_result_is_one_small_json() -> None:
    """With every figure of it a number that JSON has."""
    result = study(question(seeded(2), {1: 10**15}), ())

    text = to_json(result)

    assert result == from_json(text)
    assert len(text) < 200_000


def test_a_heat_map_of_many_brokers_takes_wider_columns() -> None:
    """Its mean stays; its size does not grow."""
    brokers = question(seeded(1)).brokers
    wide = replace(
        brokers,
        brokers=np.arange(500),
        led=np.tile(brokers.led, (100, 1)),
        bytes_in=np.tile(brokers.bytes_in, (100, 1)),
    )

    found = heat_map(wide)

    assert (found.hours_per_column, len(found.hours)) == (4, 84)
    assert len(found.brokers) * len(found.hours) <= MAX_HEAT_CELLS
    assert pytest.approx(brokers.bytes_in[0].mean(), rel=1e-6) == np.mean(found.bytes_in[0])


def test_heavy_keys_are_listed_with_what_they_have_at_least_and_at_most() -> None:
    """However many partitions there are, one of them carries the heaviest key."""
    sketch = KeySketch(counters=2).adding({"a": 60, "b": 30, "c": 10})

    (found,) = study(replace(question(seeded(1)), sketches={"t": sketch}), ()).key_skew

    assert (found.topic, found.messages, found.partition_floor) == ("t", 100, 0.5)
    assert [(heavy_key.key, heavy_key.at_least, heavy_key.at_most) for heavy_key in found.heavy] == [
        ("a", 0.5, 0.6),
        ("b", 0.2, 0.3),
    ]
