"""Hold: the reason for which a Reassignment that may run starts no further move.

A hold stops neither moves in progress nor their throttle: what the controller has runs to its end, then the throttle is removed (ADR 39).
"""

from __future__ import annotations

from dataclasses import dataclass

PENDING = "Pending"
"""A reason of an intermediate step, for which no event is recorded."""

OUTSIDE_WINDOW, GUARD_BREACHED, GUARD_UNKNOWN = "OutsideWindow", "GuardBreached", "GuardUnknown"
CANARY_WAITING, CANARY_APPROVAL_REQUIRED = "CanaryWaiting", "CanaryApprovalRequired"

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
