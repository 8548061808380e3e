"""Progress of the partitions of a plan, as the cluster shows it.

A plan runs forward (base to plan) or back (plan to base). `handed_over` and `handing_over` are positions in the plan's order: the
partitions before the first were seen moving, those before the second may have been submitted to the controller, the others were not.
So after any crash it is known what remains to be submitted, and what another client has cancelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kafka_operator.decide.kafka.observed import NO_LEADER, KafkaPartition, KafkaTopic, Moves, partition_in
from kafka_operator.decide.kafka.replica_dirs import ReplicaDir, ReplicaDirs, brokers_to_copy, group_of, is_copying
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.resources.reassignment import Assignment, Partition, ReassignmentStatus
from kafka_operator.resources.reassignment_records import Progress


@dataclass(frozen=True, slots=True)
class CurrentPartitions:
    """Every partition as it is, without the replicas that are being added to it: Metadata shows the union."""

    topics: Mapping[str, KafkaTopic] = field(default_factory=dict)
    moves: Moves = field(default_factory=dict)
    dirs: ReplicaDirs = field(default_factory=dict)
    """Directories of the replicas of a plan that moves them between directories."""

    def dirs_of(self, partition: Partition) -> Mapping[int, ReplicaDir]:
        """Return the directories of a partition's replicas, by broker."""
        return self.dirs.get(partition, {})

    def get(self, partition: Partition) -> KafkaPartition | None:
        """Return a partition; None where there is none."""
        known = partition_in(self.topics, partition)
        return None if known is None else self._shown(partition, known)

    def values(self) -> Iterator[KafkaPartition]:
        """Yield all of them."""
        moving = {partition.topic for partition in self.moves}
        for topic in self.topics.values():
            if topic.name not in moving:
                yield from topic.partitions
            else:
                yield from (self._shown(Partition(topic.name, item.index), item) for item in topic.partitions)

    def _shown(self, partition: Partition, known: KafkaPartition) -> KafkaPartition:
        move = self.moves.get(partition)
        if move is None:
            return known
        replicas = tuple(broker for broker in known.replicas if broker not in move.adding)
        return KafkaPartition(known.index, known.leader, replicas, known.isr)


@dataclass(frozen=True)
class PartitionProgress:
    """The partitions of a plan, grouped by progress; each group is in the plan's order."""

    arrived: tuple[Assignment, ...] = ()
    moving: tuple[Assignment, ...] = ()
    due: tuple[Assignment, ...] = ()
    """Before `handing_over`, and not moving: to be submitted, perhaps again."""
    later: tuple[Assignment, ...] = ()
    """After `handing_over`."""
    lost: tuple[Assignment, ...] = ()
    """Seen moving before, and cancelled by another client."""
    stray: tuple[Assignment, ...] = ()
    """With replicas of neither base nor plan, or moving to other replicas."""
    gone: tuple[Assignment, ...] = ()
    """Partitions that no longer exist."""
    current: CurrentPartitions = field(default_factory=CurrentPartitions)
    origin: tuple[Assignment, ...] = ()
    """Replicas before the move of each partition, in the plan's order."""

    @cached_property
    def base(self) -> Mapping[Partition, tuple[int, ...]]:
        """The replicas before the move by partition; computed on first use, since few steps need it."""
        return {item.partition: item.replicas for item in self.origin}

    @cached_property
    def before(self) -> Mapping[Partition, Assignment]:
        """The assignment before the move by partition; computed on first use, too."""
        return {item.partition: item for item in self.origin}

    @property
    def total(self) -> int:
        """Return the number of all partitions."""
        groups = (self.arrived, self.moving, self.due, self.later, self.lost, self.stray, self.gone)
        return sum(map(len, groups))

    @property
    def done(self) -> bool:
        """Whether nothing is left to move."""
        return len(self.arrived) == self.total

    @property
    def under_way(self) -> tuple[Assignment, ...]:
        """Return what would go on without the operator: the moving partitions, and others of which some replicas change their directory."""
        waiting = (item for item in (*self.due, *self.later, *self.lost) if item.log_dirs)
        partly = (item for item in waiting if is_copying(item, self.current.dirs_of(item.partition)))
        return (*self.moving, *partly)

    @property
    def astray(self) -> tuple[Assignment, ...]:
        """Return the partitions that do not reach the plan without intervention."""
        return (*self.lost, *self.stray, *self.gone)

    @property
    def progress(self) -> Progress:
        """Return how many have arrived."""
        return Progress(len(self.arrived), self.total)

    def brokers_of(self, item: Assignment) -> frozenset[int]:
        """Return the brokers that a move keeps busy: those that get the replica, and the leader that sends it.

        Between log directories these are the brokers that copy their own replica.
        """
        if item.log_dirs:
            return brokers_to_copy(item, self.current.dirs_of(item.partition))
        known = self.current.get(item.partition)
        if known is None:
            return frozenset(item.replicas)
        return busy_brokers(item.replicas, known)


