"""Log directories of replicas (KIP-113): where brokers have them, and how far the moves of a plan between them are.

While a replica moves, its broker has two logs of it: the current one, and the future one in the other directory. The broker replaces the
current log by the future one as soon as both are equal. AlterReplicaLogDirs with the current directory deletes the future log, which
cancels the move.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_operator.decide.kafka.log_dirs import LogDir
from kafka_operator.decide.kafka.observed import Failure, KafkaPartition
from kafka_operator.resources.reassignment import ANY_LOG_DIR, Assignment, Partition


@dataclass(frozen=True, slots=True)
class DirectoryLogs:
    """A log directory and the bytes of its logs, current and future ones, by partition; no logs if it is offline."""

    directory: LogDir
    logs: Mapping[Partition, int] = field(default_factory=dict)
    futures: Mapping[Partition, int] = field(default_factory=dict)


BrokerReplicaDirs = Mapping[int, tuple[DirectoryLogs, ...] | Failure]
"""Broker -> its log directories with their logs, or its failure (DescribeLogDirs)."""


@dataclass(frozen=True, slots=True)
class ReplicaDir:
    """The directory of a replica, and while it moves the one of its future log, with the bytes that this log has."""

    path: str
    future: str | None = None
    copied: int = 0


ReplicaDirs = Mapping[Partition, Mapping[int, ReplicaDir]]
"""Partition -> broker -> the directory of its replica there; brokers that did not answer are missing."""

Targets = Mapping[int, Mapping[Partition, str]]
"""Broker -> partition -> the directory that its replica is to have (AlterReplicaLogDirs)."""


def replica_dirs_of(found: BrokerReplicaDirs) -> ReplicaDirs:
    """Return the directories by partition; a replica of which only the future log is readable is omitted."""
    current: dict[Partition, dict[int, ReplicaDir]] = defaultdict(dict)
    for broker, directories in found.items():
        held = () if isinstance(directories, Failure) else directories
        futures = {name: (item.directory.path, size) for item in held for name, size in item.futures.items()}
        for item in held:
            for name in item.logs:
                future, copied = futures.get(name, (None, 0))
                current[name][broker] = ReplicaDir(item.directory.path, future, copied)
    return current


def planned_dirs(item: Assignment) -> Iterator[tuple[int, str]]:
    """Yield broker and directory of each replica for which a plan names a directory.

    >>> list(planned_dirs(Assignment(Partition("a", 0), (1, 2), ("any", "/data/2"))))
    [(2, '/data/2')]
    """
    pairs = zip(item.replicas, item.log_dirs, strict=False)
    return ((broker, path) for broker, path in pairs if path != ANY_LOG_DIR)


def brokers_to_copy(item: Assignment, dirs: Mapping[int, ReplicaDir]) -> frozenset[int]:
    """Return the brokers that still have to copy, or are copying, their replica; one that did not answer counts."""
    return frozenset(broker for broker, path in planned_dirs(item) if broker not in dirs or dirs[broker].path != path)


class ReplicaState(StrEnum):
    """How far the move of one replica is."""

    THERE = "There"
    """In its directory."""
    COPYING = "Copying"
    """Its future log is in that directory."""
    WAITING = "Waiting"
    """Not on the way, or on a broker that did not answer."""
    ELSEWHERE = "Elsewhere"
    """Moved by another client."""


def group_of(
    item: Assignment,
    before: Assignment,
    known: KafkaPartition,
    dirs: Mapping[int, ReplicaDir],
    waiting: str,
    *,
    begun: bool,
    back: bool,
) -> str:
    """Return the group of `partition_progress` that a partition is in; `waiting` is the one of a move that does not go on.

    Forward, a replica that is in neither of the two directories is a stray; a rollback (`back`) moves it all the same. Before the first
    move (not `begun`), so is a partition of which another client has moved some replicas.
    """
    states = {
        _state(dirs.get(broker), path, earlier, broker in known.replicas, back=back)
        for (broker, path), (_, earlier) in zip(planned_dirs(item), planned_dirs(before), strict=True)
    } - {None}
    if not states:
        return "gone"
    if states == {ReplicaState.THERE}:
        return "arrived"
    if ReplicaState.ELSEWHERE in states or (ReplicaState.THERE in states and not begun):
        return "stray"
    if ReplicaState.WAITING not in states and ReplicaState.COPYING in states:
        return "moving"
    unanswered = any(broker not in dirs for broker, _ in planned_dirs(item))
    return "moving" if waiting == "lost" and (ReplicaState.COPYING in states or unanswered) else waiting


def _state(found: ReplicaDir | None, path: str, earlier: str, is_held: bool, *, back: bool) -> ReplicaState | None:
    """Return the state of one replica; None if its broker holds none any more and a rollback has nothing to move."""
    if not is_held:
        return None if back else ReplicaState.ELSEWHERE
    if found is None:
        return ReplicaState.WAITING
    if found.future is not None:
        return ReplicaState.COPYING if found.future == path else ReplicaState.ELSEWHERE
    if found.path == path:
        return ReplicaState.THERE
    return ReplicaState.WAITING if back or found.path == earlier else ReplicaState.ELSEWHERE


def is_copying(item: Assignment, dirs: Mapping[int, ReplicaDir]) -> bool:
    """Return whether a replica is on the way to the directory that a plan names."""
    return any(broker in dirs and dirs[broker].future == path for broker, path in planned_dirs(item))


def targets_of(items: Iterable[Assignment], dirs: ReplicaDirs) -> Targets:
    """Return the moves to start: those of replicas that are neither in their directory nor on the way to it."""
    targets: dict[int, dict[Partition, str]] = defaultdict(dict)
    for item in items:
        found = dirs.get(item.partition, {})
        for broker, path in planned_dirs(item):
            if broker not in found or path not in {found[broker].path, found[broker].future}:
                targets[broker][item.partition] = path
    return targets


def targets_to_cancel(items: Iterable[Assignment], dirs: ReplicaDirs) -> Targets:
    """Return the current directory of each replica that moves: this cancels its move."""
    targets: dict[int, dict[Partition, str]] = defaultdict(dict)
    for item in items:
        for broker, _ in planned_dirs(item):
            found = dirs.get(item.partition, {}).get(broker)
            if found is not None and found.future is not None:
                targets[broker][item.partition] = found.path
    return targets


def brokers_named(plan: Iterable[Assignment]) -> frozenset[int]:
    """Return the brokers of the replicas that a plan moves between directories."""
    return frozenset(broker for item in plan for broker, _ in planned_dirs(item))
