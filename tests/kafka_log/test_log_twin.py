"""The log against its plain twin: any sequence of appends, truncations, deletions and reopenings."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from kafka_log.files.log import Log
from kafka_log.format.index_entries import OFFSET_ENTRY
from kafka_log.format.roll import LogSettings
from kafka_log.format.scan import SegmentScan
from tests.kafka_log.batches import batch, fast_folder
from tests.twins.plain_log import PlainBatch, PlainLog

APPENDS = st.tuples(
    st.just("append"), st.integers(1, 4), st.integers(0, 400), st.integers(0, 3), st.integers(-500, 500)
)
OFFSETS = st.floats(0, 1)
STEPS = st.lists(
    st.one_of(
        *[APPENDS] * 6,
        st.tuples(st.sampled_from(["truncate", "delete", "restart at"]), OFFSETS),
        st.tuples(st.sampled_from(["reopen", "kill", "flush"])),
    ),
    max_size=60,
)
SETTINGS = st.builds(
    LogSettings,
    segment_bytes=st.sampled_from([2_000, 5_000, 1_000_000]),
    segment_ms=st.sampled_from([300, 10**9]),
    index_interval_bytes=st.sampled_from([0, 100, 1_000]),
    index_max_bytes=st.sampled_from([80, 10_000]),
)


class Both:
    """A log and its twin, driven by the same steps."""

    def __init__(self, folder: Path, settings: LogSettings) -> None:
        self.folder = folder
        self.settings = settings
        self.log = Log(folder, settings)
        self.twin = PlainLog()
        self.epoch = 0
        self.recovery_point = 0
        self.deleted_before = 0

    def run(self, step: tuple[object, ...]) -> None:
        """Do one step with both."""
        match step:
            case ("append", int(records), int(size), int(epochs), int(time)):
                self.epoch += epochs // 3
                offset, timestamp = self.twin.end_offset, 10_000 + time
                content = batch(offset, records=records, size_bytes=size, epoch=self.epoch, timestamp_ms=timestamp)
                self.twin.append(PlainBatch(offset, offset + records - 1, self.epoch, timestamp, content))
                self.log.append(content)
            case ("truncate", float(part)):
                offset = self.within(part)
                self.twin.truncate_to(offset)
                self.log.truncate_to(offset)
                self.recovery_point = min(self.recovery_point, self.log.end_offset)
            case ("delete", float(part)):
                offset = self.within(part)
                self.log.delete_before(offset)
                self.deleted_before = offset
                # what is deleted are whole segments: the twin cannot know which
                start = self.log.segment_offsets[0]
                self.twin.batches = [kept for kept in self.twin.batches if kept.base_offset >= start]
                self.twin.start_offset = self.log.start_offset
            case ("restart at", float(part)):
                self.twin.start_at(offset := self.within(part) + 7)
                self.log.truncate_fully_and_start_at(offset)
                self.recovery_point = 0
            case ("reopen",):
                self.log.close()
                self.open()
            case ("kill",):
                # what was written is in the page cache, which a killed process does not take with it
                self.open()
            case ("flush",):
                self.recovery_point = self.log.flush()

    def within(self, part: float) -> int:
        """Return an offset of the log."""
        return self.twin.start_offset + round(part * (self.twin.end_offset - self.twin.start_offset))

    def open(self) -> None:
        """Open the folder again; the log then starts at its first segment."""
        self.log = Log(self.folder, self.settings, recovery_point=self.recovery_point)
        self.twin.start_offset = self.log.segment_offsets[0]

    def check(self) -> None:
        """Compare every answer."""
        log, twin = self.log, self.twin
        assert (log.start_offset, log.end_offset) == (twin.start_offset, twin.end_offset)
        for limit in {twin.end_offset, self.within(0.6)}:
            for part in (0, 0.3, 0.9, 1):
                offset = self.within(part)
                assert self.read_all(offset, limit) == twin.read_from(offset, limit)
        for timestamp in (9_000, 9_900, 10_200, 11_000):
            found = log.find_by_timestamp(timestamp)
            assert (found and found.base_offset) == twin.first_with_timestamp(
                timestamp
            ) or log.start_offset > log.segment_offsets[0]

    def read_all(self, offset: int, limit: int) -> bytes:
        """Read batch by batch, as a follower with the smallest fetches does."""
        parts = []
        while part := self.log.read(offset, 1, up_to=limit):
            parts.append(part)
            found = self.log.batch_with(offset)
            assert found is not None
            offset = found.last_offset + 1
        return b"".join(parts)


DELETED_INSIDE_THE_ONLY_SEGMENT: list[tuple[object, ...]] = [
    ("append", 1, 0, 0, 0),
    ("delete", 1.0),
    ("flush",),
    ("append", 1, 0, 0, 0),
    ("reopen",),
]
ONLY_DELETED_RECORDS_LEFT: list[tuple[object, ...]] = [
    ("append", 1, 0, 0, -301),
    ("flush",),
    ("delete", 1.0),
    ("append", 1, 0, 0, 0),
    ("truncate", 0.0),
]
"""The second append begins another segment, by its age."""


@given(STEPS, SETTINGS)
@example(DELETED_INSIDE_THE_ONLY_SEGMENT, LogSettings())
@example(ONLY_DELETED_RECORDS_LEFT, LogSettings(segment_ms=300))
def test_the_log_answers_as_a_list_of_batches_does(steps: list[tuple[object, ...]], settings: LogSettings) -> None:
    """B2, B5: offsets are dense, and each lookup by an index finds what a search through everything finds."""
    with fast_folder() as folder:
        both = Both(folder / "t-0", settings)
        for step in steps:
            both.run(step)
            both.check()
        both.run(("reopen",))
        both.check()
        found, expected = both.log.epochs.entries[-1:], both.twin.epochs()[-1:]
        if not found and both.log.end_offset <= both.deleted_before:
            return  # The epochs of deleted records are gone, although their segment is still there.
        assert [entry.epoch for entry in found] == [epoch for epoch, _ in expected]
        # The file of epochs keeps the deletion inside a segment, which the segment's start does not.
        assert all(
            entry.start_offset in {start, both.deleted_before}
            for entry, (_, start) in zip(found, expected, strict=True)
        )


@given(STEPS, SETTINGS)
def test_each_index_of_a_closed_log_is_the_one_that_a_check_of_its_segment_builds(
    steps: list[tuple[object, ...]], settings: LogSettings
) -> None:
    """B5, for the offset index byte by byte. The time index may have more entries: one for each time the segment was closed."""
    with fast_folder() as folder:
        both = Both(folder / "t-0", settings)
        for step in steps:
            both.run(step)
        both.log.close()
        for path in (folder / "t-0").glob("*.log"):
            base = int(path.stem)
            scan = SegmentScan(base, base, settings.index_interval_bytes, contiguous=True)
            scan.feed(path.read_bytes())
            assert path.with_suffix(".index").read_bytes() == bytes(scan.offset_entries)
            assert path.with_suffix(".timeindex").read_bytes()[-12:] == scan.close_time_index()[-12:]
            assert len(scan.offset_entries) <= max(settings.index_max_bytes, OFFSET_ENTRY.size)
