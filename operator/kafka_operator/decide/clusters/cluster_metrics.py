"""Health metrics of a cluster, from one read of all partitions and from the brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from controller_core.model import NO_BROKER
from controller_core.model.partition_health import BoolArray, LeaderImbalance, leader_imbalance, partition_health
from kafka_operator.decide.kafka.observed import Moves
from kafka_operator.resources.cluster import Imbalance, Versions
from kafka_operator.resources.reassignment import Partition
from kafka_wire import ApiKey

MAX_NAMED = 5
"""Partitions that are named as examples; a message is for a person."""

MAX_FEATURES = 64
"""Features that are shown, as the schema has it; Kafka has less than ten."""

METADATA_VERSION = "metadata.version"

METADATA_VERSIONS = (
    (1, "3.0-IV1"),
    (2, "3.1-IV0"),
    (3, "3.2-IV0"),
    (4, "3.3-IV0"),
    (5, "3.3-IV1"),
    (6, "3.3-IV2"),
    (7, "3.3-IV3"),
    (8, "3.4-IV0"),
    (9, "3.5-IV0"),
    (10, "3.5-IV1"),
    (11, "3.5-IV2"),
    (12, "3.6-IV0"),
    (13, "3.6-IV1"),
    (14, "3.6-IV2"),
    (15, "3.7-IV0"),
    (16, "3.7-IV1"),
    (17, "3.7-IV2"),
    (18, "3.7-IV3"),
    (19, "3.7-IV4"),
    (20, "3.8-IV0"),
    (21, "3.9-IV0"),
    (22, "4.0-IV0"),
    (23, "4.0-IV1"),
    (24, "4.0-IV2"),
    (25, "4.0-IV3"),
    (26, "4.1-IV0"),
    (27, "4.1-IV1"),
    (28, "4.2-IV0"),
    (29, "4.2-IV1"),
    (30, "4.3-IV0"),
)
"""Names of the levels of metadata.version (Kafka's MetadataVersion); one that is not here is shown as its number."""

FIRST_APIS = (
    ((4, 3), ApiKey.DESCRIBE_LOG_DIRS, 5),
    ((4, 2), ApiKey.LIST_OFFSETS, 11),
    ((4, 1), ApiKey.PRODUCE, 13),
    ((4, 0), ApiKey.LIST_OFFSETS, 10),
    ((3, 9), ApiKey.FETCH, 17),
    ((3, 8), ApiKey.PRODUCE, 11),
    ((3, 7), ApiKey.FETCH, 16),
    ((3, 6), ApiKey.ADD_PARTITIONS_TO_TXN, 4),
    ((3, 5), ApiKey.FETCH, 15),
    ((3, 4), ApiKey.LEADER_AND_ISR, 7),
    ((3, 3), ApiKey.DESCRIBE_ACLS, 3),
    ((3, 2), ApiKey.JOIN_GROUP, 9),
    ((3, 1), ApiKey.FETCH, 13),
    ((3, 0), ApiKey.LIST_OFFSETS, 7),
    ((2, 8), ApiKey.PRODUCE, 9),
    ((2, 7), ApiKey.FETCH, 12),
    ((2, 6), ApiKey.DESCRIBE_CLIENT_QUOTAS, 0),
    ((2, 5), ApiKey.DESCRIBE_ACLS, 2),
    ((2, 4), ApiKey.PRODUCE, 8),
)
"""Releases, newest first, and a version of an API that each was the first to support: brokers do not report their release."""


@dataclass(frozen=True, slots=True)
class ClusterMetrics:
    """All partitions of a cluster, counted; the examples are the first ones by name."""

    partitions: int = 0
    under_replicated: int = 0
    offline: int = 0
    imbalance: Imbalance = field(default_factory=Imbalance)
    offline_examples: tuple[Partition, ...] = ()
    under_replicated_examples: tuple[Partition, ...] = ()


class PartitionCounter:
    """Collects partitions as columns: a cluster may have 200,000."""

    def __init__(self) -> None:
        self._names: list[tuple[str, int]] = []
        self._columns: tuple[list[int], ...] = ([], [], [], [])
        """Leader, preferred replica, number of replicas, number in sync."""
        self.is_complete = True
        """Whether each partition has all of its replicas in sync; then it does not matter which ones are being reassigned."""

    def count(self, topic: str, index: int, leader: int, replicas: Sequence[int], in_sync: int) -> None:
        """Add one partition."""
        self._names.append((topic, index))
        values = (leader, replicas[0] if replicas else NO_BROKER, len(replicas), in_sync)
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        self.is_complete &= in_sync >= len(replicas)

    def sum_up(self, moves: Moves) -> ClusterMetrics:
        """Compute the numbers; replicas that a reassignment adds need not be in sync yet (KIP-455)."""
        leader, preferred, replicas, in_sync = (np.array(column, dtype=np.int64) for column in self._columns)
        adding = np.zeros(len(self._names), dtype=np.int64)
        if moves:
            for place, name in enumerate(self._names):
                move = moves.get(Partition(*name))
                adding[place] = 0 if move is None else len(move.adding)
        health = partition_health(leader, preferred, replicas, in_sync, adding)
        return ClusterMetrics(
            partitions=len(self._names),
            under_replicated=int(health.under_replicated.sum()),
            offline=int(health.offline.sum()),
            imbalance=_imbalance(len(self._names), leader_imbalance(preferred, health.not_led_by_preferred)),
            offline_examples=self._examples(health.offline),
            under_replicated_examples=self._examples(health.under_replicated),
        )

    def _examples(self, flags: BoolArray) -> tuple[Partition, ...]:
        names = sorted(self._names[place] for place in np.flatnonzero(flags).tolist())
        return tuple(Partition(*name) for name in names[:MAX_NAMED])


def _imbalance(partitions: int, found: LeaderImbalance) -> Imbalance:
    """Convert to percents, rounded up: 0 percent is none at all."""
    if not found.not_led_by_preferred:
        return Imbalance()
    return Imbalance(
        partitions=found.not_led_by_preferred,
        percent=_percent(found.not_led_by_preferred, partitions),
        worst_broker=found.worst_broker,
        worst_percent=_percent(found.worst_not_led, found.worst_preferring),
    )


def _percent(part: int, whole: int) -> int:
    return -(-100 * part // whole)


def software_version(api_versions: Mapping[int, int]) -> tuple[int, int] | None:
    """Return the release of a broker with these highest versions by API key; None if it is older than 2.4.

    >>> software_version({ApiKey.FETCH: 17, ApiKey.PRODUCE: 11}), software_version({ApiKey.FETCH: 4})
    ((3, 9), None)
    """
    return next((release for release, key, version in FIRST_APIS if api_versions.get(key, -1) >= version), None)


def read_versions(
    software: Iterable[tuple[int, ...]], finalized: Mapping[str, int], inter_broker_protocol: str | None
) -> Versions:
    """Return what is shown of versions; `software` is what each broker's APIs are those of, e.g. (3, 9).

    >>> read_versions([(3, 10), (3, 9)], {}, "3.9-IV0")
    Versions(software=('3.9', '3.10'), metadata_version=None, inter_broker_protocol='3.9-IV0', features=())
    """
    level = finalized.get(METADATA_VERSION)
    return Versions(
        software=tuple(".".join(map(str, version)) for version in sorted(set(software))),
        metadata_version=None if level is None else dict(METADATA_VERSIONS).get(level, f"level {level}"),
        inter_broker_protocol=None if level is not None else inter_broker_protocol,
        features=tuple(sorted((name, value) for name, value in finalized.items() if name != METADATA_VERSION))[
            :MAX_FEATURES
        ],
    )
