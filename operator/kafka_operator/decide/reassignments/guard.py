"""Guard of a Reassignment: whether its limits are kept, from readings every few seconds.

    a reading over a limit         breach: no further move starts, at once
    ... still over it 10 s later   with action Rollback: every partition moves back
    no reading over a limit        quiet: moves start again after the quiet time, which doubles with each breach up to an hour
    a limit that cannot be read    before the start, nothing moves; later, no further move starts once that has lasted a minute

A breach before the start is treated the same, except that there is nothing to roll back: the plan does not start. A limit that cannot be read is
neither a breach nor quiet, and never a reason for a rollback. The record changes only when one of these changes, so that a
limit that stays exceeded causes one write and one event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kafka_operator.resources.move_guard import Guard, GuardAction, GuardRecord
from reconciler.resources.metadata import read_time, write_time

GUARD_POLL_S = 10.0
"""Interval of the readings: a tenth of the usual evaluation interval of alerts and more often than Prometheus scrapes, and a read of
200,000 partitions takes two seconds."""

UNKNOWN_AFTER_S = 60.0
"""How long a limit may be unreadable before no further move starts: a restart of Prometheus, or some failed scrapes."""

MAX_QUIET_S = 3600.0
"""Longest quiet time that repeated breaches lead to; a longer `resumeAfterSeconds` stays as it is."""

MAX_DOUBLINGS = 12
"""Doublings after which even one second has become the longest quiet time; it bounds the power."""

MAX_WHOLE = 1e15
"""Whole numbers below this one are written with all digits; floats are exact up to nine times as much."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One limit: its name, the value, and the bound; `problem` is the reason for which a value of None could not be read."""

    limit: str
    value: float | None
    bound: float
    problem: str = ""
    is_minimum: bool = False

    @property
    def is_breached(self) -> bool:
        """Whether the value exceeds the bound."""
        if self.value is None:
            return False
        return self.value < self.bound if self.is_minimum else self.value > self.bound

    def __str__(self) -> str:
        """Return the value and the bound as text.

        >>> str(Reading("lag of group a", 2_500_000, 1_000_000))
        'lag of group a: 2500000 (maximum 1000000)'
        """
        bound = f"{'minimum' if self.is_minimum else 'maximum'} {_number(self.bound)}"
        return f"{self.limit}: {'unknown' if self.value is None else _number(self.value)} ({bound})"


def judge(guard: Guard, record: GuardRecord | None, readings: Sequence[Reading], now: datetime) -> GuardRecord | None:
    """Return the record after some readings; unchanged while nothing changes.

    >>> from datetime import UTC
    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> judge(Guard(max_offline=0), None, [Reading("offline partitions", 3.0, 0.0)], now).message
    'offline partitions: 3 (maximum 0)'
    """
    before = record or GuardRecord()
    breached = tuple(reading for reading in readings if reading.is_breached)
    unknown = [reading for reading in readings if reading.value is None]
    if breached:
        after = _breached(before, breached, now)
    elif unknown:
        after = replace(before, quiet_time=None, unknown_time=before.unknown_time or write_time(now))
        if not before.limits:
            after = replace(after, message=_message_of_unknown(before, unknown))
    else:
        after = _quiet(guard, before, now)
    return None if after == GuardRecord() else after


def quiet_s(guard: Guard, breaches: int) -> float:
    """Return the quiet time after this many breaches, in seconds.

    >>> [quiet_s(Guard(resume_after_s=300), count) for count in (1, 2, 3, 9)]
    [300.0, 600.0, 1200.0, 3600.0]
    """
    longest = max(MAX_QUIET_S, guard.resume_after_s)
    doublings: int = min(max(0, breaches - 1), MAX_DOUBLINGS)
    return min(longest, guard.resume_after_s * 2.0**doublings)


def is_unknown(record: GuardRecord, now: datetime) -> bool:
    """Return whether a limit has been unreadable for so long that no further move may start."""
    return record.unknown_time is not None and (now - read_time(record.unknown_time)).total_seconds() >= UNKNOWN_AFTER_S


def rolls_back(guard: Guard, record: GuardRecord | None, readings: Sequence[Reading], now: datetime) -> bool:
    """Return whether moves that have started must be rolled back: a limit is still exceeded one interval after the breach."""
    if guard.action is not GuardAction.ROLLBACK or record is None or record.breach_time is None:
        return False
    confirmed = (now - read_time(record.breach_time)).total_seconds() >= GUARD_POLL_S + 1  # times have whole seconds
    return confirmed and bool(record.limits) and any(reading.is_breached for reading in readings)


def _breached(before: GuardRecord, breached: Sequence[Reading], now: datetime) -> GuardRecord:
    limits = tuple(reading.limit for reading in breached)
    if before.limits:  # nothing has moved since, so it is the same breach
        message = before.message if limits == before.limits else _message(breached)
        return replace(before, limits=limits, message=message, quiet_time=None, unknown_time=None)
    return GuardRecord(before.breaches + 1, limits, _message(breached), write_time(now))


def _quiet(guard: Guard, before: GuardRecord, now: datetime) -> GuardRecord:
    if not before.limits:
        return GuardRecord(before.breaches)
    since = before.quiet_time or write_time(now)
    if (now - read_time(since)).total_seconds() >= quiet_s(guard, before.breaches):
        return GuardRecord(before.breaches)
    return replace(before, quiet_time=since, unknown_time=None)


def _message_of_unknown(before: GuardRecord, unknown: Sequence[Reading]) -> str:
    """Return the message for limits that cannot be read: the current one while it is about one of them, so that it rarely changes."""
    if before.message is not None and any(before.message.startswith(f"{reading.limit}: ") for reading in unknown):
        return before.message
    return f"{unknown[0].limit}: {unknown[0].problem}"


def _message(breached: Sequence[Reading]) -> str:
    return "; ".join(map(str, breached))


def _number(value: float) -> str:
    """Write a number without an exponent where it is whole.

    >>> [_number(2_500_000.0), _number(0.75), _number(1e30)]
    ['2500000', '0.75', '1e+30']
    """
    return str(int(value)) if value == int(value) and abs(value) < MAX_WHOLE else f"{value:.6g}"
