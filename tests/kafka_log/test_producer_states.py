"""Producers of a log: idempotence, epochs, transactions, snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_log.errors import RefusedAppendError, UnreadableFileError
from kafka_log.files.producer_snapshots import ProducerSnapshots
from kafka_log.format.batches import with_offsets
from kafka_log.format.producer_batches import ProducerBatch, read_producer_batches
from kafka_log.format.producer_snapshot import decode_producers, encode_producers
from kafka_log.format.producer_states import ProducerStates
from kafka_log.format.producers import BATCHES_KEPT, Origin, ProducerEntry
from kafka_log.format.transaction_index import AbortedTransaction, encode_transaction
from kafka_wire import ErrorCode
from tests.kafka_log.batches import batch, fast_folder
from tests.kafka_log.judge import EXPIRATION_MS, NOW_MS, PartitionJudge
from tests.kafka_log.producer_cases import DATA, MARKERS, data, described, leader_step, marker


def read(content: bytes) -> ProducerBatch:
    """Read the only batch."""
    (found,) = read_producer_batches(content)
    return found


def append(states: ProducerStates, content: bytes, origin: Origin = Origin.CLIENT) -> list[AbortedTransaction]:
    """Append batches at the end of a log."""
    batches = read_producer_batches(with_offsets(content, states.end_offset, 0))
    return states.commit(states.prepare(batches, origin), batches[-1].last_offset + 1)


def test_batches_without_a_producer_id_are_not_tracked() -> None:
    """Producers without idempotence."""
    assert read_producer_batches(batch(0) + data(7, 0, offset=1)) == [read(data(7, 0, offset=1))]


def test_each_of_the_last_five_batches_is_recognized_when_it_is_sent_again() -> None:
    """KIP-98: the answer has the offsets of the first time. Of the sixth the producer had its answer."""
    states = ProducerStates()
    for sequence in range(BATCHES_KEPT + 1):
        append(states, data(7, sequence))

    found = [states.prepare([read(data(7, sequence))], Origin.CLIENT).duplicate for sequence in range(1, 6)]
    assert [kept and kept.first_offset for kept in found] == [1, 2, 3, 4, 5]
    with pytest.raises(RefusedAppendError) as refused:
        states.prepare([read(data(7, 0))], Origin.CLIENT)
    assert refused.value.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("sequence", "epoch", "expected"),
    [
        (3, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (1, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (0, -1, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_gap_a_new_epoch_above_zero_and_an_old_epoch_are_refused(
    sequence: int, epoch: int, expected: ErrorCode
) -> None:
    """ProducerAppendInfo.checkSequence and checkProducerEpoch."""
    states = ProducerStates()
    append(states, data(7, 0, records=2))
    batch_of_producer = read(data(7, sequence))._replace(epoch=epoch)

    with pytest.raises(RefusedAppendError) as refused:
        states.prepare([batch_of_producer], Origin.CLIENT)
    assert refused.value.error_code is expected
    assert states.prepare([batch_of_producer], Origin.REPLICATION).entries[7].epoch == epoch


def test_a_producer_that_is_not_known_may_start_anywhere() -> None:
    """KIP-360: retention may have deleted its records."""
    states = ProducerStates()
    append(states, data(7, 1_000))

    assert states.entries[7].last_sequence == 1_000


def test_sequence_numbers_continue_at_zero_after_the_largest() -> None:
    """DefaultRecordBatch.incrementSequence."""
    states = ProducerStates()
    append(states, data(7, 2**31 - 2, records=3))
    append(states, data(7, 1))

    assert [(kept.first_sequence, kept.last_sequence) for kept in states.entries[7].batches] == [(2**31 - 2, 0), (1, 1)]


def test_the_first_unstable_offset_waits_for_the_marker_to_be_replicated() -> None:
    """KIP-98: a consumer of committed records reads up to the last stable offset."""
    states = ProducerStates()
    append(states, data(7, 0, transactional=True))
    append(states, data(8, 0, transactional=True))
    aborted = append(states, marker(7, abort=True), Origin.COORDINATOR)

    assert aborted == [AbortedTransaction(7, 0, 2, 1)]
    assert (states.first_undecided_offset, states.first_unstable_offset) == (1, 0)
    states.advance_high_watermark(2)
    assert states.first_unstable_offset == 0
    states.advance_high_watermark(3)
    assert states.first_unstable_offset == 1


def test_a_producer_expires_unless_its_transaction_is_open() -> None:
    """producer.id.expiration.ms."""
    states = ProducerStates()
    append(states, data(7, 0))
    append(states, data(8, 0, transactional=True))

    assert states.remove_expired(NOW_MS + 999, 1_000) == 0
    assert states.remove_expired(NOW_MS + 1_000, 1_000) == 1
    assert list(states.entries) == [8]


def test_a_damaged_snapshot_is_not_read() -> None:
    """ProducerStateManager.readSnapshot; any changed byte, and any other length."""
    content = encode_producers([ProducerEntry(7, epoch=1)])

    assert decode_producers(content) == [ProducerEntry(7, epoch=1)]
    for position in range(len(content)):
        with pytest.raises(UnreadableFileError):
            decode_producers(content[:position])
        with pytest.raises(UnreadableFileError):
            decode_producers(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
    with pytest.raises(UnreadableFileError):
        decode_producers(content + b"\0")


def test_an_unreadable_snapshot_is_deleted_and_the_one_before_it_is_loaded(tmp_path: Path) -> None:
    """ProducerStateManager.loadFromSnapshot."""
    snapshots, states = ProducerSnapshots(tmp_path), ProducerStates()
    append(states, data(7, 0))
    assert snapshots.take(states)
    assert not snapshots.take(states)
    append(states, data(7, 1))
    assert snapshots.take(states)
    (tmp_path / "00000000000000000002.snapshot").write_bytes(b"torn")

    snapshots.load_latest(states, 0, now_ms=NOW_MS, expiration_ms=EXPIRATION_MS)
    assert (states.end_offset, states.entries[7].last_sequence) == (1, 0)
    assert snapshots.offsets() == [1]


def test_snapshots_of_no_segment_are_deleted_except_the_last(tmp_path: Path) -> None:
    """ProducerStateManager.removeStraySnapshots."""
    for offset in (1, 5, 7, 10, 12, 15):
        (tmp_path / f"{offset:020d}.snapshot").touch()
    snapshots = ProducerSnapshots(tmp_path)
    snapshots.delete_strays([0, 5, 10])

    assert snapshots.offsets() == [5, 10, 15]
    snapshots.delete_outside(5, 12)
    assert snapshots.offsets() == [10]


STEPS = st.lists(DATA | MARKERS, min_size=8, max_size=25)


@pytest.mark.java
@given(STEPS)
@example([("data", 1, 0, 1, 2, True, "CLIENT"), ("marker", 1, 1, True, 0, 2), ("marker", 1, 1, True, 0, 2)])
@example([("data", 1, 0, 1, 1, False, "CLIENT"), ("data", 1, 0, 0, 1, False, "CLIENT")])
def test_a_leader_takes_refuses_and_recognizes_the_batches_that_kafkas_does(
    partition_judge: PartitionJudge, steps: list[tuple[Any, ...]]
) -> None:
    """ProducerAppendInfo and UnifiedLog: error codes, offsets of duplicates, the state, the transaction index and the snapshot file."""
    states, results, questions, index = ProducerStates(), [], [], b""
    for step in steps:
        content, origin, version = leader_step(step, states)
        questions.append(("lead", content, 0, origin, version))
        batches = read_producer_batches(with_offsets(content, states.end_offset, 0))
        try:
            prepared = states.prepare(batches, Origin[origin], transaction_version=version)
        except RefusedAppendError as error:
            results.append({"error": error.error_code.name})
            continue
        if kept := prepared.duplicate:
            results.append({"first_offset": kept.first_offset, "last_offset": kept.last_offset})
            continue
        results.append({"first_offset": states.end_offset, "last_offset": batches[-1].last_offset})
        index += b"".join(map(encode_transaction, states.commit(prepared, batches[-1].last_offset + 1)))

    with fast_folder() as folder:
        answer = partition_judge.run(folder / "t-0", *questions)
        assert [{key: result[key] for key in result if key != "message"} for result in answer["results"]] == results
        assert answer["producers"] == described(states)
        assert answer["first_unstable_offset"] == states.first_unstable_offset
        path = folder / "t-0" / f"{0:020d}.txnindex"
        assert (path.read_bytes() if path.exists() else b"") == index
        snapshot = folder / "t-0" / f"{states.end_offset:020d}.snapshot"
        # A log that took nothing has no snapshot.
        assert (snapshot.read_bytes() if states.end_offset else None) == (
            encode_producers(states.entries.values()) if states.end_offset else None
        )


@pytest.mark.java
@given(STEPS)
def test_replayed_batches_lead_to_the_producers_that_kafkas_follower_has(
    partition_judge: PartitionJudge, steps: list[tuple[Any, ...]]
) -> None:
    """LogSegment.updateProducerState: nothing is refused, and every batch counts."""
    states, batches, aborted = ProducerStates(), [], []
    for step in steps:
        content, _, _ = leader_step(step, states)
        (found,) = read_producer_batches(content)
        entry = states.entries.get(found.producer_id)
        if entry and entry.transaction_first_offset is not None and not found.is_transactional:
            continue  # Kafka's follower refuses this one
        batches.append(with_offsets(content, states.end_offset, 0))
        aborted += states.replay(read_producer_batches(batches[-1]))

    with fast_folder() as folder:
        answer = partition_judge.run(
            folder / "t-0", *(("follow", content, 9) for content in batches), ("aborted", 0, states.end_offset)
        )
        assert [result.get("message") for result in answer["results"]] == [None] * (len(batches) + 1)
        assert answer["producers"] == described(states)
        assert answer["results"][-1]["aborted"] == [list(entry) for entry in aborted]
