"""Days that a run computes, and messages that it reads, by what is stored and what exists."""

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
EXISTING = {day: dict(source.files) for day, source in STORED.items()}


def test_nothing_is_computed_if_nothing_has_changed() -> None:
    """Deletion of files, or of a whole day, by retention is not a change."""
    without_a_day = {day: files for day, files in EXISTING.items() if day != "2026-01-03"}
    partly_deleted = {**EXISTING, "2026-01-04": {}}

    found = [days_to_compute(STORED, files, {}, FIRST) for files in (EXISTING, without_a_day, partly_deleted)]
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
def test_a_changed_day_and_all_later_days_are_computed(day: str, files: dict[str, int]) -> None:
    """The facts of later days depend on the state of partitions at its end."""
    assert days_to_compute(STORED, {**EXISTING, day: files}, {}, FIRST) == DayRange(day, None, after_others=True)


def test_days_before_the_window_are_not_computed() -> None:
    """Their facts are kept. A first run starts without a state."""
    changed = {**EXISTING, "2026-01-02": {"late": 1}}

    assert days_to_compute(STORED, changed, {}, FIRST) is None
    assert days_to_compute({}, changed, {}, FIRST) == DayRange(FIRST, None, after_others=False)


def test_new_rates_are_used_and_deleted_rates_are_kept() -> None:
    """Prometheus stores rates for days, facts are stored for months."""
    stored = {**STORED, "2026-01-03": replace(STORED["2026-01-03"], rates="7")}

    found = [
        days_to_compute(stored, EXISTING, {"2026-01-03": digest} if digest else {}, FIRST) for digest in ("7", "", "8")
    ]
    assert found == [None, None, DayRange("2026-01-03", None, after_others=True)]


def test_requested_days_are_computed_within_the_window() -> None:
    """Not days before the window, nor days without samples."""
    requested = [("2026-01-01", None), ("2026-01-04", "2026-01-04"), ("2026-02-01", None)]

    assert [days_to_compute(STORED, EXISTING, {}, FIRST, days) for days in requested] == [
        DayRange("2026-01-03", None, after_others=True),
        DayRange("2026-01-04", "2026-01-04", after_others=True),
        None,
    ]


FILES = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3))


@given(FILES, FILES)
def test_a_day_has_changed_if_a_file_is_new_or_has_another_size(
    stored: dict[str, int], existing: dict[str, int]
) -> None:
    """Deleted files are not a change."""
    expected = any(stored.get(name) != size for name, size in existing.items())

    assert has_changed(Source(stored), existing, "") == expected


def test_the_day_before_the_window_is_still_recorded() -> None:
    """The state of partitions before the window is computed from it."""
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
    ids=["first run", "next run", "retention deleted some", "a new partition", "cut", "created again"],
)
def test_messages_are_read_from_the_end_of_the_last_run(position: Position, start: dict[int, int]) -> None:
    """Deleted messages are a gap. A topic that was created again is read from its start."""
    assert range_to_read("t", ENDS, position) == OffsetRange("t", start, {0: 100, 1: 50})


OFFSETS = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)).map(sorted)


@given(OFFSETS, st.none() | st.integers(0, 30), st.sampled_from(["id", "another"]))
def test_the_range_to_read_exists(offsets: list[int], known: int | None, topic_id: str) -> None:
    """Kafka has the first and the last message of the range, whatever was recorded."""
    earliest, since, latest = offsets
    ends = TopicEnds("id", {0: earliest}, {0: since}, {0: latest})
    position = Position() if known is None else Position(topic_id, {0: known})

    found = range_to_read("t", ends, position)

    assert earliest <= found.start[0] <= found.end[0] == latest
