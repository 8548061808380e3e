"""Compaction, compared with Kafka's cleaner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_log.errors import CorruptLogError
from kafka_log.files.cleaner import clean_segments
from kafka_log.files.compaction import prepare_cleaning
from kafka_log.files.partition_settings import Checkpoints
from kafka_wire.compression import Compression
from kafka_wire.records import Record, decode_batches, encode_batch
from tests.kafka_log.batches import fast_folder
from tests.kafka_log.judge import PartitionJudge
from tests.kafka_log.partitions import CONFIG, Session, comparable, files
from tests.kafka_log.producer_cases import marker

COMPACTED = CONFIG | {"cleanup.policy": "compact", "delete.retention.ms": 1_000, "max.compaction.lag.ms": 1_000}
MUCH = 240_000
"""Memory of an offset map, of which each key takes 24 bytes."""

KEYED = st.tuples(
    st.just("keyed"),
    st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 300)), min_size=1, max_size=4),
    st.sampled_from([None, None, 1, 2]),
    st.booleans(),
    st.sampled_from([Compression.NONE, Compression.NONE, Compression.NONE, Compression.GZIP]),
)
"""Keys, whether each is a tombstone, and sizes of values; a producer; whether it is transactional; the codec."""
ENDS = st.tuples(st.just("end"), st.sampled_from([1, 2]), st.booleans(), st.integers(0, 1))
STEPS = st.lists(
    KEYED | KEYED | KEYED | ENDS | st.tuples(st.sampled_from(["roll", "clean", "time"])), min_size=5, max_size=40
)


def keyed(
    session: Session,
    keys: list[tuple[int, bool, int]],
    producer_id: int | None = None,
    *,
    transactional: bool = False,
    codec: Compression = Compression.NONE,
) -> tuple[Any, ...]:
    """Return the step that appends records with keys."""
    entry = session.log.producers.entries.get(producer_id or 0)
    records = [
        Record(index, session.now_ms + index, f"key-{key}".encode(), None if is_tombstone else bytes(size))
        for index, (key, is_tombstone, size) in enumerate(keys)
    ]
    if producer_id is None:
        content = encode_batch(records, compression=codec)
    else:
        content = encode_batch(
            records,
            compression=codec,
            producer_id=producer_id,
            producer_epoch=max(entry.epoch, 0) if entry else 0,
            base_sequence=entry.last_sequence + 1 if entry and entry.batches else 0,
            is_transactional=transactional or bool(entry and entry.transaction_first_offset is not None),
        )
    return ("lead", content, 0, "CLIENT", 0)


def steps_of(session: Session, drawn: tuple[Any, ...], dirty: int) -> list[tuple[Any, ...]]:
    """Return the steps for a log in its current state, and the first dirty offset."""
    name, *arguments = drawn
    if name == "keyed":
        keys, producer_id, transactional, codec = arguments
        return [keyed(session, keys, producer_id, transactional=transactional, codec=codec)]
    if name == "end":
        producer_id, abort, raised = arguments
        entry = session.log.producers.entries.get(producer_id)
        epoch = (max(entry.epoch, 0) if entry else 0) + raised
        return [("lead", marker(producer_id, abort=abort, epoch=epoch), 0, "COORDINATOR", 0)]
    if name == "time":
        return [("time", session.now_ms + 600)]
    if name == "clean":
        # Kafka's cleaner is only given logs with something to compact. Everything is replicated.
        active, end = session.log.log.active_base_offset, session.log.end_offset
        undecided = session.log.producers.first_undecided_offset
        stable = min(end if undecided is None else undecided, active)
        first = max((base for base in session.log.log.segment_offsets if base <= stable), default=0)
        asked = [("high_watermark", end), ("dirty", dirty)]
        return [*asked, ("clean", dirty, MUCH)] if dirty < first else asked
    return [drawn]


TRANSACTIONS = [
    ("keyed", [(0, False, 10)], 1, True, Compression.NONE),
    ("keyed", [(0, False, 11), (1, False, 10)], 2, True, Compression.NONE),
    ("end", 1, True, 0),
    ("end", 2, False, 0),
    ("keyed", [(2, False, 10)], 1, False, Compression.NONE),
    ("keyed", [(2, False, 12)], 2, False, Compression.NONE),
    ("keyed", [(1, True, 0), (3, False, 10)], None, False, Compression.NONE),
    ("roll",),
    ("clean",),
    ("time",),
    ("time",),
    ("keyed", [(2, False, 13), (3, True, 0)], None, False, Compression.NONE),
    ("roll",),
    ("clean",),
    ("time",),
    ("time",),
    ("keyed", [(4, False, 10)], None, False, Compression.NONE),
]
"""An aborted and a committed transaction and a tombstone, whose traces are gone in the third round; last batches of both producers."""

ABORTED_AT_THE_END = [
    ("keyed", [(0, False, 10)], None, False, Compression.NONE),
    ("keyed", [(0, False, 10)], 1, True, Compression.NONE),
    ("roll",),
    ("end", 1, True, 0),
    ("keyed", [(1, False, 10)], 1, False, Compression.NONE),
    ("clean",),
]
"""Nothing of the last batch of the round stays but its header."""


@pytest.mark.java
@given(STEPS)
@example(TRANSACTIONS)
@example(ABORTED_AT_THE_END)
def test_the_same_records_of_the_same_segments_stay_as_with_kafkas_cleaner(
    partition_judge: PartitionJudge, drawn: list[tuple[Any, ...]]
) -> None:
    """Cleaner: keys, tombstones and their delete horizons, aborted transactions, end markers, last batches of producers; byte by byte."""
    with fast_folder() as folder:
        session = Session(folder / "steward" / "t-0", config=COMPACTED)
        steps, results, dirty = [], [], 0
        for each in [*drawn, ("roll",), ("clean",), ("time",), ("time",), ("roll",), ("clean",)]:
            for step in steps_of(session, each, dirty):
                steps.append(step)
                results.append(session.take(step))
                dirty = results[-1].get("end_offset", dirty)
        state = session.state()
        session.log.close()
        (folder / "kafka").mkdir()
        answer = partition_judge.run(folder / "kafka" / "t-0", *steps, config=COMPACTED)

        assert [{key: result[key] for key in result if key != "message"} for result in answer["results"]] == results
        assert comparable(answer) == state
        assert contents(folder / "steward" / "t-0") == contents(folder / "kafka" / "t-0")


@pytest.mark.java
@given(STEPS, st.lists(st.integers(0, 60), min_size=3, max_size=3), st.sampled_from([600, 1_200]))
def test_the_part_that_is_compacted_next_is_that_of_kafka(
    partition_judge: PartitionJudge, drawn: list[tuple[Any, ...]], checkpoints: list[int], lag_ms: int
) -> None:
    """LogCleanerManager.cleanableOffsets, maxCompactionDelay and LogToClean: offsets, bytes and lags, also from wrong checkpoints."""
    config = COMPACTED | {"min.compaction.lag.ms": lag_ms, "max.compaction.lag.ms": lag_ms}
    with fast_folder() as folder:
        session = Session(folder / "steward" / "t-0", config=config)
        steps, results = [], []
        for each in [*drawn, ("roll",), ("time",), *(("dirty", offset) for offset in checkpoints)]:
            for step in [("high_watermark", session.log.end_offset), *steps_of(session, each, 10**9)]:
                steps.append(step)
                results.append(session.take(step))
        session.log.close()
        (folder / "kafka").mkdir()
        answer = partition_judge.run(folder / "kafka" / "t-0", *steps, config=config)

        assert [{key: result[key] for key in result if key != "message"} for result in answer["results"]] == results


def contents(folder: Path) -> dict[str, Any]:
    """Return the files of a log. Batches that are compressed again need not be equal, nor what follows from their sizes."""
    found: dict[str, Any] = dict(files(folder))
    for name, content in list(found.items()):
        if name.endswith(".log") and any(batch.header.compression for batch in decode_batches(content)):
            found[name] = [
                (
                    batch.header.base_offset,
                    batch.header.last_offset,
                    batch.header.attributes,
                    batch.header.base_timestamp_ms,
                    batch.header.max_timestamp_ms,
                    batch.records,
                )
                for batch in decode_batches(content)
            ]
            found.pop(name.replace(".log", ".index"), None)
            found.pop(name.replace(".log", ".timeindex"), None)
    return found


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A compacted log with three closed segments."""
    opened = Session(tmp_path / "t-0", config=COMPACTED)
    for _ in range(3):
        for key in range(3):
            opened.take(keyed(opened, [(key, False, 100)]))
        opened.take(("roll",))
    opened.take(("high_watermark", opened.log.end_offset))
    return opened


