"""Steps of a follower after its leader's responses. Source: Kafka's AbstractFetcherThread, ReplicaFetcherThread."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.format.epochs import EpochStart, LeaderEpochs
from kafka_node.configs.layered_settings import Settings
from kafka_wire import ErrorCode
from light_broker.core.metadata_view import NO_EPOCH
from light_broker.core.replica_fetch import (
    Append,
    Fail,
    FetchAnswer,
    FetchedPartition,
    FollowerLog,
    Locate,
    ReplicaFetchSettings,
    Retry,
    Stage,
    StartAt,
    Step,
    Truncate,
    after_fetch,
    after_offsets,
    first_step,
    next_high_watermark,
    replica_fetch_settings,
)
from light_broker.core.truncation import is_diverging

LOG = FollowerLog(2, 25, 12, LeaderEpochs([EpochStart(1, 2), EpochStart(3, 10), EpochStart(5, 20)]))
EMPTY = FollowerLog(0, 0, 0, LeaderEpochs())


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(FetchAnswer(ErrorCode.NONE, 13, 4, b"x"), Append(b"x", 13, 4), id="records"),
        pytest.param(FetchAnswer(diverging=EpochStart(3, 15)), Truncate(15), id="the leader has less of an epoch"),
        pytest.param(FetchAnswer(diverging=EpochStart(4, 25)), Truncate(20), id="an epoch that the follower lacks"),
        pytest.param(FetchAnswer(diverging=EpochStart(0, 1)), StartAt(1), id="below the start of the follower's log"),
        pytest.param(FetchAnswer(diverging=EpochStart(5, 25)), Retry(ErrorCode.INVALID_REQUEST), id="no divergence"),
        pytest.param(FetchAnswer(ErrorCode.OFFSET_OUT_OF_RANGE), Locate(), id="out of range"),
        *(
            pytest.param(FetchAnswer(error), Retry(error), id=error.name)
            for error in (
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.KAFKA_STORAGE_ERROR,
                ErrorCode.UNKNOWN_TOPIC_ID,
                ErrorCode.INCONSISTENT_TOPIC_ID,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
        ),
        pytest.param(
            FetchAnswer(ErrorCode.FENCED_LEADER_EPOCH), Fail(ErrorCode.FENCED_LEADER_EPOCH), id="an earlier epoch"
        ),
    ],
)
def test_each_answer_to_a_fetch_has_one_meaning(answer: FetchAnswer, expected: Step) -> None:
    """Source: AbstractFetcherThread.processFetchRequest."""
    assert after_fetch(answer, LOG) == expected


@pytest.mark.parametrize(
    ("error", "start", "end", "expected"),
    [
        pytest.param(ErrorCode.NONE, 0, 24, Truncate(24), id="the leader lacks records"),
        pytest.param(ErrorCode.NONE, 0, 1, StartAt(1), id="the leader ends below the follower's start"),
        pytest.param(ErrorCode.NONE, 26, 30, StartAt(26), id="the leader deleted what the follower lacks"),
        pytest.param(ErrorCode.NONE, 25, 30, Retry(ErrorCode.OFFSET_OUT_OF_RANGE), id="the leader changed since"),
        pytest.param(ErrorCode.FENCED_LEADER_EPOCH, -1, -1, Fail(ErrorCode.FENCED_LEADER_EPOCH), id="an earlier epoch"),
        pytest.param(ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1, Retry(ErrorCode.UNKNOWN_LEADER_EPOCH), id="a later epoch"),
    ],
)
def test_an_offset_out_of_range_is_resolved_by_the_leaders_offsets(
    error: ErrorCode, start: int, end: int, expected: Step
) -> None:
    """Source: AbstractFetcherThread.fetchOffsetAndTruncate."""
    assert after_offsets(error, leader_start=start, leader_end=end, log=LOG) == expected


def test_a_log_without_epochs_is_truncated_to_the_high_watermark_first() -> None:
    """KIP-101: there is nothing to compare with the leader's log."""
    assert first_step(replace(LOG, epochs=LeaderEpochs())) == Truncate(12)
    assert first_step(LOG) is None
    assert first_step(EMPTY) is None


def test_an_empty_log_has_no_epoch_to_compare() -> None:
    """-1 in LastFetchedEpoch."""
    assert (EMPTY.last_epoch, LOG.last_epoch) == (NO_EPOCH, 5)


