"""Days of facts that a run computes: the first day whose samples or rates have changed, and all later days.

The facts of a day depend on its samples and on the state of each partition before them. So a change affects its day, all later days, and
the last hour of the day before, to which the sample at midnight belongs.

Pure values: `jobs/facts.py` lists the files and computes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from balance_analytics.model.manifest import Source

DAY_MS = 24 * 3_600_000

Files = Mapping[str, int]
"""Sizes in bytes by name."""


@dataclass(frozen=True, slots=True)
class DayRange:
    """The days to compute, both inclusive, as ISO dates; `last` is None if there is no end. `after_others`: earlier days are already stored."""

    first: str
    last: str | None
    after_others: bool

    def holds(self, day: str) -> bool:
        """Return whether a day is one of them."""
        return self.first <= day and (self.last is None or day <= self.last)


def days_to_compute(
    recorded: Mapping[str, Source],
    files: Mapping[str, Files],
    rates: Mapping[str, str],
    window_first: str,
    forced: tuple[str, str | None] | None = None,
) -> DayRange | None:
    """Return the days to compute, or None if nothing has changed.

    `recorded` is what the stored days were computed from; `files` are the current samples, `rates` the digests of the current rates.
    Days before `window_first` are not recomputed. `forced` names days that are computed even if nothing has changed.
    """
    in_window = sorted(day for day in files if day >= window_first)
    if forced is not None:
        first, last = max(forced[0], window_first), forced[1]
    else:
        changed = [day for day in in_window if has_changed(recorded.get(day), files[day], rates.get(day, ""))]
        if not changed:
            return None
        first, last = changed[0], None
    if not any(DayRange(first, last, after_others=False).holds(day) for day in in_window):
        return None
    return DayRange(first, last, after_others=any(day < first for day in recorded))


def has_changed(recorded: Source | None, files: Files, rates: str) -> bool:
    """Return whether a day has samples or rates that its facts do not contain.

    Files deleted by retention are not a change: their facts are kept. The same applies to rates.

    >>> has_changed(Source({"a": 1, "b": 2}), {"b": 2}, ""), has_changed(Source({"a": 1}), {"a": 1, "c": 3}, "")
    (False, True)
    """
    if recorded is None:
        return bool(files)
    return not files.items() <= recorded.files.items() or (rates not in {"", recorded.rates})


def sources_after(
    recorded: Mapping[str, Source], computed: Mapping[str, Source], window_first: str
) -> dict[str, Source]:
    """Return the sources to record after some days were computed. Days earlier than the day before the window are dropped."""
    oldest = day_before(window_first)
    return {day: source for day, source in {**recorded, **computed}.items() if day >= oldest}


def day_before(day: str) -> str:
    """Return the day before a day, as an ISO date.

    >>> day_before("2026-03-01")
    '2026-02-28'
    """
    return (dt.date.fromisoformat(day) - dt.timedelta(days=1)).isoformat()


def day_after(day: str) -> str:
    """Return the day after a day, as an ISO date."""
    return (dt.date.fromisoformat(day) + dt.timedelta(days=1)).isoformat()


def day_of(time_ms: int) -> str:
    """Return the day, in UTC, of a Unix time in milliseconds, as an ISO date.

    >>> day_of(start_ms("2026-01-31") - 1)
    '2026-01-30'
    """
    return dt.datetime.fromtimestamp(time_ms / 1000, dt.UTC).date().isoformat()


def start_ms(day: str) -> int:
    """Return the start of a day, in UTC, in Unix milliseconds."""
    return int(dt.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) * 1000
