"""The Reassignment resource."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from kafka_operator import kinds
from kafka_operator.resources.canary import Canary, CanaryRecord, read_canary, read_canary_record
from kafka_operator.resources.cluster_ref import ClusterRef, read_cluster_ref
from kafka_operator.resources.move_guard import Guard, GuardRecord, read_guard, read_guard_record
from kafka_operator.resources.reassignment_records import (
    Progress,
    Proposal,
    Stored,
    read_progress,
    read_proposal,
    read_stored,
)
from kafka_operator.resources.reassignment_terms import (
    Action,
    Approval,
    Concurrency,
    Goal,
    PlanFrom,
    Window,
    read_concurrency,
    read_goal,
    read_plan_from,
    read_windows,
)
from kafka_operator.resources.throttle import ThrottleRecord, ThrottleSpec, read_throttle, read_throttle_record
from reconciler.names import Key
from reconciler.resources.metadata import Condition, Metadata, Patch, RawObject, read_conditions, read_metadata


class State(StrEnum):
    """How far a Reassignment is.

    Proposed while it waits for approval, Pending until it is checked and the controller has taken the first moves, then Running,
    then one of three ends. Only a rollback follows a final state, and has its own final state.
    """

    PROPOSED = "Proposed"
    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    ROLLING_BACK = "RollingBack"
    ROLLED_BACK = "RolledBack"

    @property
    def ended(self) -> bool:
        """Whether the state is final unless a user acts."""
        return self in {State.COMPLETED, State.FAILED, State.CANCELLED, State.ROLLED_BACK}


class Partition(NamedTuple):
    """A partition's name; a tuple, since plans of a hundred thousand partitions need millions of lookups."""

    topic: str
    index: int  # type: ignore[assignment]  # hides tuple's own method of that name, which is not used

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


ANY_LOG_DIR = "any"
"""The log directory of a replica that a plan does not move between directories, as in kafka-reassign-partitions.sh."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A partition and its replicas in order, the preferred leader first.

    `log_dirs` are the log directories of the replicas in the same order, ANY_LOG_DIR for those that stay; empty if all of them do.
    """

    partition: Partition
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        dirs = {"logDirs": list(self.log_dirs)} if self.log_dirs else {}
        return {
            "topic": self.partition.topic,
            "partition": self.partition.index,
            "replicas": list(self.replicas),
            **dirs,
        }


