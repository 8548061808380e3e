"""Times of schedules: what comes next, what was missed, and what clocks that are put on and back do to both."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.decide.cron_times import MAX_MISSED, PeriodTimes, ScheduleError, Times, read_times

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca")
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis takes naive bounds
FIELDS = st.tuples(
    st.sampled_from(("*", "0", "30", "*/7", "5,50")),
    st.sampled_from(("*", "2", "1-3", "*/5", "23")),
    st.sampled_from(("*", "1", "31", "*/10")),
    st.sampled_from(("*", "3,10", "2", "*/4")),
    st.sampled_from(("*", "0", "1-5", "SUN")),
)
SCHEDULES = st.builds(lambda fields, zone: (" ".join(fields), zone), FIELDS, st.sampled_from(ZONES))


def times_of(schedule: tuple[str, str]) -> Times | PeriodTimes | None:
    """The times of a schedule; None for one that never comes."""
    try:
        return read_times(*schedule)
    except ScheduleError:
        return None


@given(SCHEDULES, MOMENTS)
def test_times_ascend_and_none_comes_twice(schedule: tuple[str, str], moment: datetime) -> None:
    """Also where a clock is put back."""
    times = times_of(schedule)
    found = [] if times is None else list(islice(times.after(moment), 6))

    assert all(before < after for before, after in pairwise([moment, *found]))


@given(SCHEDULES, MOMENTS, st.integers(0, 60 * 24 * 3))
def test_what_comes_next_does_not_depend_on_where_one_begins(
    schedule: tuple[str, str], moment: datetime, minutes: int
) -> None:
    """A restarted process computes the same times: one run for each."""
    times = times_of(schedule)
    if times is None:
        return
    later = moment + timedelta(minutes=minutes)
    first = next((time for time in islice(times.after(moment), 5_000) if time > later), None)

    assert first == times.next_after(later)


@given(SCHEDULES, MOMENTS, st.integers(0, 60 * 24 * 40))
def test_the_last_time_that_was_missed_is_the_last_of_all(
    schedule: tuple[str, str], since: datetime, minutes: int
) -> None:
    """The quick way and the plain one agree."""
    times = times_of(schedule)
    if times is None:
        return
    now = since + timedelta(minutes=minutes)
    plain = []
    for time in times.after(since):
        if time > now:
            break
        plain.append(time)
    found = times.missed(since, now)

    assert (plain[-1] if plain else None) == (None if found is None else found.last)
    assert min(len(plain), MAX_MISSED + 1) == (0 if found is None else found.count)


def times(schedule: str, zone: str, begin: str, count: int = 3) -> list[str]:
    """The next times after a local moment, by the local clock."""
    at = ZoneInfo(zone)
    found = islice(read_times(schedule, zone).after(datetime.fromisoformat(begin).replace(tzinfo=at)), count)
    return [time.astimezone(at).isoformat(timespec="minutes") for time in found]


def test_a_time_that_is_left_out_comes_right_after_the_gap() -> None:
    """Europe/Berlin, 29 March 2026: 02:00 to 03:00 is not there."""
    expected = ["2026-03-28T02:30+01:00", "2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]
    assert times("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00") == expected


def test_a_time_that_comes_twice_is_taken_once() -> None:
    """Europe/Berlin, 25 October 2026: 02:00 to 03:00 comes twice."""
    expected = ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]
    assert times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", 2) == expected


def test_every_hour_goes_by_the_hours_that_there_are() -> None:
    """Twenty-five of them."""
    found = times("0 * * * *", "Europe/Berlin", "2026-10-25T00:30", 4)
    assert found[:3] == ["2026-10-25T01:00+02:00", "2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00"]


@pytest.mark.parametrize(
    ("macro", "expected"),
    [("@hourly", "2026-01-01T13:00"), ("@daily", "2026-01-02T00:00"), ("@Weekly", "2026-01-04T00:00")],
)
def test_macros_are_known(macro: str, expected: str) -> None:
    """As cron(5) has them."""
    assert times(macro, "UTC", "2026-01-01T12:00", 1) == [f"{expected}+00:00"]


@pytest.mark.parametrize(
    ("schedule", "zone", "message"),
    [
        ("61 * * * *", "UTC", "minute"),
        ("* * * *", "UTC", "five fields"),
        ("0 0 * * * *", "UTC", "five fields"),
        ("0 0 30 2 *", "UTC", "day-of-month"),
        ("@every 59s", "UTC", "at least 60 s"),
        ("@every -1h", "UTC", "no duration"),
        ("@every 1 h", "UTC", "no duration"),
        ("@every 1d", "UTC", "no duration"),
        ("@every", "UTC", "no duration"),
        ("@every 99999999999h", "UTC", "at most"),
        ("0 0 * * *", "Mars/Olympus", "tz database"),
        ("0 0 * * *", "../../etc/passwd", "tz database"),
        ("0 0 * * *", "Europe", "tz database"),
    ],
)
def test_an_invalid_schedule_is_reported_with_its_reason(schedule: str, zone: str, message: str) -> None:
    """And reads no file but those of the database."""
    with pytest.raises(ScheduleError, match=message):
        read_times(schedule, zone)


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [("@every 1h", 3600), ("@every 3m", 180), ("@every 1h30m10s", 5410), ("@every 1.5h", 5400), ("@every 90500ms", 90)],
)
def test_a_period_counts_from_the_last_run_or_the_creation(schedule: str, seconds: int) -> None:
    """As robfig/cron reads it (ParseStandard, ConstantDelaySchedule): a Go duration, rounded down to whole seconds."""
    anchor = datetime(2026, 1, 1, 12, 0, 7, tzinfo=UTC)
    found = islice(read_times(schedule, "UTC", anchor).after(anchor), 2)

    assert [(time - anchor).total_seconds() for time in found] == [seconds, 2 * seconds]


@given(MOMENTS, MOMENTS, st.integers(60, 200_000), st.integers(0, 60 * 60 * 24 * 10))
def test_the_times_of_a_period_do_not_depend_on_where_one_begins(
    anchor: datetime, begin: datetime, period_s: int, seconds: int
) -> None:
    """A process that is restarted finds the same times; the count and the last of the missed ones agree with them."""
    anchor, begin = anchor.replace(microsecond=0), max(anchor, begin)
    now = begin + timedelta(seconds=seconds)
    times = read_times(f"@every {period_s}s", "UTC", anchor)
    plain = []
    for time in times.after(begin):
        if time > now:
            break
        plain.append(time)
    found = times.missed(begin, now)

    assert all((time - anchor) % timedelta(seconds=period_s) == timedelta() for time in plain)
    assert (None if found is None else found.last) == (plain[-1] if plain else None)
    assert (0 if found is None else found.count) == min(len(plain), MAX_MISSED + 1)
    assert times.next_after(begin) == next(iter(times.after(begin)))


def test_a_year_of_missed_minutes_is_quick_to_reckon() -> None:
    """More than a hundred are not counted; the last one is found anyway."""
    since = datetime(2025, 1, 1, tzinfo=UTC)
    missed = read_times("* * * * *", "Europe/Berlin").missed(since, since + timedelta(days=365))

    assert missed is not None
    assert missed.too_many
    assert since + timedelta(days=365) == missed.last
