"""Progress from two samples of log sizes: copied bytes, rate, stuck moves, growth of partitions, lagging replicas.

Samples are kept in memory: after a restart the second sample shows progress again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafka_operator.decide.kafka.layout import Sizes, size_of
from kafka_operator.decide.kafka.observed import NO_LEADER, KafkaPartition
from kafka_operator.decide.kafka.replica_dirs import planned_dirs
from kafka_operator.decide.reassignments.partition_progress import PartitionProgress
from kafka_operator.resources.reassignment import Assignment, Partition

MEASURE_EVERY_S = 5.0
"""Interval between two samples of sizes: each asks every broker concerned, and shorter intervals measure noise."""

STUCK_AFTER_S = 120.0
"""How long a move may copy nothing before it is reported: a broker that restarts is back sooner, and a follower that is out of sync
retries every second."""

SPEED_KEPT = 0.7
"""Weight of the previous speed in the next one: the speed of one sample jumps with each segment and each wave."""


@dataclass(frozen=True, slots=True)
class CopyState:
    """Copied bytes of a partition, and the time since which they have not changed."""

    copied: int
    since_s: float


@dataclass(frozen=True, slots=True)
class Memory:
    """State between samples; times are from the monotonic clock, in seconds."""

    taken_s: float
    sizes: Sizes
    copied: int = 0
    remaining: int = 0
    speed: float | None = None
    lag: int = 0
    copy_states: Mapping[Partition, CopyState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """Result of a sample: bytes copied so far, bytes per second (None in the first sample), stuck partitions.

    `speed` is the rate at which the remaining bytes shrink, so it is below the copy rate while partitions are written to.
    `growth` is the growth of partitions' logs in bytes per second, empty in the first sample; `lag` is by how many bytes replicas
    that are not moving are behind their leaders, and `lag_before` the same in the previous sample; `fallen` are partitions out of sync.
    """

    copied: int
    total: int = 0
    """Bytes of all replicas to add, as far as sizes are known."""
    remaining: int = 0
    used: float | None = None
    """Bytes copied per second between the last two samples."""
    speed: float | None = None
    stuck: tuple[Partition, ...] = ()
    growth: Mapping[Partition, float] | None = None
    lag: int = 0
    lag_before: int = 0
    fallen: int = 0


def measure(
    partitions: PartitionProgress, sizes: Sizes, before: Memory | None, now_s: float, alive: Collection[int]
) -> tuple[Measured, Memory]:
    """Return the result of a sample compared with the previous one, and the state to keep; lag of dead brokers is ignored."""
    known = sizes if before is None else {**before.sizes, **sizes}
    arrived = _to_add(partitions.arrived, partitions, known)
    waiting = sum(_to_add(group, partitions, known) for group in (partitions.moving, partitions.due, partitions.later))
    by_partition = {item.partition: copied_of(item, partitions, known) for item in partitions.moving}
    copied = arrived + sum(by_partition.values())
    copy_states = _copy_states(by_partition, before, now_s)
    stuck = tuple(sorted(name for name, state in copy_states.items() if now_s - state.since_s >= STUCK_AFTER_S))
    lag = sum(_lag(item, partitions, sizes) for item in partitions.moving)
    remaining = waiting - sum(by_partition.values())
    speed = (
        None if before is None else _smoothed(before.speed, _per_second(before.remaining - remaining, before, now_s))
    )
    measured = Measured(
        copied=copied,
        total=arrived + waiting,
        remaining=max(0, remaining),
        used=None if before is None else max(0.0, _per_second(copied - before.copied, before, now_s)),
        speed=speed,
        stuck=stuck,
        growth=None if before is None else growth(before, sizes, now_s),
        lag=lag,
        lag_before=lag if before is None else before.lag,
        fallen=sum(_fallen(item, alive) for item in partitions.current.values()),
    )
    return measured, Memory(now_s, known, copied, remaining, speed, lag, copy_states)


def _to_add(items: Iterable[Assignment], partitions: PartitionProgress, sizes: Sizes) -> int:
    """Return the bytes of all replicas that these moves add or have added."""
    return sum(size_of(item.partition, sizes) * copies_added(item, partitions) for item in items)


def copied_of(item: Assignment, partitions: PartitionProgress, sizes: Sizes) -> int:
    """Return the bytes that the added replicas of a moving partition have, or the future logs of one between log directories."""
    if item.log_dirs:
        dirs, whole = partitions.current.dirs_of(item.partition), size_of(item.partition, sizes)
        there = [(dirs[broker], path) for broker, path in planned_dirs(item) if broker in dirs]
        return sum(whole if found.path == path else found.copied for found, path in there)
    held = sizes.get(item.partition, {})
    return sum(held.get(broker, 0) for broker in _added(item, partitions))


def copies_added(item: Assignment, partitions: PartitionProgress) -> int:
    """Return the number of replicas that a partition's move adds, or has added."""
    return len(_added(item, partitions))


def growth(before: Memory, sizes: Sizes, now_s: float) -> Mapping[Partition, float]:
    """Return the growth of each partition's log in bytes per second; one that shrank (retention) has not grown."""
    passed_s = max(now_s - before.taken_s, 1e-3)
    return {
        partition: max(0, size_of(partition, sizes) - size_of(partition, before.sizes)) / passed_s
        for partition in sizes
        if partition in before.sizes
    }


def seconds_left(measured: Measured) -> int | None:
    """Return the remaining seconds at this rate, None if unknown."""
    if measured.speed is None or measured.speed < 1:
        return None
    return int(measured.remaining / measured.speed) + 1


def _added(item: Assignment, partitions: PartitionProgress) -> Collection[int]:
    if item.log_dirs:
        return [broker for broker, _ in planned_dirs(item)]
    base = partitions.base.get(item.partition, ())
    return [broker for broker in item.replicas if broker not in base]


def _copy_states(copied: Mapping[Partition, int], before: Memory | None, now_s: float) -> Mapping[Partition, CopyState]:
    old: Mapping[Partition, CopyState] = {} if before is None else before.copy_states
    return {
        name: old[name] if name in old and old[name].copied == count else CopyState(count, now_s)
        for name, count in copied.items()
    }


def _per_second(count: int, before: Memory, now_s: float) -> float:
    return count / max(now_s - before.taken_s, 1e-3)


def _smoothed(before: float | None, current: float) -> float:
    return current if before is None else SPEED_KEPT * before + (1 - SPEED_KEPT) * current


def _lag(item: Assignment, partitions: PartitionProgress, sizes: Sizes) -> int:
    """Return by how many bytes the remaining replicas are behind the leader, in total."""
    known, held = partitions.current.get(item.partition), sizes.get(item.partition, {})
    if known is None or known.leader == NO_LEADER or known.leader not in held:
        return 0
    followers: Iterable[int] = (broker for broker in known.replicas if broker != known.leader and broker in held)
    return sum(max(0, held[known.leader] - held[broker]) for broker in followers)


def _fallen(partition: KafkaPartition, alive: Collection[int]) -> bool:
    """Return whether a replica that is on a live broker and is not being added is out of sync."""
    return bool(partition.isr) and any(broker not in partition.isr for broker in partition.replicas if broker in alive)
