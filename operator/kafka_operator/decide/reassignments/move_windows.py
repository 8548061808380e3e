"""Windows of a Reassignment, in the syntax of Argo CD's sync windows: cron schedule, duration, time zone.

A window that opens at `start` is open for all times from `start`, included, to `start` + duration, excluded. The duration is elapsed time:
a change to or from daylight saving time within a window does not change its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.resources.reassignment_terms import Window
from reconciler.decide.cron_times import EPOCH, PeriodTimes, ScheduleError, Times, read_times
from reconciler.decide.fixed_period import read_duration_s

MIN_DURATION_S = 60
"""A cron schedule has no shorter unit than a minute."""

MAX_DURATION_S = 31 * 24 * 3600
"""A month: a longer time without a pause needs no window."""


@dataclass(frozen=True, slots=True)
class OpenTimes:
    """The times at which one window is open."""

    times: Times
    duration: timedelta

    def is_open(self, now: datetime) -> bool:
        """Return whether the window is open."""
        return self.times.last_of(now - self.duration, now) is not None


def problem_of_windows(windows: Sequence[Window]) -> PlanProblem | None:
    """Return the problem of the first window that cannot be used; None if all of them can."""
    read = (read_window(window) for window in windows)
    return next((found for found in read if isinstance(found, PlanProblem)), None)


def read_window(window: Window) -> OpenTimes | PlanProblem:
    """Return the times of a window, or why it cannot be used: it is invalid, or it never opens."""
    try:
        times = read_times(window.schedule, window.time_zone)
    except ScheduleError as error:
        return PlanProblem("InvalidWindow", f"A window of spec.windows is invalid. {error}")
    if isinstance(times, PeriodTimes):
        message = (
            f"A window of spec.windows has the schedule {window.schedule!r}: only cron expressions have a time of day."
        )
        return PlanProblem("InvalidWindow", message)
    duration_s = read_duration_s(window.duration)
    if duration_s is None or not MIN_DURATION_S <= duration_s <= MAX_DURATION_S:
        message = (
            f"A window of spec.windows has the duration {window.duration!r}: write 1m to 744h, such as 6h or 1h30m."
        )
        return PlanProblem("InvalidWindow", message)
    if times.next_after(EPOCH) is None:
        message = f"The schedule {window.schedule!r} of spec.windows has no time within fifty years, so its window never opens."
        return PlanProblem("InvalidWindow", message)
    return OpenTimes(times, timedelta(seconds=duration_s))


def next_opening(windows: Sequence[Window], now: datetime) -> datetime | None:
    """Return the time at which the next window opens; None while one is open, and without windows.

    All windows must be usable (`problem_of_windows`).

    >>> from datetime import UTC
    >>> nights = [Window("0 22 * * *", "6h", "Europe/Berlin")]
    >>> str(next_opening(nights, datetime(2026, 1, 1, 12, tzinfo=UTC)))
    '2026-01-01 21:00:00+00:00'
    >>> next_opening(nights, datetime(2026, 1, 1, 21, tzinfo=UTC)) is None
    True
    """
    read = [found for window in windows if isinstance(found := read_window(window), OpenTimes)]
    if not read or any(found.is_open(now) for found in read):
        return None
    return min(following for found in read if (following := found.times.next_after(now)) is not None)
