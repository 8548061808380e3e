"""The cluster of a load: topics by Zipf's law, partitions, replicas, and which partitions are hot.

Natural partitions have less than 3 times their topic's median and a tenth of a broker; planted ones have 8 times their topic's usual
load and a twentieth of a broker or more. The gap between the two is so wide that no reasonable rule confuses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.generated_load.spec import LoadSpec

REPLICATION_FACTOR = 3
SMALLEST_HOT_TOPIC = 6
"""Partitions: a hot one among fewer would be a part of what is usual there."""

HOT_TIMES, HOT_OF_BROKER, NATURAL_OF_BROKER = 8.0, 0.06, 0.1

Array = Any
"""A numpy array; each use documents its type."""


@dataclass(frozen=True, slots=True, eq=False)
class Outage:
    """A broker that is down from hour `begin` to before hour `end`."""

    broker: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Columns over partitions (`topic` contains indexes of `names`), over topics (`t_...`), and events with their times."""

    spec: LoadSpec
    names: list[str]
    topic: Array
    partition: Array
    replicas: Array
    """int32 (partitions, 3)."""
    away: Array
    """bool: led by the second replica."""
    rate: Array
    """bytes/s at the start, before rhythm."""
    hot: Array
    t_record_bytes: Array
    t_groups: Array
    t_phase: Array
    t_kept: Array
    """Part of the bytes in that is kept; retention deletes the rest."""
    outages: list[Outage]
    gaps: list[tuple[int, int]]
    """First and last minute without a sample, counted from the start."""
    resets: dict[int, int]
    """Row of the partition -> hour."""
    deleted: dict[int, int]
    """Topic -> first hour without it."""

    def leaders(self, hour: int) -> Array:
        """Return the leader of each partition in an hour: the preferred replica or the one after, past those that are down."""
        order = np.where(self.away[:, None], self.replicas[:, [1, 0, 2]], self.replicas)
        for broker in self.down(hour):
            order = np.where((order[:, :1] == broker), np.roll(order, -1, axis=1), order)
        return order[:, 0]

    def down(self, hour: int) -> list[int]:
        """Return the brokers that are down in an hour; never two at once."""
        return [outage.broker for outage in self.outages if outage.begin <= hour < outage.end]

    def there(self, hour: int) -> Array:
        """Return for each partition whether its topic still exists."""
        alive = np.ones(len(self.names), dtype=bool)
        for topic, end in self.deleted.items():
            alive[topic] = hour < end
        return alive[self.topic]


def lay_out(spec: LoadSpec) -> Layout:
    """Draw a cluster."""
    draw = np.random.default_rng([spec.seed, 0])
    topic, partition = _partitions(spec)
    rate, hot = _rates(spec, topic, draw)
    deleted, resets = _happenings(spec, topic, rate, hot, draw)
    return Layout(
        spec=spec,
        names=[f"topic-{number:05d}" for number in range(spec.topics)],
        topic=topic,
        partition=partition,
        replicas=_replicas(spec, draw),
        away=draw.random(spec.partitions) < spec.not_preferred,
        rate=rate,
        hot=hot,
        t_record_bytes=draw.integers(100, 2000, spec.topics),
        t_groups=draw.integers(1, 4, spec.topics),
        t_phase=draw.normal(14, 2, spec.topics),
        t_kept=draw.uniform(0.3, 1.0, spec.topics),
        outages=_outages(spec, draw),
        gaps=_gaps(spec, draw),
        resets=resets,
        deleted=deleted,
    )


def _partitions(spec: LoadSpec) -> tuple[Array, Array]:
    """Deal partitions to topics, many to the first ones, at least one to each."""
    weights = 1 / np.arange(1, spec.topics + 1) ** 0.7
    spare = spec.partitions - spec.topics
    counts = 1 + np.floor(spare * weights / weights.sum()).astype(np.int64)
    counts[: spec.partitions - int(counts.sum())] += 1
    topic = np.repeat(np.arange(spec.topics), counts)
    return topic, np.arange(spec.partitions) - np.repeat(np.cumsum(counts) - counts, counts)


def _rates(spec: LoadSpec, topic: Array, draw: np.random.Generator) -> tuple[Array, Array]:
    counts = np.bincount(topic)
    of_topic = 1 / np.arange(1, spec.topics + 1) ** 0.9
    rate = (of_topic / counts)[topic] * np.clip(draw.lognormal(0, 0.3, spec.partitions), 0.6, 1.6)
    rate *= spec.broker_bytes * spec.brokers / rate.sum()
    rate = np.minimum(rate, NATURAL_OF_BROKER * spec.broker_bytes)
    hot = np.zeros(spec.partitions, dtype=bool)
    large = np.flatnonzero(counts >= SMALLEST_HOT_TOPIC)
    # One in a topic, again from the first topic on when there are more: a topic's median stays that of natural ones.
    begins = np.cumsum(counts) - counts
    for number in range(spec.hot if len(large) else 0):
        which = large[number % len(large)]
        row = begins[which] + draw.integers(counts[which])
        usual = float(np.median(rate[topic == which]))
        rate[row] = max(HOT_TIMES * usual, HOT_OF_BROKER * spec.broker_bytes)
        hot[row] = True
    return rate, hot


def _replicas(spec: LoadSpec, draw: np.random.Generator) -> Array:
    """Draw three distinct brokers each; the first by uneven weights, so that there is skew to find."""
    weights = draw.uniform(0.5, 1.5, spec.brokers)
    first = draw.choice(spec.brokers, spec.partitions, p=weights / weights.sum())
    step = draw.integers(1, spec.brokers, spec.partitions)
    further = draw.integers(1, spec.brokers - 1, spec.partitions)
    second = (first + step) % spec.brokers
    third = (first + 1 + (step - 1 + further) % (spec.brokers - 1)) % spec.brokers
    return np.stack([first, second, third], axis=1).astype(np.int32) + 1


def _outages(spec: LoadSpec, draw: np.random.Generator) -> list[Outage]:
    found = []
    length = spec.hours // (spec.outages + 1) if spec.outages else 0
    for number, broker in enumerate(draw.permutation(spec.brokers)[: spec.outages]):
        begin = number * length + int(draw.integers(1, max(2, length // 2)))
        found.append(Outage(int(broker) + 1, begin, begin + int(draw.integers(1, 4))))
    return found


def _gaps(spec: LoadSpec, draw: np.random.Generator) -> list[tuple[int, int]]:
    minutes = spec.hours * 60
    begins = draw.integers(30, max(31, minutes - 200), spec.gaps)
    return [(int(begin), int(begin + draw.integers(5, 90))) for begin in begins]


def _happenings(
    spec: LoadSpec, topic: Array, rate: Array, hot: Array, draw: np.random.Generator
) -> tuple[dict[int, int], dict[int, int]]:
    """Choose topics that are deleted, and partitions of other topics that are created again: small and natural ones."""
    half = spec.hours // 2
    last = range(spec.topics - spec.deleted_topics, spec.topics)
    deleted = {number: half + int(draw.integers(half // 2)) for number in last}
    small = np.flatnonzero((rate <= np.median(rate)) & ~hot & (topic < spec.topics - spec.deleted_topics))
    chosen = draw.choice(small, min(spec.resets, len(small)), replace=False)
    return deleted, {int(row): int(draw.integers(1, spec.hours - 1)) for row in chosen}
