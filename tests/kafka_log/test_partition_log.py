"""Logs of brokers' partitions, compared with Kafka's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_log.errors import FlushFailedError, InvalidAppendError
from kafka_log.files.partition_log import PartitionAppend
from kafka_log.format.producers import Origin
from kafka_log.format.transaction_index import AbortedTransaction
from kafka_wire.records import encode_batch
from tests.kafka_log.batches import fast_folder
from tests.kafka_log.judge import PartitionJudge
from tests.kafka_log.partitions import CONFIG, INDEXES, Session, comparable, files
from tests.kafka_log.producer_cases import DATA, MARKERS, data, leader_step, marker
from tests.kafka_log.test_leader_append import record

PLAIN = st.tuples(
    st.just("plain"),
    st.integers(1, 3),
    st.integers(0, 400),
    st.sampled_from([0, 0, 5, 4_000, 9_000, 12_000, -3_000]),
    st.integers(1, 3),
)
"""Records, bytes of a value, distance of the timestamps from the clock, leader epoch."""
OTHERS = (
    st.tuples(st.just("truncate"), st.floats(0.3, 1))
    | st.tuples(st.just("high_watermark"), st.floats(0.5, 1))
    | st.tuples(st.just("start_offset"), st.floats(0, 1.1))
    | st.tuples(st.sampled_from(["roll", "delete_old", "run_deletions"]))
    | st.tuples(st.just("time"), st.sampled_from([1, 5_000, 30_000]))
)
STEPS = st.lists(DATA | MARKERS | PLAIN | PLAIN | PLAIN | OTHERS, min_size=5, max_size=30)


def step_of(session: Session, drawn: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a step for a log in its current state."""
    log, (name, *arguments) = session.log, drawn
    if name == "plain":
        count, size, shift, epoch = arguments
        content = encode_batch(
            [record(index, timestamp_ms=session.now_ms + shift, value=bytes(size)) for index in range(count)]
        )
        return ("lead", content, max(epoch, log.log.epochs.latest or 0), "CLIENT", 0)
    if name in {"data", "marker"}:
        content, origin, version = leader_step(drawn, log.producers)
        return ("lead", content, log.log.epochs.latest or 0, origin, version)
    if name == "time":
        return (name, session.now_ms + arguments[0])
    if name in {"truncate", "high_watermark", "start_offset"}:
        width = log.end_offset - log.start_offset
        offset = log.start_offset + round(width * arguments[0])
        # Kafka's log may end inside of a batch, which it then does not have; here it ends in front of it.
        batch = log.log.batch_with(offset) if name == "truncate" and offset < log.end_offset else None
        return (name, batch.base_offset if batch else offset)
    return drawn


DUPLICATE_THAT_ROLLS = [
    ("plain", 1, 0, 0, 1),
    ("plain", 2, 300, 0, 1),
    ("data", 1, 0, 0, 1, False, "CLIENT"),
    ("marker", 1, 0, False, 0, 0),
    ("plain", 3, 282, 0, 1),
    ("marker", 1, 0, False, 0, 0),
    ("data", 1, 0, 0, 1, False, "CLIENT"),
]
"""The last batch was sent before, and the segment has no room for it."""


@pytest.mark.java
@example(DUPLICATE_THAT_ROLLS)
@given(STEPS)
def test_a_log_answers_and_leaves_the_files_that_kafkas_does(
    partition_judge: PartitionJudge, drawn: list[tuple[Any, ...]]
) -> None:
    """UnifiedLog: rolls, indexes, producers, transactions, truncation, DeleteRecords and retention, byte by byte."""
    with fast_folder() as folder:
        session = Session(folder / "steward" / "t-0")
        steps, results = [], []
        for each in drawn:
            step = step_of(session, each)
            steps.append(step)
            results.append(session.take(step))
        state = session.state()
        session.log.close()
        (folder / "kafka").mkdir()
        answer = partition_judge.run(folder / "kafka" / "t-0", *steps, config=CONFIG)

        assert [{key: result[key] for key in result if key != "message"} for result in answer["results"]] == results
        assert comparable(answer) == state
        # After a truncation Kafka counts the bytes between two index entries from the new end, and here from the last entry.
        without = INDEXES if any(name == "truncate" for name, *_ in steps) else frozenset()
        steward, kafka = (files(folder / name / "t-0", without=without) for name in ("steward", "kafka"))
        assert steward == kafka


def test_a_transaction_index_that_cannot_be_written_ends_the_use_of_the_log(tmp_path: Path) -> None:
    """The marker is in the log already. A recovery builds the index again, so that no aborted record is returned as committed."""
    session = Session(tmp_path / "t-0")
    session.log.append_as_leader(data(1, 0, transactional=True), 0)
    index = tmp_path / "t-0" / f"{0:020d}.txnindex"
    index.mkdir()
    with pytest.raises(FlushFailedError, match="The log must be opened again, which rebuilds the index"):
        session.log.append_as_leader(marker(1, abort=True), 0, Origin.COORDINATOR)
    with pytest.raises(FlushFailedError):
        session.log.append_as_leader(data(1, 1), 0)
    with pytest.raises(FlushFailedError):
        session.log.log.read(0, 1)
    session.log.close()
    index.rmdir()

    reopened = Session(tmp_path / "t-0")
    assert reopened.log.aborted_transactions(0, 2) == [AbortedTransaction(1, 0, 1, 2)]
    reopened.log.close()


def test_a_leader_that_sends_bytes_that_are_no_batches_is_refused(tmp_path: Path) -> None:
    """A follower appends nothing of them, and batches of a later epoch are left out (KAFKA-18723)."""
    session = Session(tmp_path / "t-0")
    good = data(1, 0, leader_epoch=3)
    damaged = good[:-1] + b"?"

    with pytest.raises(InvalidAppendError):
        session.log.append_as_follower(damaged, 3)
    assert session.log.append_as_follower(good, 2) is None
    assert (session.log.end_offset, session.log.producers.entries) == (0, {})
    followed = session.log.append_as_follower(good + data(1, 1, offset=1, leader_epoch=4), 3)
    assert followed == PartitionAppend(0, 0)
    session.log.close()
