"""Holds: reasons for which a Reassignment that may run starts no further move.

A hold stops neither moves in progress nor their throttle: what the controller has runs to its end, then the throttle is removed (ADR 39).
It applies to the plan, not to a rollback: a rollback is the way out of trouble and waits for no window.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_operator.decide.move_windows import next_opening, problem_of_windows
from kafka_operator.decide.reassignment_view import ReassignmentView
from kafka_operator.resources.reassignment import Reassignment
from reconciler.resources.metadata import write_time

OUTSIDE_WINDOW = "OutsideWindow"

MAX_HOLD_POLL_S = 60.0
"""Longest poll interval of a Reassignment that waits: a change of the system clock is noticed after this time."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why no further move starts, and when to check again, in seconds; `opens` is when the next window opens, in RFC 3339."""

    reason: str
    message: str
    recheck_s: float = MAX_HOLD_POLL_S
    opens: str | None = None
    needs_user: bool = False
    """Whether it lasts until a user acts."""


def find_hold(reassignment: Reassignment, view: ReassignmentView) -> Hold | None:
    """Return why no further move may start now; None if moves may start."""
    if reassignment.status.rollback:
        return None
    return _window_hold(reassignment, view)


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
