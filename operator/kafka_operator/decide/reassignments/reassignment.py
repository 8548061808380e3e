"""Reconciliation of a Reassignment.

    (new) ─► Proposed ─► Pending ─► Running ─► Completed ─┐
      │          │          │          ├─cancel─► Cancelled ─┤ rollback
      └──────────┴──────────┴──────────┴────────► Failed ────┴─────────► RollingBack ─► RolledBack

Plan and base are recorded before the controller receives either. Afterwards the state shown by the controller decides, so a process that
is killed at any moment continues from the current state. A partition is submitted once (O9). Moves that another client makes later are
reported, not reverted; but a rollback returns every partition to its base, wherever it is.

A guard may start the rollback as well as a user (`status.rollback`); `spec.action` stays as the user wrote it.

Parts: `plan_preparation` until plan and base are recorded and approved, `permission` to start moves (windows, guard, canary),
`plan_execution` in both directions, `plan_completion` with removal of the throttle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.partition_progress import (
    PartitionProgress,
    find_progress,
    find_rollback_progress,
)
from kafka_operator.decide.reassignments.permission import Permission, find_permission
from kafka_operator.decide.reassignments.plan_completion import cancel_moves, clean_up, finish, stop
from kafka_operator.decide.reassignments.plan_execution import decide_execution, progress_of
from kafka_operator.decide.reassignments.plan_preparation import (
    decide_preparation,
    decide_proposed,
    has_drifted,
    propose_again,
)
from kafka_operator.decide.reassignments.reassignment_status import (
    WAITING_FOR_CORDON,
    judged,
    released,
    running,
    written,
)
from kafka_operator.decide.reassignments.reassignment_view import CORDON_TIMEOUT_S, ReassignmentView, Step
from kafka_operator.decide.steps import Claim
from kafka_operator.decide.timeouts import FAILOVER_RETRY_CAP_S, FAILOVER_TIMEOUT_S, release_or_retry
from kafka_operator.resources.reassignment import Reassignment, ReassignmentStatus, State
from kafka_operator.resources.reassignment_terms import Action, Approval
from reconciler.decide.conditions import FALSE, UNKNOWN, with_job_end
from reconciler.decide.expiry import decide_expiry
from reconciler.decide.listed import listed
from reconciler.decide.steps import RETRY_LATER_S, Done, Release, Retry

CORDON_RETRY_CAP_S = 1.0
"""Longest retry delay while a cordon is made or removed, which takes some hundred milliseconds."""


def decide_reassignment(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """Return the next step for a Reassignment that is not being deleted, on a cluster that answers."""
    status = reassignment.status
    if reassignment.is_finished:
        conditions = with_job_end(status.conditions, view.now)  # those that release 0.1.0 did not write
        observed = replace(status, observed_generation=reassignment.metadata.generation, conditions=conditions)
        return written(reassignment, observed) or (
            Release() if reassignment.metadata.has_finalizer else _expiry(reassignment, view.now)
        )
    if not status.recorded:
        return decide_preparation(reassignment, view)
    if not reassignment.metadata.has_finalizer:
        return Claim()
    if status.state is not None and status.state.ended and (status.rollback or not reassignment.goes_back):
        return clean_up(reassignment, view)
    if not isinstance(view.recorded, Recorded):
        return _lost(reassignment, view)
    if reassignment.goes_back and status.state not in {State.PROPOSED, None}:
        return _decide_rollback(reassignment, view, view.recorded)
    return _decide_forward(reassignment, view, view.recorded)


def decide_reassignment_unavailable(
    reassignment: Reassignment, unavailable: Unavailable, now: datetime, waited_s: float
) -> Step:
    """Return the next step for a Reassignment whose cluster could not be read: report it, keep the rest of the status, and retry."""
    state = reassignment.status.state
    if reassignment.is_finished:
        return Done() if reassignment.metadata.has_finalizer else _expiry(reassignment, now)
    if not unavailable.definite and waited_s < FAILOVER_TIMEOUT_S:
        return Retry(cap_s=FAILOVER_RETRY_CAP_S)
    if state is not None and state.ended:  # the final status is kept; the remaining work waits
        return release_or_retry(unavailable, waited_s, has_finalizer=reassignment.metadata.has_finalizer)
    status = judged(reassignment, UNKNOWN, unavailable.reason, unavailable.message, now)
    step = written(reassignment, replace(status, state=state or State.PENDING))
    return step or release_or_retry(unavailable, waited_s, has_finalizer=reassignment.metadata.has_finalizer)


def in_direction(status: ReassignmentStatus, recorded: Recorded) -> Recorded:
    """Return the plan in the direction in which a Reassignment runs: back to the base in a rollback."""
    return Recorded(recorded.base, recorded.plan) if status.rollback else recorded


def _expiry(reassignment: Reassignment, now: datetime) -> Step:
    return decide_expiry(reassignment.status.completion_time, reassignment.ttl_s, now)


def _decide_forward(reassignment: Reassignment, view: ReassignmentView, directed: Recorded) -> Step:
    status = reassignment.status
    partitions = find_progress(directed, status, view.current)
    if status.state is State.PROPOSED:
        return decide_proposed(reassignment, view, partitions)
    if reassignment.action is Action.CANCEL:
        return _cancel(reassignment, view, partitions)
    if partitions.done:
        return _complete(reassignment, view, partitions)
    asks = reassignment.goal is not None or reassignment.approval is Approval.REQUIRED
    if asks and not status.handing_over and has_drifted(partitions):
        return propose_again(reassignment, view)
    permission = find_permission(reassignment, view, directed.plan, partitions)
    if permission.rolls_back:
        return _begin_rollback(reassignment, view, directed)
    may_start = permission.hold is None and not status.handing_over
    if may_start and view.missing_cordons and view.waited_s < CORDON_TIMEOUT_S:
        return _wait_for_cordons(
            reassignment, view, f"Waiting until no new replicas are placed on brokers {_ids(view.missing_cordons)}."
        )
    partitions = replace(partitions, stray=partitions.stray + partitions.gone)
    return decide_execution(reassignment, view, directed, partitions, permission)


def _begin_rollback(reassignment: Reassignment, view: ReassignmentView, recorded: Recorded) -> Step:
    begun = replace(reassignment.status, rollback=True, handed_over=0, handing_over=0, completion_time=None)
    partitions = find_rollback_progress(in_direction(begun, recorded), begun, view.current)
    shown = running(replace(reassignment, status=begun), partitions.progress, view.now)
    shown = released(shown, reassignment.metadata.generation, view.now)
    return written(reassignment, shown) or Retry()


def _decide_rollback(reassignment: Reassignment, view: ReassignmentView, recorded: Recorded) -> Step:
    status = reassignment.status
    if not status.rollback:
        return _begin_rollback(reassignment, view, recorded)
    directed = in_direction(status, recorded)
    partitions = find_rollback_progress(directed, status, view.current)
    if reassignment.action is Action.CANCEL:
        return _cancel_rollback(reassignment, view, partitions)
    claimed = [item.partition for item in directed.plan if item.partition in view.rivals]
    if claimed:
        return _wait_for_rival(reassignment, view, listed(claimed), view.rivals[claimed[0]].name)
    if partitions.stray:
        return Retry() if view.submitted else cancel_moves(partitions.stray, view.current) or Retry(RETRY_LATER_S)
    if view.remaining_cordons and not status.handing_over and view.waited_s < CORDON_TIMEOUT_S:
        return _wait_for_cordons(
            reassignment, view, f"Waiting until the cordon of brokers {_ids(view.remaining_cordons)} is removed."
        )
    if len(partitions.arrived) + len(partitions.gone) == partitions.total:
        return _rolled_back(reassignment, view, partitions)
    return decide_execution(reassignment, view, directed, partitions, Permission(guard=status.guard))


def _wait_for_cordons(reassignment: Reassignment, view: ReassignmentView, message: str) -> Step:
    updated = judged(reassignment, FALSE, WAITING_FOR_CORDON, message, view.now)
    return written(reassignment, updated) or Retry(cap_s=CORDON_RETRY_CAP_S)


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))


def _wait_for_rival(reassignment: Reassignment, view: ReassignmentView, names: str, rival: str) -> Step:
    message = f"Reassignment {rival} moves the same partitions: {names}. The rollback continues when it has ended; cancel it to continue now."
    updated = judged(reassignment, FALSE, "Overlap", message, view.now)
    return written(reassignment, updated) or Retry(RETRY_LATER_S)


def _rolled_back(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> Step:
    what = (
        "are in their previous log directories" if reassignment.is_between_log_dirs else "have their previous replicas"
    )
    message = f"All {len(partitions.arrived)} partitions {what} again."
    if partitions.gone:
        gone = listed([str(item.partition) for item in partitions.gone])
        message = f"{message} {len(partitions.gone)} no longer exist: {gone}."
    progress = progress_of(reassignment, view, partitions)
    reason, record = "RolledBack", reassignment.status.guard
    if reassignment.action is not Action.ROLLBACK:
        why = "" if record is None else f": {record.message}"
        reason, message = "RolledBackByGuard", f"A limit of spec.guard was exceeded{why}. {message}"
    return finish(reassignment, view, State.ROLLED_BACK, reason=reason, message=message, progress=progress)


def _cancel_rollback(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> Step:
    """Stop a rollback that the guard started; a later rollback by the user begins again."""
    step = stop(partitions, view)
    if step is not None:
        return step
    message = (
        f"Cancelled during the rollback that the guard started: {len(partitions.arrived)} of {partitions.total} partitions have their "
        "previous replicas again; the others have the replicas of the plan."
    )
    forward = replace(reassignment, status=replace(reassignment.status, rollback=False))
    progress = progress_of(reassignment, view, partitions)
    return finish(forward, view, State.CANCELLED, reason="Cancelled", message=message, progress=progress)


def _cancel(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> Step:
    step = stop(partitions, view)
    if step is not None:
        return step
    if partitions.done:
        return _complete(reassignment, view, partitions)
    progress = progress_of(reassignment, view, partitions)
    message = f"Cancelled. {progress.done} of {progress.total} partitions had completed and keep their new replicas; the others have their previous replicas again."
    return finish(reassignment, view, State.CANCELLED, reason="Cancelled", message=message, progress=progress)


def _complete(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> Step:
    what = "are in the log directories" if reassignment.is_between_log_dirs else "have the replicas"
    message = f"All {partitions.total} partitions {what} of the plan."
    progress = progress_of(reassignment, view, partitions)
    return finish(reassignment, view, State.COMPLETED, reason="Completed", message=message, progress=progress)


def _lost(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """Report that the stored plan and base are lost: the Reassignment can neither continue nor be rolled back."""
    assert isinstance(view.recorded, PlanProblem), reassignment.key
    updated = judged(reassignment, UNKNOWN, view.recorded.reason, view.recorded.message, view.now, stalled=True)
    return written(reassignment, updated) or Retry(RETRY_LATER_S)
