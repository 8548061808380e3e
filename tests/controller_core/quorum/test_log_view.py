"""The summary of the log and its epochs, against a plain list with the epoch of each record."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.quorum.batches import BOOTSTRAP_SNAPSHOT, Batch, Position
from controller_core.quorum.log_view import LogView, Snapshot, Validity
from kafka_log.format.epochs import LeaderEpochs

EPOCHS = st.lists(st.integers(1, 5), max_size=12).map(sorted)
"""The epoch of each record of a log."""


def log_of(epochs: list[int]) -> LogView:
    """Return the summary of a log with one record a batch."""
    batches = tuple(Batch(offset, offset, epoch) for offset, epoch in enumerate(epochs))
    log = LogView()
    return log.append(batches) if batches else log


def plain_end(epochs: list[int], epoch: int) -> int:
    """Return where an epoch ends: behind the last record of it or a lower one."""
    return sum(one <= epoch for one in epochs)


@given(EPOCHS, st.integers(0, 12))
def test_a_truncated_log_is_the_shorter_log(epochs: list[int], end_offset: int) -> None:
    """Epochs without records are removed."""
    truncated, shorter = log_of(epochs).truncate(end_offset), log_of(epochs[:end_offset])

    assert (truncated.end, truncated.epochs) == (shorter.end, shorter.epochs)


@given(EPOCHS, st.integers(0, 6))
def test_the_end_of_an_epoch_is_behind_its_last_record(epochs: list[int], epoch: int) -> None:
    """KIP-101: the highest epoch that is not above the given one, and its end."""
    found = log_of(epochs).end_of_epoch(epoch)

    known = [one for one in epochs if one <= epoch]
    if known:
        assert found == Position(plain_end(epochs, epoch), known[-1])
    elif epochs:
        assert found == Position(0, epoch)
    else:
        assert found == Position(0, 0)


@given(EPOCHS, st.lists(st.tuples(st.integers(6, 9), st.booleans()), max_size=10), st.integers(0, 3))
def test_a_follower_truncates_to_what_it_has_in_common_with_the_leader(
    common: list[int], others: list[tuple[int, bool]], longer: int
) -> None:
    """Q8, Q10: by one answer after another. An epoch has one leader, so behind the common part the logs share no epoch."""
    owners = dict(others)
    behind = sorted(owners[epoch] * 100 + epoch for epoch, _ in others)
    of_leader = common + common[-1:] * longer + [epoch for epoch in behind if epoch < 100]
    of_follower = common + [epoch - 100 for epoch in behind if epoch > 100]
    leader, follower = log_of(of_leader), log_of(of_follower)
    for _ in range(len(of_follower) + 1):
        validity, position = leader.validate(follower.end)
        if validity is Validity.VALID:
            break
        follower = follower.truncate(follower.divergence(position))

    assert leader.validate(follower.end)[0] is Validity.VALID
    assert follower.end_offset == len(common)


@given(EPOCHS, st.integers(0, 12))
def test_a_cleaned_log_answers_as_before_behind_its_start(epochs: list[int], start_offset: int) -> None:
    """A snapshot ends where the log starts."""
    start_offset = min(start_offset, len(epochs))
    whole = log_of(epochs)
    if start_offset == 0:
        return
    snapshot = Snapshot(Position(start_offset, epochs[start_offset - 1]), 10)
    cleaned = whole.add_snapshot(snapshot).start_from(start_offset)

    for offset in range(start_offset + 1, len(epochs) + 1):
        fetched = Position(offset, epochs[offset - 1])
        assert cleaned.validate(fetched) == (Validity.VALID, fetched)
    assert cleaned.end == whole.end
    assert cleaned.validate(Position(0, 0)) == (Validity.SNAPSHOT, snapshot.id)
    assert cleaned.validate(snapshot.id) == (Validity.VALID, snapshot.id)


def test_an_empty_follower_fetches_a_snapshot_but_never_that_of_the_formatting() -> None:
    """The first leader appends the control records of the bootstrap snapshot (KIP-853)."""
    log = log_of([1, 1, 1])
    formatted = log.add_snapshot(Snapshot(BOOTSTRAP_SNAPSHOT, 10))

    assert formatted.validate(Position(0, 0)) == (Validity.VALID, Position(0, 0))
    assert formatted.add_snapshot(Snapshot(Position(2, 1), 10)).validate(Position(0, 0)) == (
        Validity.SNAPSHOT,
        Position(2, 1),
    )


def test_a_follower_behind_the_start_of_the_log_fetches_the_latest_snapshot() -> None:
    """RaftLog.validateOffsetAndEpoch: below the start, at the start in another epoch, or in an epoch before the first snapshot's."""
    snapshots = (Snapshot(Position(3, 2), 10), Snapshot(Position(4, 2), 10))
    log = LogView(3, 5, LeaderEpochs(), snapshots).append((Batch(5, 5, 3),))

    for fetched in (Position(2, 2), Position(3, 1), Position(4, 1)):
        assert log.validate(fetched) == (Validity.SNAPSHOT, Position(4, 2))


