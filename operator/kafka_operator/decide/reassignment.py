"""What to do for one Reassignment.

    (new) ─check─► Pending, plan and base recorded ─submit─► Running ─► Completed
      │                    │                                  ├─cancel─► Cancelled
      └────────────────────┴──────────────────────────────────┴────────► Failed

The plan and the base are written down before the controller hears of either; from then on what the controller itself shows decides,
so a process that is killed at any moment goes on where things stand. A partition is handed over while Pending only: a plan is
applied once (O9), and what somebody else moves later is told, not undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from kafka_operator.decide.conditions import FALSE, UNKNOWN
from kafka_operator.decide.kafka_errors import message_of, passes_by_itself, reason_of
from kafka_operator.decide.observed import Away, Failure, KafkaTopic, Moves
from kafka_operator.decide.patience import let_go_or_retry
from kafka_operator.decide.plan import MAX_LISTED, Plan, Trouble, check_plan, exact_plan
from kafka_operator.decide.reassignment_status import ended, pending, running, written
from kafka_operator.decide.steps import (
    RETRY_LATER_S,
    Claim,
    Done,
    Release,
    Retry,
    Submit,
    Wait,
    WriteStatus,
)
from kafka_operator.decide.topic import FAILOVER_PATIENCE_S, FAILOVER_RETRY_CAP_S
from kafka_operator.names import Key
from kafka_operator.resources.reassignment import (
    Assignment,
    Partition,
    Progress,
    Reassignment,
    ReassignmentStatus,
    State,
)

LOOK_EVERY_S = 1.0
"""How often a move is looked at, and at most how often its progress is written: people watch it, etcd stores it."""

CHECK_PATIENCE_S = 30.0
"""How long a plan waits for a topic or broker that is not there: as long as one takes that was applied or started with it."""

STRAY_PATIENCE_S = 10.0
"""How long a partition may be neither on its way nor at its end before that is believed: brokers' metadata lag behind."""

Step = Claim | Submit | WriteStatus[ReassignmentStatus] | Release | Retry | Wait | Done


