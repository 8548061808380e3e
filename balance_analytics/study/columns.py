"""The input of a study: loads of partitions and brokers as columns, and what is known about brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from balance_analytics.study.arrays import FloatArray, IntArray
from balance_analytics.study.key_skew import KeySketch


@dataclass(frozen=True, slots=True, eq=False)
class PartitionColumns:
    """A row for each partition. `topic` numbers `topics`; rates NaN where none is known; `replicas` padded with -1."""

    topics: Sequence[str]
    topic: IntArray
    partition: IntArray
    leader: IntArray
    replicas: IntArray
    bytes_in_mean: FloatArray
    bytes_in_p95: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class BrokerColumns:
    """Brokers x hours, of shape (n, hours); `hours` are seconds since 1970, an hour apart, `led` partitions led.

    Rates are 0 where nothing was led; `copies` is 0 where no size is known.
    """

    brokers: IntArray
    hours: IntArray
    led: IntArray
    bytes_in: FloatArray
    bytes_out: FloatArray
    messages_in: FloatArray
    copies: IntArray
    disk_bytes: FloatArray


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """What samples do not have: racks, and the capacity of a broker's disks in bytes."""

    racks: Mapping[int, str] = field(default_factory=dict)
    capacities: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """The whole input of a study.

    `rated_in` and `rated_out` are the parts, from 0 to 1, of partitions' hours with rates of Prometheus.
    """

    cluster_id: str
    partitions: PartitionColumns
    brokers: BrokerColumns
    facts: BrokerFacts
    bytes_out_known: bool
    sketches: Mapping[str, KeySketch]
    rated_in: float = 0.0
    rated_out: float = 0.0
