"""The status that a Reassignment shows in each of its states, and the event that a change of it is worth."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from kafka_operator.decide.conditions import FALSE, TRUE, ready_of, with_ready
from kafka_operator.decide.steps import Announcement, WriteStatus
from kafka_operator.resources.metadata import write_time
from kafka_operator.resources.reassignment import Progress, Reassignment, ReassignmentStatus, State

QUIET = "Pending"
"""The reason that is a step on the way and no news."""


def pending(reassignment: Reassignment, ready: str, reason: str, message: str, now: datetime) -> ReassignmentStatus:
    """Return the status of one that the controller has not taken."""
    return replace(_judged(reassignment, ready, reason, message, now), state=State.PENDING)


def running(reassignment: Reassignment, progress: Progress, now: datetime) -> ReassignmentStatus:
    """Return the status of one that moves."""
    message = f"{progress.done} of {progress.total} partitions have arrived."
    return replace(
        _judged(reassignment, FALSE, "Running", message, now),
        state=State.RUNNING,
        progress=progress,
        start_time=reassignment.status.start_time or write_time(now),
    )


def ended(
    reassignment: Reassignment,
    state: State,
    *,
    reason: str,
    message: str,
    progress: Progress | None,
    now: datetime,
) -> ReassignmentStatus:
    """Return the status of one that is over."""
    assert state.ended, state
    ready = TRUE if state is State.COMPLETED else FALSE
    return replace(
        _judged(reassignment, ready, reason, message, now),
        state=state,
        progress=progress,
        completion_time=write_time(now),
    )


def written(reassignment: Reassignment, status: ReassignmentStatus) -> WriteStatus[ReassignmentStatus] | None:
    """Return the write of a status; None when it is written already."""
    if status == reassignment.status:
        return None
    return WriteStatus(status, _announcement(reassignment.status, status))


def _judged(reassignment: Reassignment, ready: str, reason: str, message: str, now: datetime) -> ReassignmentStatus:
    generation = reassignment.metadata.generation
    conditions = with_ready(
        reassignment.status.conditions, status=ready, reason=reason, message=message, generation=generation, now=now
    )
    return replace(reassignment.status, observed_generation=generation, conditions=conditions)


def _announcement(before: ReassignmentStatus, after: ReassignmentStatus) -> Announcement | None:
    old, new = ready_of(before.conditions), ready_of(after.conditions)
    if (
        new is None
        or new.reason == QUIET
        or (old is not None and old.reason == new.reason and before.state == after.state)
    ):
        return None
    expected = new.status == FALSE and after.state in {State.RUNNING, State.CANCELLED}
    calm = new.status == TRUE or expected
    return Announcement(warning=not calm, reason=new.reason, message=new.message)
