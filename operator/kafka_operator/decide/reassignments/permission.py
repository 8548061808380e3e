"""Permission to start further moves: from the windows, the guard and the canary of a Reassignment.

It applies to the plan, not to a rollback: a user who rolls back wants the previous state as soon as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafka_operator.decide.reassignments.canary import canary_hold, health_of, is_over
from kafka_operator.decide.reassignments.guard import GUARD_POLL_S, is_unknown, judge, quiet_s, rolls_back
from kafka_operator.decide.reassignments.hold import (
    GUARD_BREACHED,
    GUARD_UNKNOWN,
    MAX_HOLD_POLL_S,
    OUTSIDE_WINDOW,
    PENDING,
    Hold,
)
from kafka_operator.decide.reassignments.move_windows import next_opening, problem_of_windows
from kafka_operator.decide.reassignments.partition_progress import PartitionProgress
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView
from kafka_operator.resources.canary import CanaryRecord
from kafka_operator.resources.move_guard import Guard, GuardRecord
from kafka_operator.resources.reassignment import Assignment, Reassignment
from kafka_operator.resources.reassignment_records import written_seconds
from reconciler.resources.metadata import write_time

HELD_POLL_S = GUARD_POLL_S / 2
"""Poll interval of a Reassignment that its guard holds: a reading that has become due waits no longer than this."""


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether further moves may start: they may without a `hold`."""

    hold: Hold | None = None
    guard: GuardRecord | None = None
    """The record of the guard to write."""
    canary: CanaryRecord | None = None
    """The record of the canary to write."""
    up_to: int | None = None
    """How many partitions, from the plan's beginning, may be submitted; None for all of them."""
    rolls_back: bool = False
    """Whether the guard requires a rollback instead."""


def find_permission(
    reassignment: Reassignment, view: ReassignmentView, plan: Sequence[Assignment], partitions: PartitionProgress
) -> Permission:
    """Return whether further moves of a plan may start now, and how far. A breach of the guard is reported before the canary."""
    permission = _within_windows_and_guard(reassignment, view, partitions)
    canary = reassignment.canary
    if canary is None or is_over(canary, reassignment, len(plan)):
        return permission
    first = plan[: canary.partitions]
    unhealthy, record = health_of(first, partitions, reassignment.status.canary, view.now)
    if unhealthy is None:
        return replace(permission, up_to=len(first))
    if permission.hold is not None and permission.hold.reason in {GUARD_BREACHED, GUARD_UNKNOWN}:
        return replace(permission, up_to=len(first))
    hold = canary_hold(canary, reassignment.status.digest, unhealthy, record, view.now)
    if hold is None:
        return replace(permission, canary=record)
    return replace(permission, hold=hold, canary=record, up_to=len(first))


def _within_windows_and_guard(
    reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress
) -> Permission:
    """Return the permission of windows and guard. Outside its windows a plan of which nothing moves is not guarded."""
    guard, status = reassignment.guard, reassignment.status
    window = _window_hold(reassignment, view)
    if window is not None and not partitions.moving:
        return Permission(window, None if guard is None else status.guard)
    if guard is None:
        return Permission(window)
    record = status.guard if view.guard is None else judge(guard, status.guard, view.guard, view.now)
    hold = _guard_hold(reassignment, guard, record, view) or window
    back = bool(status.handing_over) and rolls_back(guard, status.guard, view.guard or (), view.now)
    return Permission(hold, record, rolls_back=back)


def _guard_hold(
    reassignment: Reassignment, guard: Guard, record: GuardRecord | None, view: ReassignmentView
) -> Hold | None:
    started = reassignment.status.handing_over > 0
    if record is not None and record.limits:
        quiet = written_seconds(int(quiet_s(guard, record.breaches)))
        what = "Moves start again" if started else "The plan has not started, and starts"
        message = f"A limit of spec.guard is exceeded: {record.message}. {what} once no limit is exceeded for {quiet}."
        return Hold(GUARD_BREACHED, message, HELD_POLL_S)
    if record is not None and is_unknown(record, view.now):
        message = (
            f"A limit of spec.guard cannot be checked: {record.message} No further move starts until it can be checked."
        )
        return Hold(GUARD_UNKNOWN, message, HELD_POLL_S)
    if not started and (view.guard is None or (record is not None and record.unknown_time is not None)):
        return Hold(PENDING, "The plan starts once all limits of spec.guard have been checked.", HELD_POLL_S)
    return None


def _window_hold(reassignment: Reassignment, view: ReassignmentView) -> Hold | None:
    problem = problem_of_windows(reassignment.windows)
    if problem is not None:
        return Hold(problem.reason, f"{problem.message} Correct spec.windows.", needs_user=True)
    opening = next_opening(reassignment.windows, view.now)
    if opening is None:
        return None
    wait_s = min(MAX_HOLD_POLL_S, (opening - view.now).total_seconds())
    message = f"Outside the windows of spec.windows; the next one opens at {write_time(opening)}."
    return Hold(OUTSIDE_WINDOW, message, wait_s, write_time(opening))