@dataclass(frozen=True, slots=True)
class ReassignmentView:
    """What a decision on a Reassignment looks at.

    `waited_s` is for how long it has been tried in vain; `submitted` and `failures` tell of this very try.
    """

    now: datetime
    waited_s: float = 0.0
    broker_ids: tuple[int, ...] = ()
    topics: Mapping[str, KafkaTopic] = field(default_factory=dict)
    moves: Moves = field(default_factory=dict)
    rivals: Mapping[Partition, Key] = field(default_factory=dict)
    submitted: bool = False
    failures: Mapping[Partition, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the partitions of a plan are: at the target, on the way to it, at the base, or anywhere else."""

    arrived: tuple[Assignment, ...]
    moving: tuple[Assignment, ...]
    waiting: tuple[Assignment, ...]
    stray: tuple[Assignment, ...]

    @property
    def progress(self) -> Progress:
        """Return how many have arrived."""
        total = len(self.arrived) + len(self.moving) + len(self.waiting) + len(self.stray)
        return Progress(len(self.arrived), total)


def decide_reassignment(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """Return the next step for a Reassignment that is not being deleted, on a cluster that answers."""
    status = reassignment.status
    if status.state is not None and status.state.ended:
        observed = replace(status, observed_generation=reassignment.metadata.generation)
        return written(reassignment, observed) or (Release() if reassignment.metadata.held else Done())
    if status.plan is None or status.base is None:
        return _before_the_start(reassignment, view)
    if not reassignment.metadata.held:
        return Claim()
    places = find_places(status.plan, status.base, view)
    if reassignment.cancel:
        return _cancel(reassignment, places, view)
    if not (places.moving or places.waiting or places.stray):
        return _complete(reassignment, places, view)
    if status.state is State.PENDING:
        return _start(reassignment, places, view)
    return _follow(reassignment, places, view)


def decide_reassignment_away(reassignment: Reassignment, away: Away, now: datetime, waited_s: float) -> Step:
    """Return the next step for a Reassignment whose cluster could not be looked at: say so, keep the rest, try again."""
    status = reassignment.status
    if status.state is not None and status.state.ended:
        return Done()
    if not away.definite and waited_s < FAILOVER_PATIENCE_S:
        return Retry(cap_s=FAILOVER_RETRY_CAP_S)
    wanted = pending(reassignment, UNKNOWN, away.reason, away.message, now)
    wanted = replace(wanted, state=status.state or State.PENDING, observed_generation=status.observed_generation)
    step = written(reassignment, wanted)
    if step is not None:
        return step
    return let_go_or_retry(away, waited_s, held=reassignment.metadata.held)


def find_places(plan: Plan, base: Plan, view: ReassignmentView) -> Places:
    """Sort a plan's partitions by where the cluster shows them."""
    before = {item.partition: item.replicas for item in base}
    present = {
        Partition(topic.name, partition.index): partition.replicas
        for topic in view.topics.values()
        for partition in topic.partitions
    }
    found: dict[str, list[Assignment]] = {"arrived": [], "moving": [], "waiting": [], "stray": []}
    for item in plan:
        move, replicas = view.moves.get(item.partition), present.get(item.partition)
        if move is not None:
            found["moving" if move.target == item.replicas else "stray"].append(item)
        elif replicas == item.replicas:
            found["arrived"].append(item)
        elif replicas is not None and replicas == before.get(item.partition):
            found["waiting"].append(item)
        else:
            found["stray"].append(item)
    return Places(**{name: tuple(items) for name, items in found.items()})


def _before_the_start(reassignment: Reassignment, view: ReassignmentView) -> Step:
    if reassignment.cancel:
        return _end(
            reassignment,
            State.CANCELLED,
            view,
            reason="Cancelled",
            message="Cancelled before anything moved.",
            progress=None,
        )
    plan = exact_plan(reassignment, view.topics)
    trouble = (
        plan
        if isinstance(plan, Trouble)
        else check_plan(plan, topics=view.topics, broker_ids=view.broker_ids, moves=view.moves, rivals=view.rivals)
    )
    if trouble is not None:
        return _troubled(reassignment, trouble, view)
    assert not isinstance(plan, Trouble), reassignment.key
    if not reassignment.metadata.held:
        return Claim()
    before = {Partition(t.name, p.index): p.replicas for t in view.topics.values() for p in t.partitions}
    base = tuple(Assignment(item.partition, before[item.partition]) for item in plan)
    message = "The plan was checked and can be carried out; nothing has moved yet."
    status = replace(
        pending(reassignment, FALSE, "Pending", message, view.now),
        plan=plan,
        base=base,
        progress=Progress(0, len(plan)),
    )
    return written(reassignment, status) or Retry()


def _troubled(reassignment: Reassignment, trouble: Trouble, view: ReassignmentView) -> Step:
    if not trouble.may_pass or view.waited_s >= CHECK_PATIENCE_S:
        message = f"{trouble.message} Nothing was moved. Create another Reassignment to try again."
        return _end(reassignment, State.FAILED, view, reason=trouble.reason, message=message, progress=None)
    message = f"{trouble.message} Nothing is moved."
    status = pending(reassignment, FALSE, trouble.reason, message, view.now)
    return written(reassignment, status) or Retry(RETRY_LATER_S / 2, RETRY_LATER_S)


def _start(reassignment: Reassignment, places: Places, view: ReassignmentView) -> Step:
    """Hand over what still is at its base; when none is left, it runs."""
    if view.failures and not any(passes_by_itself(failure) for failure in view.failures.values()):
        return _refused(reassignment, places, view)
    if places.stray:
        if view.waited_s < STRAY_PATIENCE_S:
            return Retry()
        return _stop_and_fail(reassignment, places, view, reason="Interrupted", message=_stray(places.stray))
    if places.waiting:
        if view.submitted:
            return Retry()
        return Submit({item.partition: item.replicas for item in places.waiting})
    return written(reassignment, running(reassignment, places.progress, view.now)) or Wait(LOOK_EVERY_S)


def _refused(reassignment: Reassignment, places: Places, view: ReassignmentView) -> Step:
    """Take the rest back when the controller refused a part, so that nothing has moved."""
    partition, failure = min(view.failures.items())
    message = f"The controller refused partition {partition}: {message_of(failure)} Everything else was taken back."
    return _stop_and_fail(reassignment, places, view, reason=reason_of(failure), message=message)


def _follow(reassignment: Reassignment, places: Places, view: ReassignmentView) -> Step:
    lost = places.waiting + places.stray
    if lost and not places.moving:
        if view.waited_s < STRAY_PATIENCE_S:
            return Retry(LOOK_EVERY_S, LOOK_EVERY_S)
        return _fail(reassignment, places, view, reason="Interrupted", message=_stray(lost))
    return written(reassignment, running(reassignment, places.progress, view.now)) or Wait(LOOK_EVERY_S)


def _cancel(reassignment: Reassignment, places: Places, view: ReassignmentView) -> Step:
    if places.moving:
        return Retry() if view.submitted else _taken_back(places)
    progress = places.progress
    if progress.done == progress.total:
        return _complete(reassignment, places, view)
    message = f"Cancelled. {progress.done} of {progress.total} partitions had arrived and stay; the others have the replicas of before."
    return _end(reassignment, State.CANCELLED, view, reason="Cancelled", message=message, progress=progress)


def _complete(reassignment: Reassignment, places: Places, view: ReassignmentView) -> Step:
    message = f"All {places.progress.total} partitions have exactly the replicas of the plan."
    return _end(reassignment, State.COMPLETED, view, reason="Completed", message=message, progress=places.progress)


def _stop_and_fail(
    reassignment: Reassignment, places: Places, view: ReassignmentView, *, reason: str, message: str
) -> Step:
    if places.moving:
        return _taken_back(places)
    return _fail(reassignment, places, view, reason=reason, message=message)


def _fail(reassignment: Reassignment, places: Places, view: ReassignmentView, *, reason: str, message: str) -> Step:
    return _end(reassignment, State.FAILED, view, reason=reason, message=message, progress=places.progress)


def _taken_back(places: Places) -> Submit:
    return Submit({item.partition: None for item in places.moving})


def _end(
    reassignment: Reassignment,
    state: State,
    view: ReassignmentView,
    *,
    reason: str,
    message: str,
    progress: Progress | None,
) -> Step:
    status = ended(reassignment, state, reason=reason, message=message, progress=progress, now=view.now)
    return written(reassignment, status) or Done()


def _stray(items: tuple[Assignment, ...]) -> str:
    names = ", ".join(str(item.partition) for item in items[:MAX_LISTED])
    return (
        f"Partitions of the plan neither move nor have arrived ({len(items)}: {names}): they were cancelled, moved elsewhere or "
        "deleted by somebody else. Nothing is tried again."
    )
