"""Reassignments whose namespace may not, or may no longer, use their topics.

Nothing more is submitted, cancelled or rolled back for it: which moves are its own is written only in its status, and a status gives
no right. Moves that the controller already has run to their end under their throttle. Then, or at its deletion, the throttle is removed.
It goes on where it was when the Cluster allows it again.
"""

from __future__ import annotations

from dataclasses import replace

from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.plan_completion import clean_up, remove_throttle, with_left
from kafka_operator.decide.reassignments.reassignment_status import judged, written
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView, Step, poll_interval_s
from kafka_operator.decide.tenants.tenancy import Refusal
from kafka_operator.decide.timeouts import release_after_timeout
from kafka_operator.resources.reassignment import Reassignment
from kafka_operator.resources.reassignment_terms import Action
from reconciler.decide.conditions import FALSE
from reconciler.decide.steps import RETRY_LATER_S, Done, Release, ResourceEvent, Retry, Wait


def decide_refused(reassignment: Reassignment, view: ReassignmentView, refusal: Refusal) -> Step:
    """Return the next step for a Reassignment without a right, on a cluster that answers."""
    if reassignment.metadata.deleted is not None:
        return _deleted(reassignment, view, refusal)
    status = reassignment.status
    if (
        status.state is not None
        and status.state.ended
        and (status.rollback or reassignment.action is not Action.ROLLBACK)
    ):
        return clean_up(reassignment, view)
    running = _running(reassignment, view)
    shown = judged(reassignment, FALSE, refusal.reason, _message(refusal), view.now, stalled=not running)
    if status.progress is not None:  # nothing is measured any more
        shown = replace(shown, progress=replace(status.progress, bytes_moved=None, bytes_total=None, eta_s=None))
    if running:
        return written(reassignment, shown) or Wait(poll_interval_s(running))
    step, left, message = remove_throttle(reassignment, view)
    if step is not None:
        return step
    shown = with_left(reassignment, shown, left, message, view)
    return written(reassignment, shown) or (Done() if left is None else Retry(RETRY_LATER_S))


def decide_refused_unavailable(
    reassignment: Reassignment, unavailable: Unavailable, refusal: Refusal, view: ReassignmentView
) -> Step:
    """Return the next step while the cluster does not answer: the namespace learns nothing of the cluster."""
    if reassignment.metadata.deleted is not None:
        if not reassignment.metadata.has_finalizer:
            return Done()
        if not reassignment.status.begun and reassignment.status.throttle is None:
            return Release()
        return release_after_timeout(view.waited_s, _left(refusal), unavailable)
    shown = judged(reassignment, FALSE, refusal.reason, _message(refusal), view.now)
    return written(reassignment, shown) or Retry(RETRY_LATER_S)


def _deleted(reassignment: Reassignment, view: ReassignmentView, refusal: Refusal) -> Step:
    if not reassignment.metadata.has_finalizer:
        return Done()
    step, left, message = remove_throttle(reassignment, view)
    if step is not None:
        return step
    if left is not None:
        return release_after_timeout(view.waited_s, ResourceEvent(True, "ThrottleLeft", message))
    return Release(_left(refusal) if _running(reassignment, view) else None)


def _running(reassignment: Reassignment, view: ReassignmentView) -> int:
    """Return how many partitions of its plan move, as Kafka shows them."""
    if not isinstance(view.recorded, Recorded) or not reassignment.status.begun:
        return 0
    plan = view.recorded.plan
    if reassignment.is_between_log_dirs:
        return sum(any(found.future for found in view.current.dirs_of(item.partition).values()) for item in plan)
    return sum(item.partition in view.moves for item in plan)


def _message(refusal: Refusal) -> str:
    return f"{refusal.message} No further move is started for this Reassignment."


def _left(refusal: Refusal) -> ResourceEvent:
    return ResourceEvent(
        True, "MovesGoOn", f"Moves that the controller has already accepted are not cancelled. {refusal.message}"
    )