@dataclass(frozen=True, slots=True)
class TopicMove:
    """A topic and the brokers that will hold all of its replicas."""

    topic: str
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReassignmentStatus:
    """What is written to `status`; None where nothing is known.

    A small plan and its base are in `plan` and `base`; large ones are in ConfigMaps that `stored` names. `handed_over` of the plan's
    partitions, from its beginning, were seen to be on their way; up to `handing_over` may have been given to the controller.
    """

    observed_generation: int | None = None
    state: State | None = None
    digest: str | None = None
    """Of plan and base: what `spec.approvedDigest` has to name."""
    plan_digest: str | None = None
    """Digest of the plan without base, as in `spec.planFrom.digest`."""
    plan: tuple[Assignment, ...] | None = None
    base: tuple[Assignment, ...] | None = None
    stored: Stored | None = None
    proposal: Proposal | None = None
    rollback: bool = False
    """Whether the rollback has started; the two numbers below then count its partitions."""
    handed_over: int = 0
    handing_over: int = 0
    progress: Progress | None = None
    throttle: ThrottleRecord | None = None
    guard: GuardRecord | None = None
    canary: CanaryRecord | None = None
    next_window_time: str | None = None
    """When the next window opens, while it waits for one."""
    start_time: str | None = None
    completion_time: str | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether plan and base are written down, wherever that is."""
        return self.stored is not None or (self.plan is not None and self.base is not None)

    @property
    def begun(self) -> bool:
        """Whether its partitions are its own: from the record of plan and base to the end, approval excepted."""
        return self.recorded and self.state is not None and not self.state.ended and self.state is not State.PROPOSED

    def to_patch(self) -> Patch:
        """Return the whole status as a merge patch: what is not known is taken away."""
        return {
            "observedGeneration": self.observed_generation,
            "state": None if self.state is None else self.state.value,
            "digest": self.digest,
            "planDigest": self.plan_digest,
            "plan": _write_assignments(self.plan),
            "base": _write_assignments(self.base),
            "stored": None if self.stored is None else self.stored.to_json(),
            "proposal": None if self.proposal is None else self.proposal.to_json(),
            "rollback": self.rollback or None,
            "handedOver": self.handed_over or None,
            "handingOver": self.handing_over or None,
            "progress": None if self.progress is None else self.progress.to_json(),
            "throttle": None if self.throttle is None else self.throttle.to_json(),
            "guard": None if self.guard is None else self.guard.to_json(),
            "canary": None if self.canary is None else self.canary.to_json(),
            "nextWindowTime": self.next_window_time,
            "startTime": self.start_time,
            "completionTime": self.completion_time,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A Reassignment: spec, and status written by the operator; exactly one of `plan`, `plan_from`, `topics` and `goal` is set."""

    metadata: Metadata
    cluster: ClusterRef
    plan: tuple[Assignment, ...]
    topics: tuple[TopicMove, ...]
    plan_from: PlanFrom | None
    goal: Goal | None
    approval: Approval
    approved_digest: str | None
    throttle: ThrottleSpec | None
    concurrency: Concurrency
    windows: tuple[Window, ...]
    guard: Guard | None
    canary: Canary | None
    action: Action
    ttl_s: int | None
    """Seconds after its end until it is deleted; None for never."""
    status: ReassignmentStatus

    @property
    def key(self) -> Key:
        """Return its name in Kubernetes."""
        return self.metadata.key

    @property
    def is_between_log_dirs(self) -> bool:
        """Whether it moves replicas between the log directories of their brokers, and none between brokers."""
        return self.goal is not None and self.goal.balance_log_dirs

    @property
    def goes_back(self) -> bool:
        """Whether its partitions are to have their previous replicas: a user asked for it, or its guard started it."""
        return self.action is Action.ROLLBACK or self.status.rollback

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do for it: it ended, its throttle is gone, and no way back is asked for."""
        state = self.status.state
        if state is None or not state.ended or self.status.throttle is not None:
            return False
        return self.action is not Action.ROLLBACK or self.status.rollback or state is State.ROLLED_BACK


def read_reassignment(raw: RawObject) -> Reassignment:
    """Read a Reassignment from JSON; KeyError or ValueError when it does not follow the schema."""
    metadata = read_metadata(kinds.REASSIGNMENT, raw)
    spec = raw["spec"]
    goal = read_goal(spec.get("goal"))
    approval = spec.get("approval") or (Approval.AUTOMATIC if goal is None else Approval.REQUIRED)
    return Reassignment(
        metadata=metadata,
        cluster=read_cluster_ref(metadata, spec),
        plan=_read_assignments(spec.get("plan") or ()),
        topics=tuple(TopicMove(item["name"], tuple(item["brokers"])) for item in spec.get("topics") or ()),
        plan_from=read_plan_from(spec.get("planFrom")),
        goal=goal,
        approval=Approval(approval),
        approved_digest=spec.get("approvedDigest"),
        throttle=read_throttle(spec.get("throttle")),
        concurrency=read_concurrency(spec.get("concurrency")),
        windows=read_windows(spec.get("windows")),
        guard=read_guard(spec.get("guard")),
        canary=read_canary(spec.get("canary")),
        action=Action(spec.get("action", Action.EXECUTE)),
        ttl_s=spec.get("ttlSecondsAfterFinished"),
        status=_read_status(raw.get("status") or {}),
    )


def _read_status(status: RawObject) -> ReassignmentStatus:
    state = status.get("state")
    return ReassignmentStatus(
        observed_generation=status.get("observedGeneration"),
        state=None if state is None else State(state),
        digest=status.get("digest"),
        plan_digest=status.get("planDigest"),
        plan=None if status.get("plan") is None else _read_assignments(status["plan"]),
        base=None if status.get("base") is None else _read_assignments(status["base"]),
        stored=read_stored(status.get("stored")),
        proposal=read_proposal(status.get("proposal")),
        rollback=bool(status.get("rollback", False)),
        handed_over=int(status.get("handedOver", 0)),
        handing_over=int(status.get("handingOver", 0)),
        progress=read_progress(status.get("progress")),
        throttle=read_throttle_record(status.get("throttle")),
        guard=read_guard_record(status.get("guard")),
        canary=read_canary_record(status.get("canary")),
        next_window_time=status.get("nextWindowTime"),
        start_time=status.get("startTime"),
        completion_time=status.get("completionTime"),
        conditions=read_conditions(status),
    )


def _read_assignments(raw: Iterable[RawObject]) -> tuple[Assignment, ...]:
    return tuple(
        Assignment(
            Partition(item["topic"], item["partition"]), tuple(item["replicas"]), tuple(item.get("logDirs") or ())
        )
        for item in raw
    )


def _write_assignments(assignments: Sequence[Assignment] | None) -> list[dict[str, Any]] | None:
    return None if assignments is None else [assignment.to_json() for assignment in assignments]
