"""Locations and sizes of the replicas of a cluster: input of the planner and of the progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_operator.decide.kafka.observed import Failure, KafkaTopic
from kafka_operator.resources.reassignment import Partition

Sizes = Mapping[Partition, Mapping[int, int]]
"""Partition -> broker -> bytes of its log there."""

BrokerSizes = Mapping[int, Mapping[Partition, int] | Failure]
"""Broker -> partition -> bytes, or the broker's failure (DescribeLogDirs)."""


@dataclass(frozen=True, slots=True)
class Disks:
    """Total and usable bytes of all volumes with log directories of a broker (KIP-827)."""

    capacity_bytes: int
    free_bytes: int


BrokerDisks = Mapping[int, Disks | Failure]
"""Broker -> its disks, or its failure; brokers that do not report disks (before Kafka 3.3) are missing."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Topics by name, and the rack of each broker that is alive, None where it has none."""

    topics: Mapping[str, KafkaTopic] = field(default_factory=dict)
    racks: Mapping[int, str | None] = field(default_factory=dict)


def sizes_of(found: BrokerSizes) -> Sizes:
    """Return sizes by partition; brokers that failed are omitted."""
    sizes: dict[Partition, dict[int, int]] = {}
    for broker_id, logs in found.items():
        if not isinstance(logs, Failure):
            for partition, size in logs.items():
                sizes.setdefault(partition, {})[broker_id] = size
    return sizes


def size_of(partition: Partition, sizes: Sizes) -> int:
    """Return the size of a partition: that of its largest replica, since those that catch up are smaller."""
    return max(sizes.get(partition, {}).values(), default=0)