@pytest.mark.shows("B2")
@pytest.mark.parametrize(("leaders", "expected"), [(11, 12), (20, 20), (99, 25), (-1, 12)])
def test_a_followers_high_watermark_is_within_its_log_and_never_falls(leaders: int, expected: int) -> None:
    """B2: a new leader may not have learnt the high watermark yet."""
    assert next_high_watermark(LOG, leaders) == expected


def test_a_delayed_partition_is_due_after_its_delay_and_a_failed_one_never() -> None:
    """replica.fetch.backoff.ms."""
    state = FetchedPartition(UUID(int=1), 3)

    assert state.is_due(0)
    assert [state.delayed(100).is_due(now_ms) for now_ms in (99, 100)] == [False, True]
    assert state.delayed(100).at(Stage.LOCATING).is_due(0)
    assert not state.at(Stage.FAILED).is_due(10_000)


def test_settings_have_kafkas_names_and_defaults() -> None:
    """KafkaConfig, ReplicationConfigs."""
    file = {"replica.fetch.max.bytes": "5", "replica.fetch.wait.max.ms": "7"}

    assert replica_fetch_settings(Settings(1)) == ReplicaFetchSettings()
    assert replica_fetch_settings(Settings(1, file)) == ReplicaFetchSettings(partition_max_bytes=5, max_wait_ms=7)


# A leader and a follower as lists: the epoch of each record


def log_of(start: int, changes: list[int]) -> list[int]:
    """Return the epochs of records; each change raises the epoch."""
    epochs = []
    for change in changes:
        start += change
        epochs.append(start)
    return epochs


def state_of(log: list[int]) -> FollowerLog:
    """Return the state of a log that begins at 0."""
    epochs = LeaderEpochs()
    for offset, epoch in enumerate(log):
        epochs = epochs.assign(epoch, offset)
    return FollowerLog(0, len(log), 0, epochs)


def answered(leader: list[int], leader_epoch: int, follower: list[int], max_records: int) -> FetchAnswer:
    """Return the leader's answer to the follower's fetch; `records` are one byte for each epoch."""
    asked = state_of(follower)
    epochs = state_of(leader).epochs.assign(leader_epoch, len(leader))
    if asked.last_epoch >= 0:
        end = epochs.end_offset_for(asked.last_epoch, len(leader))
        if end is None:
            return FetchAnswer(ErrorCode.OFFSET_OUT_OF_RANGE)
        if is_diverging(end, fetch_offset=asked.end_offset, last_fetched_epoch=asked.last_epoch):
            return FetchAnswer(diverging=end)
    if asked.end_offset > len(leader):
        return FetchAnswer(ErrorCode.OFFSET_OUT_OF_RANGE)
    return FetchAnswer(records=bytes(leader[asked.end_offset :][:max_records]), high_watermark=len(leader))


def carried_out(step: Step, leader: list[int], follower: list[int]) -> list[int]:
    """Return the follower's log after a step."""
    match step:
        case Append():
            return [*follower, *step.records]
        case Truncate() | StartAt():
            return follower[: step.offset]
        case Locate():
            located = after_offsets(ErrorCode.NONE, leader_start=0, leader_end=len(leader), log=state_of(follower))
            return carried_out(located, leader, follower)
        case _:
            raise AssertionError(step)


@pytest.mark.shows("B1", "B2")
@given(
    common=st.lists(st.integers(0, 2), max_size=6),
    leader_tail=st.lists(st.integers(0, 2), max_size=6),
    follower_tail=st.lists(st.integers(0, 2), max_size=6),
    max_records=st.integers(1, 4),
)
def test_a_follower_ends_with_the_leaders_log_and_keeps_what_is_common(
    common: list[int], leader_tail: list[int], follower_tail: list[int], max_records: int
) -> None:
    """B1: by requests and answers alone, whatever the two logs are; epochs of leaders are unique behind the common part."""
    base = log_of(0, common)
    last = base[-1] if base else 0
    leader = base + [last + 1 + 2 * epoch for epoch in log_of(0, leader_tail)]
    follower = base + [last + 2 + 2 * epoch for epoch in log_of(0, follower_tail)]
    leader_epoch = max([*leader, *follower, 0]) + 1
    lowest = len(follower)
    for _ in range(3 * (len(leader) + len(follower)) + 3):
        if follower == leader:
            break
        answer = answered(leader, leader_epoch, follower, max_records)
        follower = carried_out(after_fetch(answer, state_of(follower)), leader, follower)
        lowest = min(lowest, len(follower))

    assert follower == leader
    assert lowest >= len(base)
