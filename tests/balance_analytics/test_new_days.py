"""Which days are computed, and which messages are read: plain rules over what is stored and what is there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.jobs.topic_offsets import OffsetRange, TopicEnds, range_to_read
from balance_analytics.model.manifest import Position, Source
from balance_analytics.model.new_days import DayRange, days_to_compute, has_changed, sources_after

FIRST = "2026-01-03"
STORED = {day: Source({f"{day}.parquet": 10}) for day in ("2026-01-02", "2026-01-03", "2026-01-04")}
THERE = {day: dict(source.files) for day, source in STORED.items()}


def test_nothing_is_computed_when_nothing_is_new() -> None:
    """Not even when retention took files, or a whole day."""
    without_a_day = {day: files for day, files in THERE.items() if day != "2026-01-03"}
    taken_in_part = {**THERE, "2026-01-04": {}}

    found = [days_to_compute(STORED, files, {}, FIRST) for files in (THERE, without_a_day, taken_in_part)]
    assert found == [None, None, None]


@pytest.mark.parametrize(
    ("day", "files"),
    [
        ("2026-01-05", {"new": 1}),
        ("2026-01-04", {"2026-01-04.parquet": 10, "late": 1}),
        ("2026-01-03", {"2026-01-03.parquet": 11}),
    ],
    ids=["a new day", "a late file", "a file that has grown"],
)
def test_a_change_reaches_from_its_day_to_the_end(day: str, files: dict[str, int]) -> None:
    """The state of each partition before the next day follows from it."""
    assert days_to_compute(STORED, {**THERE, day: files}, {}, FIRST) == DayRange(day, None, after_others=True)


def test_days_before_the_window_are_left_as_they_are() -> None:
    """Their facts stay; a first run has no state to begin with."""
    changed = {**THERE, "2026-01-02": {"late": 1}}

    assert days_to_compute(STORED, changed, {}, FIRST) is None
    assert days_to_compute({}, changed, {}, FIRST) == DayRange(FIRST, None, after_others=False)


def test_rates_that_are_new_are_taken_and_rates_that_are_gone_are_kept() -> None:
    """Prometheus keeps them for days, facts for months."""
    stored = {**STORED, "2026-01-03": replace(STORED["2026-01-03"], rates="7")}

    found = [
        days_to_compute(stored, THERE, {"2026-01-03": digest} if digest else {}, FIRST) for digest in ("7", "", "8")
    ]
    assert found == [None, None, DayRange("2026-01-03", None, after_others=True)]


def test_days_are_computed_on_demand_within_the_window() -> None:
    """Before it there is nothing to compute from, and days without samples need nothing."""
    asked = [("2026-01-01", None), ("2026-01-04", "2026-01-04"), ("2026-02-01", None)]

    assert [days_to_compute(STORED, THERE, {}, FIRST, days) for days in asked] == [
        DayRange("2026-01-03", None, after_others=True),
        DayRange("2026-01-04", "2026-01-04", after_others=True),
        None,
    ]


FILES = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3))


@given(FILES, FILES)
def test_a_day_has_changed_when_a_file_is_new_or_differs(stored: dict[str, int], there: dict[str, int]) -> None:
    """Files that are gone are no change."""
    expected = any(stored.get(name) != size for name, size in there.items())

    assert expected == has_changed(Source(stored), there, "")


def test_the_day_before_the_window_is_still_recorded() -> None:
    """The state before the window comes from there."""
    computed = {"2026-01-05": Source({"new": 1})}

    assert sorted(sources_after(STORED, computed, "2026-01-04")) == ["2026-01-03", "2026-01-04", "2026-01-05"]


ENDS = TopicEnds("id", {0: 10, 1: 0}, {0: 40, 1: 50}, {0: 100, 1: 50})


@pytest.mark.parametrize(
    ("position", "start"),
    [
        (Position(), {0: 40, 1: 50}),
        (Position("id", {0: 60, 1: 50}), {0: 60, 1: 50}),
        (Position("id", {0: 5, 1: 20}), {0: 10, 1: 20}),
        (Position("id", {0: 60}), {0: 60, 1: 50}),
        (Position("id", {0: 101, 1: 7}), {0: 10, 1: 7}),
        (Position("another", {0: 60, 1: 50}), {0: 10, 1: 0}),
    ],
    ids=["first run", "next run", "retention took some", "a new partition", "cut", "created again"],
)
def test_messages_are_read_from_where_the_last_run_ended(position: Position, start: dict[int, int]) -> None:
    """What retention took is a gap; of a topic that was created again everything is new."""
    assert range_to_read("t", ENDS, position) == OffsetRange("t", start, {0: 100, 1: 50})


OFFSETS = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)).map(sorted)


@given(OFFSETS, st.none() | st.integers(0, 30), st.sampled_from(["id", "another"]))
def test_what_is_read_is_there(offsets: list[int], known: int | None, topic_id: str) -> None:
    """Whatever was recorded, Kafka has the first and the last message of a range."""
    earliest, since, latest = offsets
    ends = TopicEnds("id", {0: earliest}, {0: since}, {0: latest})
    position = Position() if known is None else Position(topic_id, {0: known})

    found = range_to_read("t", ends, position)

    assert earliest <= found.start[0] <= found.end[0] == latest