def busy_brokers(target: tuple[int, ...], current: KafkaPartition) -> frozenset[int]:
    """Return the brokers that a move to this target keeps busy; none where nothing is copied.

    >>> sorted(busy_brokers((2, 3), KafkaPartition(0, 1, (1, 2))))
    [1, 3]
    >>> sorted(busy_brokers((2, 1), KafkaPartition(0, 1, (1, 2))))
    []
    """
    adding = frozenset(target) - frozenset(current.replicas)
    return adding | {current.leader} if adding and current.leader != NO_LEADER else adding


def find_progress(directed: Recorded, status: ReassignmentStatus, current: CurrentPartitions) -> PartitionProgress:
    """Group the partitions of a plan that runs forward: `directed.plan` is the target, `directed.base` the replicas before."""
    found: dict[str, list[Assignment]] = {name: [] for name in GROUPS}
    for number, (item, before) in enumerate(zip(directed.plan, directed.base, strict=True)):
        known, move = partition_in(current.topics, item.partition), current.moves.get(item.partition)
        if known is None:
            group = "gone"
        elif item.log_dirs:
            dirs = current.dirs_of(item.partition)
            waiting = _waiting(number, status)
            group = group_of(item, before, known, dirs, waiting, begun=status.handing_over > 0, back=False)
        elif move is not None:
            group = "moving" if move.target == item.replicas else "stray"
        elif known.replicas == item.replicas:
            group = "arrived"
        elif known.replicas != before.replicas:
            group = "stray"
        else:
            group = _waiting(number, status)
        found[group].append(item)
    return _progress(found, directed, current)


def find_rollback_progress(
    directed: Recorded, status: ReassignmentStatus, current: CurrentPartitions
) -> PartitionProgress:
    """Group the partitions of a rollback: `directed.plan` is the base, which every partition returns to.

    One that still moves elsewhere is a stray until that move is cancelled.
    """
    found: dict[str, list[Assignment]] = {name: [] for name in GROUPS}
    for number, (item, before) in enumerate(zip(directed.plan, directed.base, strict=True)):
        known, move = partition_in(current.topics, item.partition), current.moves.get(item.partition)
        if known is None:
            group = "gone"
        elif item.log_dirs:
            dirs = current.dirs_of(item.partition)
            group = group_of(item, before, known, dirs, _waiting(number, status), begun=True, back=True)
        elif move is not None:
            group = "moving" if move.target == item.replicas else "stray"
        else:
            group = "arrived" if known.replicas == item.replicas else _waiting(number, status)
        found[group].append(item)
    return _progress(found, directed, current)


GROUPS = ("arrived", "moving", "due", "later", "lost", "stray", "gone")


def _progress(
    found: Mapping[str, Sequence[Assignment]], directed: Recorded, current: CurrentPartitions
) -> PartitionProgress:
    return PartitionProgress(
        **{name: tuple(items) for name, items in found.items()}, current=current, origin=directed.base
    )


def _waiting(number: int, status: ReassignmentStatus) -> str:
    if number < status.handed_over:
        return "lost"
    return "due" if number < status.handing_over else "later"
