"""Deletion of resources that have ended, after their time to live (ttlSecondsAfterFinished, as of a Job)."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.decide.steps import DeleteResource, Done, Wait
from reconciler.resources.metadata import read_time

MAX_WAIT_S = 3_600.0
"""Maximum sleep until the time to live expires: an edit wakes the resource, a change of the system clock does not."""


def decide_expiry(completion_time: str | None, limit_s: int | None, now: datetime) -> DeleteResource | Wait | Done:
    """Return the next step for a resource that has ended; without a limit it stays."""
    if limit_s is None or completion_time is None:
        return Done()
    over = read_time(completion_time) + timedelta(seconds=limit_s)
    if now >= over:
        return DeleteResource()
    return Wait(min((over - now).total_seconds(), MAX_WAIT_S))