@given(EPOCHS, st.integers(0, 12))
def test_a_flush_counts_only_what_was_not_truncated_since(epochs: list[int], end_offset: int) -> None:
    """Q6: a late report of a flush does not include records that were appended after a truncation."""
    flushing = log_of(epochs).start_flush()
    truncated = flushing.truncate(end_offset)
    if truncated.end_offset < len(epochs):
        truncated = truncated.append((Batch(truncated.end_offset, 20, 6),))

    flushed = truncated.end_flush(1)

    assert flushed.flushed_offset == min(end_offset, len(epochs))
    assert flushed.end_flush(7) == flushed


@pytest.mark.parametrize(
    ("fetched", "end"),
    [
        (Position(100, 3), Position(20, 2)),  # no such epoch
        (Position(100, 4), Position(25, 4)),
        (Position(16, 1), Position(15, 1)),
        (Position(25, 5), Position(25, 4)),  # above the last epoch
    ],
)
def test_a_follower_that_diverges_gets_the_end_of_its_epoch_or_of_the_one_before(
    fetched: Position, end: Position
) -> None:
    """KafkaRaftLogTest, cases Validate: the log starts at the snapshot 10@1."""
    log = LogView().restart_at(Snapshot(Position(10, 1), 10))
    log = log.append((Batch(10, 14, 1), Batch(15, 19, 2), Batch(20, 24, 4)))

    assert log.validate(fetched) == (Validity.DIVERGING, end)


def test_an_epoch_between_the_snapshot_and_the_first_record_ends_with_the_snapshot() -> None:
    """KafkaRaftLogTest.testValidateEpochLessThanFirstEpochInLog."""
    log = LogView().restart_at(Snapshot(Position(10, 1), 10)).append((Batch(10, 14, 3),))

    assert log.validate(Position(100, 2)) == (Validity.DIVERGING, Position(10, 1))
    assert log.end_of_epoch(1) == Position(10, 1)
    assert log.end_of_epoch(3) == log.end_of_epoch(5) == Position(15, 3)


def test_a_log_that_was_replaced_has_the_snapshot_as_its_end() -> None:
    """MockLogTest.testTruncateFullyToLatestSnapshot: committed, on disk, and without older snapshots."""
    log = log_of([1, 1, 2]).add_snapshot(Snapshot(Position(2, 1), 5)).restart_at(Snapshot(Position(9, 4), 10))

    assert (log.start_offset, log.end, log.high_watermark, log.flushed_offset) == (9, Position(9, 4), 9, 9)
    assert log.snapshots == (Snapshot(Position(9, 4), 10),)


def test_nothing_committed_is_truncated() -> None:
    """MockLogTest.testTruncateBelowHighWatermark: Q10."""
    log = replace(log_of([1] * 5), high_watermark=5)

    with pytest.raises(AssertionError):
        log.truncate(4)
    assert log.truncate(5) == log


@pytest.mark.parametrize("base_offset", [0, 2])
def test_an_append_elsewhere_than_at_the_end_is_a_defect(base_offset: int) -> None:
    """MockLogTest.testUnexpectedAppendOffset; so records of voters come in the order of their offsets (TreeMapLogHistoryTest.testAddAt)."""
    with pytest.raises(AssertionError):
        log_of([1]).append((Batch(base_offset, base_offset, 1),))


def test_a_leader_with_an_empty_log_has_nothing_in_common() -> None:
    """RaftLog.truncateToEndOffset: its end has no epoch; an end above that of this log removes nothing."""
    log = log_of([1, 1, 2])

    assert [log.divergence(Position(offset, 0)) for offset in (0, 2, 9)] == [0, 2, 3]
