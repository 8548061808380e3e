"""Schedules with a fixed period (`@every 1h30m`), in the syntax of robfig/cron, which Kubeflow uses.

The times are anchor + n x period. The anchor is the last time of the schedule that is done, else its creation: both are on one grid, so
neither a restarted process nor the time that creating a run takes shifts it. No time zone changes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count

EVERY = "@every"

UNITS_S = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
"""Units of a Go duration (time.ParseDuration)."""

DURATION = re.compile(r"(?:\d{1,12}(?:\.\d{1,9})?(?:ns|us|µs|ms|s|m|h)){1,8}")
PART = re.compile(r"([\d.]+)(ns|us|µs|ms|s|m|h)")

MIN_PERIOD_S = 60
"""A run is named by the minute of its time, and a cron schedule has no shorter period either."""

MAX_PERIOD_S = 366 * 24 * 3600
"""A year: more is a typing error, and sums with it stay within the dates that there are."""


class PeriodError(ValueError):
    """A period that cannot be used; the message contains what to write."""


@dataclass(frozen=True, slots=True)
class Every:
    """The times of a fixed period."""

    anchor: datetime
    period: timedelta

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the times after a moment, ascending.

        >>> from datetime import UTC
        >>> from itertools import islice
        >>> times = Every(datetime(2026, 1, 1, 12, 0, 7, tzinfo=UTC), timedelta(hours=1))
        >>> [str(time) for time in islice(times.after(datetime(2026, 1, 1, 14, tzinfo=UTC)), 2)]
        ['2026-01-01 14:00:07+00:00', '2026-01-01 15:00:07+00:00']
        """
        first = self._passed(moment) + 1
        return (self.anchor + number * self.period for number in count(first))

    def last_of(self, since: datetime, now: datetime) -> tuple[datetime, int] | None:
        """Return the last time after `since` that has come by `now`, and how many have; None where none has."""
        passed, before = self._passed(now), self._passed(since)
        return (self.anchor + passed * self.period, passed - before) if passed > before else None

    def _passed(self, moment: datetime) -> int:
        """Return how many times have come by a moment; the anchor itself is none."""
        return max(0, (moment - self.anchor) // self.period)


def read_every(schedule: str, anchor: datetime) -> Every:
    """Read `@every <duration>`; PeriodError with the reason for one that cannot be used.

    >>> from datetime import UTC
    >>> read_every("@every 1h30m", datetime(2026, 1, 1, tzinfo=UTC)).period.total_seconds()
    5400.0
    """
    seconds = read_duration_s(schedule.strip()[len(EVERY) :].strip())
    if seconds is None:
        raise PeriodError(f"The schedule {schedule!r} contains no duration: use h, m and s, such as @every 1h30m.")
    if seconds < MIN_PERIOD_S:
        raise PeriodError(f"The period of {schedule!r} is {seconds} s: it must be at least 60 s.")
    if seconds > MAX_PERIOD_S:
        raise PeriodError(f"The period of {schedule!r} is {seconds} s: it must be at most one year.")
    return Every(anchor, timedelta(seconds=seconds))


def read_duration_s(text: str) -> int | None:
    """Return the whole seconds of a Go duration such as 1h30m; None for a text that is none.

    >>> [read_duration_s("1h30m"), read_duration_s("90"), read_duration_s("1.5s")]
    [5400, None, 1]
    """
    if DURATION.fullmatch(text) is None:
        return None
    return int(sum(Decimal(number) * UNITS_S[unit] for number, unit in PART.findall(text)))
