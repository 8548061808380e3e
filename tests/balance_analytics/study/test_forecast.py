"""The forecast of a full disk holds what its interval promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.study.forecast import FEWEST_GROWTHS, HORIZON_DAYS, Forecast, Readings, forecast
from balance_analytics.study.readings import readings
from balance_analytics.study.student import t95

DAYS = 14
SEEDS = 400


def grown(levels: np.ndarray) -> Readings:
    """Readings on days in a row."""
    return Readings(np.arange(float(len(levels))), levels, np.ones(len(levels) - 1, dtype=bool))


def a_disk(seed: int, noise: float) -> tuple[float, Forecast]:
    """A disk with weekends, compound growth, uneven days and bursts, and not as the fit would have it: its true day, and ours."""
    draw = np.random.default_rng(seed)
    day = np.arange(DAYS + HORIZON_DAYS)
    growth = 1e9 * np.exp(0.002 * day) * (1 - 0.3 * np.isin((day + seed) % 7, (5, 6)))
    growth *= np.exp(draw.normal(0, noise, len(day)) - noise**2 / 2) * np.where(draw.random(len(day)) < 0.02, 1.5, 1)
    levels = np.concatenate(([5e9], 5e9 + np.cumsum(growth)))
    capacity = levels[DAYS] + 0.91e9 * draw.uniform(5, 60)
    full = int(np.flatnonzero(levels >= capacity)[0]) - 1
    true_day = full - DAYS + (capacity - levels[full]) / (levels[full + 1] - levels[full])
    found = forecast(grown(levels[: DAYS + 1]), capacity)
    assert found is not None
    return true_day, found


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.3])
def test_the_interval_covers_the_truth_in_ninety_of_a_hundred_seeds(noise: float) -> None:
    """Over quiet and wild disks, each the future of its own past."""
    covered = 0
    for seed in range(SEEDS):
        true_day, found = a_disk(seed, noise)
        low = math.inf if found.low is None else found.low
        high = math.inf if found.high is None else found.high
        covered += low <= true_day <= high

    assert covered >= 0.9 * SEEDS


def test_a_quiet_disk_has_a_narrow_interval() -> None:
    """Ninety percent are no art with an interval of a year."""
    widths = []
    for seed in range(50):
        day, found = a_disk(seed, 0.03)
        if found.low is not None and found.high is not None:
            widths.append((found.high - found.low) / day)

    assert len(widths) > 45
    assert float(np.median(widths)) < 0.4


@given(st.floats(1, 1e9), st.floats(0, 1e12), st.floats(1.5, 200), st.integers(FEWEST_GROWTHS + 1, 40))
def test_a_straight_line_is_full_at_its_time(growth: float, base: float, days: float, count: int) -> None:
    """Without noise the interval is the day itself, or that and a neighbour; rounding adds both neighbours where a day ends."""
    levels = base + growth * np.arange(float(count))

    found = forecast(grown(levels), levels[-1] + growth * days)

    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert pytest.approx(days, rel=0.02) == found.days
    assert found.low - 1e-5 <= days <= found.high + 1e-5
    neighbours = 1 if abs(days - round(days)) < 1e-3 else 0
    assert found.high - found.low <= 1 + neighbours + 0.04 * days + 1e-6


@pytest.mark.parametrize("origin", [0.0, 20_000.0])
def test_growth_that_grows_is_seen_whatever_days_are_counted_from(origin: float) -> None:
    """A tenth of a day's growth more each day; days since 1970 are large numbers."""
    levels = np.cumsum(1 + 0.1 * np.arange(40.0))

    found = forecast(Readings(origin + np.arange(15.0), levels[:15], np.ones(14, dtype=bool)), float(levels[29]))

    assert found is not None
    assert pytest.approx(15, abs=0.01) == found.days


def test_what_does_not_grow_is_never_full() -> None:
    """Beyond the horizon there is no forecast."""
    found = forecast(grown(np.full(15, 7e9)), 8e9)

    assert found == Forecast(None, None, None, 0.0)


def test_a_full_disk_is_full_today() -> None:
    """Whatever its history."""
    found = forecast(grown(np.linspace(1e9, 9e9, 15)), 8e9)

    assert found is not None
    assert (found.low, found.days, found.high) == (0.0, 0.0, 0.0)


def test_a_few_days_give_no_forecast() -> None:
    """Three growths are too few for a forecast."""
    assert forecast(grown(np.arange(4.0)), 100.0) is None


def test_hours_with_copies_unknown_and_days_with_replicas_moved_are_not_read() -> None:
    """The dip was not measured, and the jump is no growth."""
    hours = np.arange(72)
    levels, copies = 10.0 * np.arange(72.0), np.full(72, 1000)
    copies[23], levels[23] = 600, 100.0
    copies[48:], levels[48:] = 1200, levels[48:] + 5000

    chosen = readings(hours, levels, copies)

    assert chosen.levels.tolist() == [0.0, 220.0, 470.0, 5710.0]
    assert chosen.fit.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("degrees", "point"), [(1, 6.314), (6, 1.943), (10, 1.812), (20, 1.725), (60, 1.671), (120, 1.658)]
)
def test_students_t_is_as_tables_have_it(degrees: int, point: float) -> None:
    """The 0.95 column of any printed table."""
    assert pytest.approx(point, abs=2e-3) == t95(degrees)
