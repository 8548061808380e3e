"""True results of a load, computed in a simple way from the generated traffic: the reference for every study of it.

It does not use code of the study, so that errors there are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lab.generated_load.layout import Layout
from lab.generated_load.state import hours

MAX_DAYS_AHEAD = 120


@dataclass(frozen=True, slots=True)
class Truth:
    """`hot` names partitions; skew figures are over brokers' mean bytes in; disks are by broker."""

    hot: frozenset[tuple[str, int]]
    gini: float
    max_over_mean: float
    coefficient_of_variation: float
    broker_bytes_in: Mapping[int, float]
    """bytes/s, mean over the load."""
    not_preferred: int
    """Partitions that another replica than the preferred one leads at the end."""
    disk_bytes: Mapping[int, float]
    """Bytes on the disk at the end."""
    disk_growth: Mapping[int, float]
    """Bytes a day, mean over the load."""
    peak_hour: int
    """Hour of the load with the most bytes in, over all brokers."""


def truth_of(layout: Layout) -> Truth:
    """Compute the truth in one pass over the load."""
    spec = layout.spec
    ids = np.arange(1, spec.brokers + 1)
    led = np.zeros(spec.brokers)
    first = last = np.zeros(spec.brokers)
    highest, peak_hour = -1.0, 0
    alive = layout.there(spec.hours - 1)
    for hour in hours(layout):
        taken = hour.messages * layout.t_record_bytes[layout.topic]
        led += np.bincount(hour.leader, weights=np.where(alive, taken, 0), minlength=spec.brokers + 1)[1:]
        if hour.hour == 0:
            first = _held(layout, np.where(alive, hour.size, 0))
        last = _held(layout, np.where(alive, hour.size + hour.kept, 0))
        if taken.sum() > highest:
            highest, peak_hour = float(taken.sum()), hour.hour
    means = (led / (spec.hours * 3600)).tolist()
    mean = sum(means) / len(means)
    pairs = sum(abs(mean - other) for mean in means for other in means)
    return Truth(
        hot=frozenset(
            (layout.names[layout.topic[row]], int(layout.partition[row])) for row in np.flatnonzero(layout.hot)
        ),
        gini=pairs / (2 * len(means) ** 2 * mean),
        max_over_mean=max(means) / mean,
        coefficient_of_variation=(sum((value - mean) ** 2 for value in means) / len(means)) ** 0.5 / mean,
        broker_bytes_in=dict(zip(ids.tolist(), means, strict=True)),
        not_preferred=int((layout.leaders(spec.hours - 1) != layout.replicas[:, 0])[alive].sum()),
        disk_bytes=dict(zip(ids.tolist(), last.tolist(), strict=True)),
        disk_growth=dict(zip(ids.tolist(), ((last - first) / spec.days).tolist(), strict=True)),
        peak_hour=peak_hour,
    )


def days_until_full(layout: Layout, capacities: Mapping[int, float]) -> dict[int, float]:
    """Continue the load until each disk is full, and return the days from its end by broker; infinite after `MAX_DAYS_AHEAD`."""
    found = dict.fromkeys(capacities, float("inf"))
    alive = layout.there(layout.spec.hours - 1)
    for hour in hours(layout, layout.spec.hours + MAX_DAYS_AHEAD * 24):
        ahead = hour.hour + 1 - layout.spec.hours
        if ahead <= 0:
            continue
        held = _held(layout, np.where(alive, hour.size + hour.kept, 0))
        for broker, capacity in capacities.items():
            if found[broker] == float("inf") and held[broker - 1] >= capacity:
                found[broker] = ahead / 24
        if float("inf") not in found.values():
            break
    return found


def _held(layout: Layout, size: np.ndarray) -> np.ndarray:
    """Return the bytes on the disk of each broker; each replica has the size of the log."""
    held = sum(
        np.bincount(layout.replicas[:, slot], weights=size, minlength=layout.spec.brokers + 1) for slot in range(3)
    )
    return np.asarray(held)[1:]
