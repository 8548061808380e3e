"""Deletion of a Reassignment: its moves are cancelled and its throttle is removed before its finalizer is released.

All of it takes bounded time, so that no namespace is blocked; an event reports what was left behind.
"""

from __future__ import annotations

from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.partition_progress import find_progress, find_rollback_progress
from kafka_operator.decide.reassignments.plan_completion import cancel_moves, remove_throttle
from kafka_operator.decide.reassignments.reassignment import in_direction
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView, Step
from kafka_operator.decide.timeouts import release_after_timeout
from kafka_operator.resources.reassignment import Assignment, Reassignment
from reconciler.decide.steps import Done, Release, ResourceEvent


def decide_reassignment_deletion(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """Return the next step for a Reassignment that is being deleted, on a cluster that answers."""
    assert reassignment.metadata.deleted is not None, reassignment.key
    if not reassignment.metadata.has_finalizer:
        return Done()
    begun = reassignment.status.begun
    moving = _moving(reassignment, view) if begun else ()
    if moving:
        if view.submitted:
            return release_after_timeout(view.waited_s, _moves_go_on("The moves are not cancelled."))
        cancellation = cancel_moves(moving, view.current)
        return cancellation or release_after_timeout(
            view.waited_s, _moves_go_on("A broker that moves replicas does not answer.")
        )
    step, left, message = remove_throttle(reassignment, view)
    if step is not None:
        return step
    if left is not None:
        return release_after_timeout(view.waited_s, ResourceEvent(True, "ThrottleLeft", message))
    if begun and isinstance(view.recorded, PlanProblem):
        return Release(_moves_go_on(view.recorded.message))
    return Release(CANCELLED if begun else None)


def decide_reassignment_deletion_unavailable(
    reassignment: Reassignment, unavailable: Unavailable, waited_s: float
) -> Step:
    """Return the next step for a Reassignment that is being deleted while its cluster cannot be read."""
    assert reassignment.metadata.deleted is not None, reassignment.key
    if not reassignment.metadata.has_finalizer:
        return Done()
    if not reassignment.status.begun and reassignment.status.throttle is None:
        return Release()
    return release_after_timeout(waited_s, _moves_go_on(unavailable.message), unavailable)


CANCELLED = ResourceEvent(False, "Cancelled", "Deleted before its end; moves in progress were cancelled.")


def _moving(reassignment: Reassignment, view: ReassignmentView) -> tuple[Assignment, ...]:
    """Return what moves on the way that it is on; nothing where plan and base are gone."""
    if not isinstance(view.recorded, Recorded):
        return ()
    status, directed = reassignment.status, in_direction(reassignment.status, view.recorded)
    find = find_rollback_progress if status.rollback else find_progress
    return find(directed, status, view.current).under_way


def _moves_go_on(why: str) -> ResourceEvent:
    return ResourceEvent(True, "MovesGoOn", f"Moves in progress could not be cancelled and continue. {why}")
