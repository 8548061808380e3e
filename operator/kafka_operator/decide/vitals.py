"""What a cluster is made of and how well it is, as numbers: one look at all partitions, and what the brokers say of themselves.

Leaves out what a Cluster's status makes of it (cluster).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafka_operator.decide.observed import NO_LEADER, Moves
from kafka_operator.resources.cluster import Imbalance, Versions
from kafka_operator.resources.reassignment import Partition

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


@dataclass(frozen=True, slots=True)
class Seat:
    """One partition, as a look at all of them needs it: its leader (-1 for none), its replicas in order, how many are in sync."""

    partition: Partition
    leader: int
    replicas: tuple[int, ...]
    in_sync: int


@dataclass(frozen=True, slots=True)
class Vitals:
    """All partitions of a cluster, counted; the examples are the first ones by name."""

    partitions: int = 0
    under_replicated: int = 0
    offline: int = 0
    imbalance: Imbalance = field(default_factory=Imbalance)
    offline_examples: tuple[Partition, ...] = ()
    under_replicated_examples: tuple[Partition, ...] = ()


class Tally:
    """Counts partitions as they come, and keeps those alone that lack something: a cluster may have 200,000."""

    def __init__(self) -> None:
        self.partitions = 0
        self._preferring: Counter[int] = Counter()
        self._elsewhere: Counter[int] = Counter()
        self._offline: list[Partition] = []
        self.lacking: list[Seat] = []
        """Those with fewer replicas in sync than they have; while they move, that is no trouble yet."""

    def count(self, topic: str, index: int, leader: int, replicas: list[int], in_sync: int) -> None:
        """Count one partition."""
        self.partitions += 1
        if replicas:
            self._preferring[replicas[0]] += 1
            if leader == NO_LEADER:
                self._offline.append(Partition(topic, index))
            elif leader != replicas[0]:
                self._elsewhere[replicas[0]] += 1
        if in_sync < len(replicas):
            self.lacking.append(Seat(Partition(topic, index), leader, tuple(replicas), in_sync))

    def sum_up(self, moves: Moves) -> Vitals:
        """Return the numbers; a replica that a move adds need not be in sync yet (as Kafka counts them, KIP-455)."""
        under = sorted(seat.partition for seat in self.lacking if seat.in_sync < _owed(seat, moves))
        self._offline.sort()
        return Vitals(
            partitions=self.partitions,
            under_replicated=len(under),
            offline=len(self._offline),
            imbalance=_imbalance(self._preferring, self._elsewhere),
            offline_examples=tuple(self._offline[:MAX_NAMED]),
            under_replicated_examples=tuple(under[:MAX_NAMED]),
        )


def tally(seats: Iterable[Seat], moves: Moves) -> Vitals:
    """Return the numbers of some partitions."""
    counted = Tally()
    for seat in seats:
        counted.count(seat.partition.topic, seat.partition.index, seat.leader, list(seat.replicas), seat.in_sync)
    return counted.sum_up(moves)


def _owed(seat: Seat, moves: Moves) -> int:
    move = moves.get(seat.partition)
    return len(seat.replicas) if move is None else len(move.replicas) - len(move.adding)


def _imbalance(preferring: Counter[int], elsewhere: Counter[int]) -> Imbalance:
    """Return how many partitions are led by another than their preferred leader, and the broker that lacks the largest share of its own.

    The share of one broker is what leader.imbalance.per.broker.percentage speaks of. Percents are rounded up: 0 is none at all.
    """
    total = preferring.total()
    if not total:
        return Imbalance()
    shares = {broker: _percent(count, preferring[broker]) for broker, count in elsewhere.items()}
    worst = min(shares, key=lambda broker: (-shares[broker], broker), default=None)
    return Imbalance(
        partitions=elsewhere.total(),
        percent=_percent(elsewhere.total(), total),
        worst_broker=worst,
        worst_percent=0 if worst is None else shares[worst],
    )


def _percent(part: int, whole: int) -> int:
    return -(-100 * part // whole)


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
