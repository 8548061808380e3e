"""What a study found, as values: the content of `<out>/result.json`, which the planner, the report and the operator read.

Every rate is bytes or messages per second, every time an ISO 8601 string in UTC, every part a number from 0 to 1. `null` stands for
what is not known. Field order is the file's order. Leaves out JSON (`results_json`) and the figures' arithmetic (`study`).
"""

from __future__ import annotations

from dataclasses import dataclass

RESULT_SCHEMA = 1
"""Raised when a field changes its meaning or goes; a new field alone does not raise it."""

RESULT_NAME = "result.json"
MAX_HOT_PARTITIONS = 200
"""Listed, the heaviest first; `hot_partitions_found` counts all. More than a page of them is no list that anybody reads."""

MAX_TOPICS = 100
"""Listed, those first whose partitions differ most in bytes."""

MAX_HEAT_CELLS = 50_000
"""Of the heat map: with more, columns take several hours each. Half a megabyte of JSON at the most."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time studied: from the first hour's start to the last one's end."""

    start: str
    end: str
    hours: int
    """Hours between the two."""
    hours_seen: int
    """Hours with any fact."""


@dataclass(frozen=True, slots=True)
class Skew:
    """How unevenly brokers share a resource: over their means of the window, brokers left out excepted.

    `resource` is bytes_in, bytes_out, messages_in, disk or leaders. All three figures are 0, 1 and 0 when all carry the same.
    """

    resource: str
    gini: float
    max_over_mean: float
    coefficient_of_variation: float
    source: str
    """Where the resource comes from: offsets, estimate, log size, metadata, none; prometheus, or in which part of the hours."""


@dataclass(frozen=True, slots=True)
class SkewAt:
    """The same at one time, for the line of skew over time."""

    hour: str
    resource: str
    max_over_mean: float
    gini: float


@dataclass(frozen=True, slots=True)
class Broker:
    """What a broker carried. `hours_led` counts hours in which it led anything; `counted` says whether skew looks at it."""

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
    """Partitions whose leader is not the preferred replica, as Kafka counts: all over, and of the worst broker."""

    partitions: int
    not_preferred: int
    ratio: float
    worst_broker: int | None
    worst_ratio: float
    without_leader: int


@dataclass(frozen=True, slots=True)
class HotPartition:
    """A partition that weighs too much. `reason`: "uneven keys" or "too large for one broker" (`study/hot_partitions.py`)."""

    topic: str
    partition: int
    leader: int
    bytes_in_mean: float
    bytes_in_p95: float
    over_topic: float
    """Times the median of its topic's partitions."""
    of_broker: float
    """Part of what a broker carries on the average."""
    reason: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a broker's disk is full, in days from the window's end, and the 90 percent interval around it.

    `days`, `days_low`, `days_high` are null where that lies beyond `horizon_days`; all are when the capacity is not known.
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
    """How unevenly a topic's partitions share its bytes: what keys do. `partitions` have a rate."""

    topic: str
    partitions: int
    bytes_in_mean: float
    gini: float
    max_over_mean: float


@dataclass(frozen=True, slots=True)
class HeavyKey:
    """A key of the sampled histogram, as its hash, with the part of messages that it has at least and at most."""

    key: str
    at_least: float
    at_most: float


@dataclass(frozen=True, slots=True)
class KeySkew:
    """What a sketch of a topic's keys says."""

    topic: str
    messages: int
    heavy: tuple[HeavyKey, ...]
    partition_floor: float
    """Part of the topic that at least one partition must carry, whatever the number of partitions."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Brokers x time: `bytes_in[i][j]` bytes/s of `brokers[i]` from `hours[j]` on, for `hours_per_column`; null: no fact."""

    hours_per_column: int
    hours: tuple[str, ...]
    brokers: tuple[int, ...]
    bytes_in: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What the study went on without: `what`, how much of it, and what to do so that it is there next time."""

    what: str
    count: int
    remedy: str


@dataclass(frozen=True, slots=True)
class Result:
    """All that a study found."""

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