def offsets(session: Session) -> list[int]:
    """Return the offsets of all records."""
    return [
        record.offset
        for segment in session.log.log.segments
        for batch in decode_batches(segment.read(0, segment.size_bytes))
        for record in batch.records
    ]


def test_the_last_record_of_each_key_stays(session: Session) -> None:
    """And its offset; segments that became small are joined."""
    assert session.take(("clean", 0, MUCH)) == {"end_offset": 9}
    assert offsets(session) == [6, 7, 8]
    assert session.log.log.segment_offsets == [0, 9]


def test_a_round_ends_where_the_offset_map_is_full(session: Session) -> None:
    """The next one continues there; nothing behind it is dropped."""
    end = session.clean(0, 2)

    assert (end, offsets(session)) == (2, list(range(9)))
    assert session.clean(2, 3) == 5
    assert offsets(session) == [2, 3, 4, 5, 6, 7, 8]


def test_a_round_that_fails_leaves_the_log_as_it_is(session: Session) -> None:
    """A batch that the disk has damaged, in the last of the segments."""
    path = session.log.log.segments[2].path
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"?")
    before = {path.name for path in path.parent.iterdir()}
    task = prepare_cleaning(session.log, 0, high_watermark=9)
    assert task is not None

    with pytest.raises(CorruptLogError, match="The segment is left as it is"):
        clean_segments(task)
    assert {path.name for path in path.parent.iterdir()} == before


