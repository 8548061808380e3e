"""Input and possible steps of decisions on Reassignments, and polling intervals."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kafka_operator.decide.kafka.observed import Failure, KafkaTopic, Moves
from kafka_operator.decide.kafka.replica_dirs import ReplicaDirs
from kafka_operator.decide.plans.desired_plan import Checked
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.guard import Reading
from kafka_operator.decide.reassignments.move_progress import Measured
from kafka_operator.decide.reassignments.partition_progress import CurrentPartitions
from kafka_operator.decide.reassignments.reassignment_steps import (
    AlterThrottle,
    MakePlan,
    ReadThrottle,
    StorePlan,
    ThrottleInForce,
)
from kafka_operator.decide.reassignments.throttle import NO_OTHERS, ObservedThrottle, OtherThrottles
from kafka_operator.decide.steps import Claim, MoveLogDirs, Submit
from kafka_operator.resources.reassignment import Partition, ReassignmentStatus
from kafka_operator.resources.reassignment_records import Stored
from reconciler.decide.steps import DeleteResource, Done, Mark, Release, Retry, Wait, WriteStatus
from reconciler.names import Key

POLL_INTERVAL_S = 1.0
"""Minimum poll interval of moves, and of writes of their progress, which users watch and etcd stores."""

PARTITIONS_POLLED_PER_S = 25_000
"""A larger plan is polled less often: to locate 100,000 partitions takes a tenth of a second of CPU."""

PROPOSAL_POLL_S = 30.0
"""Poll interval of a proposal's base while it waits for approval; approval itself is noticed at once."""

CHECK_TIMEOUT_S = 30.0
"""How long a plan waits for a missing topic or broker: long enough for one that is created or started at the same time."""

STRAY_TIMEOUT_S = 10.0
"""How long a partition may be neither moving nor completed before that is trusted: brokers' metadata lag behind."""

CORDON_TIMEOUT_S = 30.0
"""How long moves wait for a cordon to be made or removed. A Cluster that is paused makes none, and moves are safe without it."""

Write = WriteStatus[ReassignmentStatus]
Read = MakePlan | ReadThrottle | ThrottleInForce
Effect = StorePlan | AlterThrottle | Submit | MoveLogDirs
Step = Claim | Mark | Read | Effect | Write | Release | DeleteResource | Retry | Wait | Done


@dataclass(frozen=True, slots=True)
class ReassignmentView:
    """Input of a decision on a Reassignment.

    `waited_s` is the time since the first failed attempt, in seconds; `submitted`, `failures`, `altered` and `unaltered` are results of this attempt.
    """

    now: datetime
    waited_s: float = 0.0
    cluster_id: str = ""
    broker_ids: tuple[int, ...] = ()
    topics: Mapping[str, KafkaTopic] = field(default_factory=dict)
    moves: Moves = field(default_factory=dict)
    dirs: ReplicaDirs = field(default_factory=dict)
    """Directories of the replicas of a plan that moves them between directories."""
    rivals: Mapping[Partition, Key] = field(default_factory=dict)
    wanted: Checked | PlanProblem | None = None
    """The plan of the current spec, checked; None until it is computed."""
    recorded: Recorded | PlanProblem | None = None
    """Plan and base of the status."""
    stored: Mapping[str, Stored] = field(default_factory=dict)
    """What was put into ConfigMaps in this try, by digest."""
    submitted: bool = False
    failures: Mapping[Partition, Failure] = field(default_factory=dict)
    throttle: ObservedThrottle = field(default_factory=ObservedThrottle)
    in_force: Hashable = None
    """The throttle that Kafka was last seen with."""
    altered: bool = False
    unaltered: Mapping[object, Failure] = field(default_factory=dict)
    """Brokers and topics that refused a change of their throttle."""
    other_throttles: OtherThrottles = NO_OTHERS
    """What other Reassignments have recorded on the same cluster."""
    guard: tuple[Reading, ...] | None = None
    """The last readings of the guard's limits; None before the first ones, and where no guard applies."""
    missing_cordons: frozenset[int] = frozenset()
    """Brokers to be cordoned before the first move (cordon.missing_cordons)."""
    remaining_cordons: frozenset[int] = frozenset()
    """Brokers whose cordon has to end before a rollback (cordon.remaining_cordons)."""
    measured: Measured | None = None
    """A sample of sizes, if one was due."""

    @property
    def current(self) -> CurrentPartitions:
        """Return the partitions as they are."""
        return CurrentPartitions(self.topics, self.moves, self.dirs)


def poll_interval_s(partitions: int) -> float:
    """Return seconds until the next poll of a plan of this size.

    >>> [poll_interval_s(10), poll_interval_s(100_000)]
    [1.0, 4.0]
    """
    return max(POLL_INTERVAL_S, partitions / PARTITIONS_POLLED_PER_S)
