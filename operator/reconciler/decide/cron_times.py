"""Times of a cron schedule in a time zone: the next time, and missed times.

    fields        minute, hour, day of month, month, day of week, as cron(5) has them; @hourly, @daily, @weekly, @monthly, @yearly too
    @every 1h30m  a fixed period, which knows no clock (fixed_period)
    clock put on  a time that is left out comes right after the gap, once; one of every hour or minute goes by the clock that there is
    clock back    a time that comes twice is taken the first time; one of every hour or minute is taken both times

That is what Debian's cron does, and cronsim after it. All times that leave here are UTC, ascending, and none twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from reconciler.decide.fixed_period import EVERY, Every, PeriodError, read_every

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FIELDS = 5
"""More would be seconds, which no Kubernetes schedule has."""

LEAD_IN = timedelta(hours=4)
"""Times are reckoned from so long before they are wanted, so that a clock that was put back (never by more) hides none."""

MAX_MISSED = 100
"""More missed times than this are reported as too many, as a CronJob does (its controller, getMostRecentScheduleTime)."""

SPANS = tuple(timedelta(hours=hours) for hours in (2, 24, 24 * 8, 24 * 64, 24 * 400, 24 * 366 * 9))
"""Steps backwards in the search for the last missed time: minutes are found among the last two hours, the 29th of February
among the last nine years."""


class ScheduleError(ValueError):
    """An invalid schedule or time zone; the message contains what to write."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The last of the times that have come, and how many have: `MAX_MISSED` + 1 means more."""

    last: datetime
    count: int

    @property
    def too_many(self) -> bool:
        """Whether the number of missed times exceeds the limit of the count."""
        return self.count > MAX_MISSED


@dataclass(frozen=True, slots=True)
class PeriodTimes:
    """The times of a schedule with a fixed period."""

    every: Every

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the times after a moment, ascending."""
        return self.every.after(moment)

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time after a moment."""
        return next(self.after(moment))

    def missed(self, since: datetime, now: datetime) -> Missed | None:
        """Return the times after `since` that have come by `now`; None where there is none."""
        found = self.every.last_of(since, now)
        return None if found is None else Missed(found[0], min(found[1], MAX_MISSED + 1))


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a cron schedule."""

    expression: str
    zone: ZoneInfo

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the times after a moment, ascending; it ends where fifty years have none.

        >>> from datetime import datetime, UTC
        >>> from itertools import islice
        >>> [str(time) for time in islice(read_times("30 2 * * *", "Europe/Berlin").after(datetime(2026, 3, 27, 12, tzinfo=UTC)), 3)]
        ['2026-03-28 01:30:00+00:00', '2026-03-29 01:00:00+00:00', '2026-03-30 00:30:00+00:00']
        """
        last = moment
        for time in CronSim(self.expression, (moment - LEAD_IN).astimezone(self.zone)):
            found = time.astimezone(UTC)
            if found > last:
                last = found
                yield found

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time after a moment; None where fifty years have none."""
        return next(self.after(moment), None)

    def missed(self, since: datetime, now: datetime) -> Missed | None:
        """Return the times after `since` that have come by `now`; None where there is none."""
        last = self.last_of(since, now)
        if last is None:
            return None
        count = sum(time <= now for time in islice(self.after(since), MAX_MISSED + 1))
        return Missed(last, count)

    def last_of(self, since: datetime, now: datetime) -> datetime | None:
        """Return the last time after `since` that has come by `now`; None where there is none."""
        for span in SPANS:
            begin = max(since, now - span)
            found: datetime | None = None
            for time in self.after(begin):
                if time > now:
                    break
                found = time
            if found is not None or begin == since:
                return found
        return None


def read_times(schedule: str, time_zone: str, anchor: datetime = EPOCH) -> Times | PeriodTimes:
    """Read a schedule; ScheduleError with the reason for one that is none. A fixed period counts from `anchor`."""
    expression = MACROS.get(schedule.strip().lower(), schedule.strip())
    if expression.split()[:1] == [EVERY]:
        try:
            return PeriodTimes(read_every(schedule, anchor))
        except PeriodError as error:
            raise ScheduleError(str(error)) from error
    if len(expression.split()) != FIELDS:
        raise ScheduleError(
            f"The schedule {schedule!r} is not a cron expression with five fields (minute hour day month weekday)."
        )
    try:
        zone = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(
            f"The time zone {time_zone!r} is not in the tz database, which has names such as Etc/UTC and Europe/Berlin."
        ) from error
    try:
        CronSim(expression, datetime(2026, 1, 1, tzinfo=zone))
    except CronSimError as error:
        raise ScheduleError(f"The schedule {schedule!r} is not a cron expression: {error}.") from error
    return Times(expression, zone)