def test_a_crash_before_the_swap_undoes_a_round_and_one_within_it_finishes_it(session: Session) -> None:
    """`.cleaned` files are deleted, `.swap` files take the place of the segments that they were made of."""
    task = prepare_cleaning(session.log, 0, high_watermark=9)
    assert task is not None
    clean_segments(task)
    session.log.close()
    folder = session.log.log.folder
    reopened = Session(folder, Checkpoints(is_clean=True), COMPACTED)
    assert offsets(reopened) == list(range(9))

    clean_segments(task)
    reopened.log.close()
    for path in folder.glob("*.cleaned"):
        path.rename(path.with_suffix(".swap"))
    reopened = Session(folder, Checkpoints(is_clean=True), COMPACTED)
    assert offsets(reopened) == [6, 7, 8]
    assert (reopened.log.end_offset, reopened.log.log.segment_offsets) == (9, [0, 9])
    reopened.log.close()


def test_reads_in_progress_finish_on_the_old_segments(session: Session) -> None:
    """They are deleted after a delay."""
    fetched = session.log.log.locate(0, 10_000)
    session.take(("clean", 0, MUCH))

    assert len(list(decode_batches(fetched.read()))) == 3
    session.now_ms += 1_000
    assert session.log.run_deletions() == 3


def test_records_above_the_stable_offset_or_too_new_are_not_compacted(session: Session) -> None:
    """Open transactions, the high watermark, min.compaction.lag.ms."""
    assert prepare_cleaning(session.log, 0, high_watermark=2) is None
    task = prepare_cleaning(session.log, 0, high_watermark=5)

    assert task is not None
    assert (task.segment_offsets, task.first_uncleanable_offset) == ([0], 3)
    assert prepare_cleaning(session.log, 9, high_watermark=9) is None
