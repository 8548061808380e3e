"""State machine of SparkApplications: the allowed transitions.

    (none)            Submitted, SubmissionFailed, Suspending, Suspended, Failed
    Submitted         Running, Completed, Failed, PendingRerun, Suspending
    Running           Completed, Failed, PendingRerun, Suspending
    SubmissionFailed  Submitted, Failed, Suspending, Suspended
    PendingRerun      Submitted, SubmissionFailed, Failed, Suspending, Suspended
    Suspending        Suspended (also if it is resumed in the meantime: its driver is being deleted)
    Suspended         Submitted, SubmissionFailed, Failed (resumed), Suspending
    Completed         nothing
    Failed            nothing

Everything else would be an attempt without a driver of its own, or an end that is taken back.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_operator.resources.status import SparkState as S

FOLLOWERS: Mapping[S | None, frozenset[S]] = {
    None: frozenset({S.SUBMITTED, S.SUBMISSION_FAILED, S.SUSPENDED, S.SUSPENDING, S.FAILED}),
    S.SUBMITTED: frozenset({S.RUNNING, S.COMPLETED, S.FAILED, S.PENDING_RERUN, S.SUSPENDING}),
    S.RUNNING: frozenset({S.COMPLETED, S.FAILED, S.PENDING_RERUN, S.SUSPENDING}),
    S.SUBMISSION_FAILED: frozenset({S.SUBMITTED, S.FAILED, S.SUSPENDING, S.SUSPENDED}),
    S.PENDING_RERUN: frozenset({S.SUBMITTED, S.SUBMISSION_FAILED, S.FAILED, S.SUSPENDING, S.SUSPENDED}),
    S.SUSPENDING: frozenset({S.SUSPENDED}),
    S.SUSPENDED: frozenset({S.SUBMITTED, S.SUBMISSION_FAILED, S.FAILED, S.SUSPENDING}),
    S.COMPLETED: frozenset(),
    S.FAILED: frozenset(),
}
"""Allowed successors of each state; a state may always follow itself."""


def may_follow(before: S | None, after: S | None) -> bool:
    """Return whether a state may follow another."""
    return before == after or after in FOLLOWERS[before]
