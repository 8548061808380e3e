"""Statuses of a Reassignment, and events for their changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from kafka_operator.decide.reassignments.hold import (
    CANARY_APPROVAL_REQUIRED,
    CANARY_WAITING,
    OUTSIDE_WINDOW,
    PENDING,
    Hold,
)
from kafka_operator.resources.reassignment import Reassignment, ReassignmentStatus, State
from kafka_operator.resources.reassignment_records import Progress
from reconciler.decide.conditions import FALSE, TRUE, judged_job, ready_of, with_condition
from reconciler.decide.steps import ResourceEvent, WriteStatus
from reconciler.resources.metadata import write_time

WAITING_FOR_CORDON = "WaitingForCordon"

QUIET = frozenset({PENDING, WAITING_FOR_CORDON})
"""Reasons of intermediate steps, for which no event is recorded."""

THROTTLE_TOO_LOW, THROTTLE_LEFT, STUCK, WAITING = "ThrottleTooLow", "ThrottleLeft", "Stuck", "Waiting"
"""Conditions that are there only once they were True."""

EXPECTED = {
    "Running",
    "RollingBack",
    "ApprovalRequired",
    WAITING_FOR_CORDON,
    OUTSIDE_WINDOW,
    CANARY_WAITING,
    CANARY_APPROVAL_REQUIRED,
}
"""Reasons of a False Ready that is no problem: work in progress, or a wait that the spec asks for."""

GOOD_ENDS = {"Completed", "RolledBack"}
"""Reasons of ends that the spec asks for; a rollback that the guard started is none."""


def pending(reassignment: Reassignment, ready: str, reason: str, message: str, now: datetime) -> ReassignmentStatus:
    """Return the status of one that the controller has not taken."""
    return replace(judged(reassignment, ready, reason, message, now), state=State.PENDING)


def proposed(reassignment: Reassignment, reason: str, message: str, now: datetime) -> ReassignmentStatus:
    """Return the status of one that waits for approval."""
    return replace(judged(reassignment, FALSE, reason, message, now), state=State.PROPOSED)


def running(reassignment: Reassignment, progress: Progress, now: datetime) -> ReassignmentStatus:
    """Return the status of one that moves, there or back."""
    back = reassignment.status.rollback
    reason, where = ("RollingBack", "are back") if back else ("Running", "have completed")
    message = f"{progress.done} of {progress.total} partitions {where}."
    return replace(
        judged(reassignment, FALSE, reason, message, now),
        state=State.ROLLING_BACK if back else State.RUNNING,
        progress=progress,
        start_time=reassignment.status.start_time or write_time(now),
    )


def held(
    reassignment: Reassignment, shown: ReassignmentStatus, hold: Hold, moving: int, now: datetime
) -> ReassignmentStatus:
    """Return a status of one that starts no further move; `moving` of its partitions still move."""
    message = hold.message if not moving else f"{hold.message} Moves in progress ({moving}) run to their end."
    before = replace(reassignment, status=shown)
    status = judged(before, FALSE, hold.reason, message, now, stalled=hold.needs_user)
    waiting = flagged(status, WAITING, (hold.reason, message), reassignment.metadata.generation, now)
    progress = waiting.progress
    if progress is not None and not moving:  # the time left is not known
        progress = replace(progress, eta_s=None)
    return replace(waiting, next_window_time=hold.opens, progress=progress)


def released(status: ReassignmentStatus, generation: int, now: datetime) -> ReassignmentStatus:
    """Return a status of one that waits no longer."""
    return flagged(replace(status, next_window_time=None), WAITING, None, generation, now)


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
    ready = TRUE if reason in GOOD_ENDS else FALSE
    shown = judged(reassignment, ready, reason, message, now, has_ended=True)
    return replace(
        released(shown, reassignment.metadata.generation, now),
        state=state,
        progress=None if progress is None else replace(progress, eta_s=None),
        completion_time=write_time(now),
    )


def flagged(
    status: ReassignmentStatus, name: str, problem: tuple[str, str] | None, generation: int, now: datetime
) -> ReassignmentStatus:
    """Return a status with one of the rarer conditions: True with a reason and a message, False once it is over."""
    current = next((item for item in status.conditions if item.type == name), None)
    if problem is None:
        if current is None or current.status == FALSE:
            return status
        problem, value = ("Over", "This is no longer the case."), FALSE
    else:
        value = TRUE
    conditions = with_condition(
        status.conditions,
        name,
        status=value,
        reason=problem[0],
        message=problem[1],
        generation=generation,
        now=now,
    )
    return replace(status, conditions=conditions)


def written(reassignment: Reassignment, status: ReassignmentStatus) -> WriteStatus[ReassignmentStatus] | None:
    """Return the write of a status; None when it is written already."""
    if status == reassignment.status:
        return None
    return WriteStatus(status, _event(reassignment.status, status))


def judged(
    reassignment: Reassignment,
    ready: str,
    reason: str,
    message: str,
    now: datetime,
    *,
    has_ended: bool = False,
    stalled: bool = False,
) -> ReassignmentStatus:
    """Return the current status with the given Ready condition; `stalled` where nothing happens before a user acts."""
    metadata, status = reassignment.metadata, reassignment.status
    return judged_job(
        metadata, status, ready=ready, reason=reason, message=message, now=now, ended=has_ended, stalled=stalled
    )


def _event(before: ReassignmentStatus, after: ReassignmentStatus) -> ResourceEvent | None:
    for name in (THROTTLE_LEFT, STUCK):
        old, new = _true(before, name), _true(after, name)
        if new is not None and (old is None or old[0] != new[0]) and before.state == after.state:
            return ResourceEvent(warning=True, reason=new[0], message=new[1])
    return _of_ready(before, after)


def _of_ready(before: ReassignmentStatus, after: ReassignmentStatus) -> ResourceEvent | None:
    old, new = ready_of(before.conditions), ready_of(after.conditions)
    if (
        new is None
        or new.reason in QUIET
        or (old is not None and old.reason == new.reason and before.state == after.state)
    ):
        return None
    ended = after.state is not None and after.state.ended
    expected = new.status == FALSE and (after.state is State.CANCELLED if ended else new.reason in EXPECTED)
    calm = new.status == TRUE or expected
    return ResourceEvent(warning=not calm, reason=new.reason, message=new.message)


def _true(status: ReassignmentStatus, name: str) -> tuple[str, str] | None:
    found = next((item for item in status.conditions if item.type == name and item.status == TRUE), None)
    return None if found is None else (found.reason, found.message)
