"""Result of a study: the contents of `<out>/result.json`, which the planner, the report and the operator read.

Rates are bytes or messages per second, times ISO 8601 strings in UTC, parts numbers from 0 to 1. `null` means unknown. Fields are in
the order of the file.
"""

from __future__ import annotations

from dataclasses import dataclass

RESULT_SCHEMA = 1
"""Incremented when a field changes its meaning or is removed, not when one is added."""

RESULT_NAME = "result.json"
MAX_HOT_PARTITIONS = 200
"""Limit of the list, which has the heaviest first; `hot_partitions_found` counts all."""

MAX_TOPICS = 100
"""Limit of the list, which has those first whose partitions differ most in bytes."""

MAX_HEAT_CELLS = 50_000
"""Limit of the heat map, at most half a megabyte of JSON: with more, each column covers several hours."""


@dataclass(frozen=True, slots=True)
class Window:
    """The studied time, from the start of the first hour to the end of the last."""

    start: str
    end: str
    hours: int
    """Hours between start and end."""
    hours_seen: int
    """Hours with at least one fact."""


@dataclass(frozen=True, slots=True)
class Skew:
    """How unevenly a resource is distributed over brokers, by their means over the window, without excluded brokers.

    `resource` is bytes_in, bytes_out, messages_in, disk or leaders. With an even distribution the three figures are 0, 1 and 0.
    """

    resource: str
    gini: float
    max_over_mean: float
    coefficient_of_variation: float
    source: str
    """Source of the resource: offsets, estimate, log size, metadata, none, or prometheus, with its part of the hours."""


@dataclass(frozen=True, slots=True)
class SkewAt:
    """Skew in one hour, for the chart of skew over time."""

    hour: str
    resource: str
    max_over_mean: float
    gini: float


@dataclass(frozen=True, slots=True)
class Broker:
    """Load of a broker. `hours_led` counts hours in which it was a leader; `counted` is whether skew includes it."""

    broker: int
    rack: str | None
    leaders: int
    preferred_leaders: int
    replicas: int
    bytes_in_mean: float
    bytes_in_p95: float
    bytes_out_mean: float | None
    messages_in_mean: float
    disk_bytes: int | None
    peak_hour: str | None
    trend: float | None
    hours_led: int
    counted: bool


@dataclass(frozen=True, slots=True)
class LeaderImbalance:
    """Partitions whose leader is not the preferred replica, as Kafka counts: of the cluster, and of the worst broker."""

    partitions: int
    not_preferred: int
    ratio: float
    worst_broker: int | None
    worst_ratio: float
    without_leader: int


@dataclass(frozen=True, slots=True)
class HotPartition:
    """A partition with too much load. `reason`: "uneven keys" or "too large for one broker" (`study/hot_partitions.py`)."""

    topic: str
    partition: int
    leader: int
    bytes_in_mean: float
    bytes_in_p95: float
    over_topic: float
    """Ratio to the median of its topic's partitions."""
    of_broker: float
    """Part of the mean load of a broker."""
    reason: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a broker's disk will be full, in days from the end of the window, with the 90 percent interval.

    `days`, `days_low` and `days_high` are null if beyond `horizon_days`, or if the capacity is unknown.
    """

    broker: int
    disk_bytes: int
    capacity_bytes: int | None
    growth_bytes_per_day: float
    days: float | None
    days_low: float | None
    days_high: float | None
    horizon_days: float
    method: str


@dataclass(frozen=True, slots=True)
class TopicSkew:
    """How unevenly a topic's bytes are distributed over its partitions, by keys. `partitions` counts those with a rate."""

    topic: str
    partitions: int
    bytes_in_mean: float
    gini: float
    max_over_mean: float


@dataclass(frozen=True, slots=True)
class HeavyKey:
    """A sampled key, as its hash, with bounds of its part of the messages."""

    key: str
    at_least: float
    at_most: float


@dataclass(frozen=True, slots=True)
class KeySkew:
    """Hot keys of a topic, by its sketch."""

    topic: str
    messages: int
    heavy: tuple[HeavyKey, ...]
    partition_floor: float
    """Part of the topic that at least one partition must carry, whatever the number of partitions."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Brokers x time: `bytes_in[i][j]` bytes/s of `brokers[i]` during `hours_per_column` from `hours[j]` on; null without facts."""

    hours_per_column: int
    hours: tuple[str, ...]
    brokers: tuple[int, ...]
    bytes_in: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Data that the study lacks: `what`, how much of it, and how to provide it next time."""

    what: str
    count: int
    remedy: str


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a study."""

    schema: int
    cluster_id: str
    window: Window
    partitions: int
    topics: int
    skew: tuple[Skew, ...]
    skew_over_time: tuple[SkewAt, ...]
    brokers: tuple[Broker, ...]
    leader_imbalance: LeaderImbalance
    hot_partitions_found: int
    hot_partitions: tuple[HotPartition, ...]
    hot_rule: str
    forecasts: tuple[Forecast, ...]
    topic_skew: tuple[TopicSkew, ...]
    key_skew: tuple[KeySkew, ...]
    heat_map: HeatMap
    left_out: tuple[LeftOut, ...]
