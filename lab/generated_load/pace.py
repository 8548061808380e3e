"""Bytes in of each partition by hour, with rhythm, growth, bursts and noise; also for hours after the load, for forecasts."""

from __future__ import annotations

import numpy as np

from lab.generated_load.layout import Array, Layout

WEEKEND = 0.7
DAILY_SWING = 0.5
BURST_PART, BURST_TIMES = 0.002, 3.0
"""Part of the topics that have a burst in an hour, and the factor of their load in it."""

FIRST_HELD_HOURS = 48
"""Size of logs at the start, in hours of their rate."""


def bytes_in(layout: Layout, hour: int) -> Array:
    """Return the bytes in of each partition during an hour (float64)."""
    spec = layout.spec
    draw = np.random.default_rng([spec.seed, 1, hour])
    day = hour / 24
    daily = 1 + DAILY_SWING * np.cos(2 * np.pi * (hour % 24 - layout.t_phase) / 24)
    burst = np.where(draw.random(spec.topics) < BURST_PART, BURST_TIMES, 1.0)
    weekly = WEEKEND if int(day) % 7 >= 5 else 1.0
    factor = (daily * burst)[layout.topic] * weekly * np.exp(spec.growth_per_day * day)
    noise = np.exp(draw.normal(-(spec.noise**2) / 2, spec.noise, spec.partitions))
    return np.where(layout.there(hour), layout.rate * 3600 * factor * noise, 0.0)


def first_sizes(layout: Layout) -> Array:
    """Return the size of each log at the start, in bytes (float64)."""
    return layout.rate * 3600 * FIRST_HELD_HOURS
