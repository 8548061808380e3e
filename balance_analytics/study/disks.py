"""Each broker's disk: its growth and when it is full, as values of a result."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from balance_analytics.model import results
from balance_analytics.study.columns import BrokerColumns
from balance_analytics.study.forecast import FEWEST_GROWTHS, HORIZON_DAYS, METHOD, forecast
from balance_analytics.study.numbers import rounded
from balance_analytics.study.readings import readings

HOUR_S = 3600


def forecasts(
    brokers: BrokerColumns, capacities: Mapping[int, int]
) -> tuple[tuple[results.Forecast, ...], list[results.LeftOut]]:
    """Return a forecast for each broker with enough readings, and what is left out."""
    found: list[results.Forecast] = []
    short = 0
    unknown = 0
    for row, broker in enumerate(brokers.brokers.tolist()):
        known = np.flatnonzero(brokers.copies[row])
        if not len(known):
            short += 1
            continue
        capacity = capacities.get(broker)
        unknown += capacity is None
        chosen = readings(brokers.hours[known] // HOUR_S, brokers.disk_bytes[row, known], brokers.copies[row, known])
        ahead = forecast(chosen, float("inf") if capacity is None else float(capacity))
        if ahead is None:
            short += 1
            continue
        found.append(
            results.Forecast(
                broker=broker,
                disk_bytes=int(chosen.levels[-1]),
                capacity_bytes=capacity,
                growth_bytes_per_day=rounded(ahead.growth),
                days=_rounded(ahead.days),
                days_low=_rounded(ahead.low),
                days_high=_rounded(ahead.high),
                horizon_days=float(HORIZON_DAYS),
                method=METHOD,
            )
        )
    return tuple(found), [
        note
        for note in (
            results.LeftOut(
                f"disk forecasts of brokers with fewer than {FEWEST_GROWTHS} days of growth",
                short,
                "run this again in some days",
            ),
            results.LeftOut(
                "days until full of brokers whose disk size is not known", unknown, "give sizes with --brokers"
            ),
        )
        if note.count
    ]


def _rounded(days: float | None) -> float | None:
    return None if days is None else rounded(days)
