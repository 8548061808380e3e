"""Leader and follower states of a partition. Source: Kafka's Partition and PartitionTest."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import ErrorCode
from light_broker.core.follower_progress import FollowerProgress
from light_broker.core.isr import AfterAnswer, AlterPartitionAnswer, Committed, PendingExpansion, PendingShrink
from light_broker.core.metadata_view import PartitionView
from light_broker.core.partition import (
    Follower,
    IsrRules,
    Leader,
    access_error,
    answered,
    expansion,
    follow,
    follower_error,
    lead,
    low_watermark,
    next_high_watermark,
    produce_error,
    replication_error,
    shrink,
    with_isr,
    with_progress,
)

NOW_MS = 1_000_000
EPOCHS = {1: 11, 2: 12, 3: 13}
"""Broker epochs of live brokers."""
VIEW = PartitionView(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=5, partition_epoch=7)


def leader_of(*isr: int, end_offset: int = 10) -> Leader:
    """Return a new leader with an ISR, by default of all replicas."""
    leader = lead(None, replace(VIEW, isr=isr or VIEW.isr), 1, end_offset=end_offset, now_ms=NOW_MS)
    assert leader is not None
    return leader


def at(leader: Leader, offsets: dict[int, int], *, caught_up_ms: int = NOW_MS) -> Leader:
    """Return the leader with followers that have fetched up to some offsets."""
    for broker_id, offset in offsets.items():
        progress = FollowerProgress(offset, 0, caught_up_ms, NOW_MS, offset, EPOCHS[broker_id])
        leader = with_progress(leader, broker_id, progress)
    return leader


def advanced(leader: Leader, high_watermark: int, *, end_offset: int, min_isr: int = 1, now_ms: int = NOW_MS) -> int:
    """Return the next high watermark."""
    rules = IsrRules(min_insync_replicas=min_isr)
    return next_high_watermark(leader, high_watermark, rules, EPOCHS, end_offset=end_offset, now_ms=now_ms)


# High watermark


@pytest.mark.shows("B1")
def test_the_high_watermark_is_the_lowest_end_in_the_isr() -> None:
    """B1. Source: Partition.maybeIncrementLeaderHW."""
    leader = at(leader_of(1, 2, 3), {2: 8, 3: 6})

    assert advanced(leader, 0, end_offset=10) == 6


@pytest.mark.shows("B1")
def test_the_high_watermark_waits_for_a_replica_that_the_controller_may_have_added() -> None:
    """B1: such a replica may be elected before this leader learns of its addition (KIP-497, maximal ISR)."""
    leader = at(leader_of(1, 2), {2: 8, 3: 6}, caught_up_ms=0)
    pending = with_isr(leader, PendingExpansion((1, 2), 3))

    assert (advanced(leader, 0, end_offset=10), advanced(pending, 0, end_offset=10)) == (8, 6)


@pytest.mark.shows("B1")
def test_the_high_watermark_waits_for_a_replica_that_the_controller_may_not_have_removed() -> None:
    """B1: a shrink counts once the controller has answered it."""
    leader = at(leader_of(1, 2, 3), {2: 8, 3: 6}, caught_up_ms=0)
    pending = with_isr(leader, PendingShrink((1, 2, 3), frozenset({3})))

    assert advanced(pending, 0, end_offset=10) == 6


def test_the_high_watermark_waits_for_a_replica_that_is_about_to_join() -> None:
    """Otherwise a follower that keeps up could never reach it. Source: Partition.maybeIncrementLeaderHW (KAFKA-9672)."""
    leader = at(leader_of(1, 2), {2: 10, 3: 9})

    assert advanced(leader, 0, end_offset=10) == 9


@pytest.mark.shows("B1")
def test_the_high_watermark_stays_below_min_insync_replicas() -> None:
    """KIP-966: records that too few replicas have are not acknowledged by anything."""
    leader = at(leader_of(1), {2: 10, 3: 10})

    assert advanced(leader, 4, end_offset=10, min_isr=2) == 4


def test_a_follower_that_has_not_fetched_holds_the_high_watermark() -> None:
    """Its end is unknown to a new leader."""
    assert advanced(leader_of(1, 2), 4, end_offset=10) == 4


@pytest.mark.shows("B1", "B2")
@given(
    high_watermark=st.integers(0, 20),
    ends=st.lists(st.integers(-1, 20), min_size=2, max_size=2),
    isr=st.sets(st.sampled_from([2, 3])),
    end_offset=st.integers(0, 20),
    min_isr=st.integers(1, 4),
)
def test_the_high_watermark_never_falls_nor_exceeds_the_maximal_isr(
    high_watermark: int, ends: list[int], isr: set[int], end_offset: int, min_isr: int
) -> None:
    """B1, B2: over all progresses."""
    leader = at(leader_of(1, *sorted(isr)), dict(zip((2, 3), ends, strict=True)))
    result = advanced(leader, high_watermark, end_offset=end_offset, min_isr=min_isr)

    lowest = min([end_offset, *(leader.followers[broker].end_offset for broker in isr)])
    assert result == high_watermark or high_watermark < result <= lowest


# ISR


def test_a_follower_joins_once_it_has_the_start_of_the_leader_epoch() -> None:
    """B1: one that ends below it may lack records that an earlier leader has acknowledged. Source: Partition.isFollowerInSync."""
    leader = leader_of(1, 2, end_offset=10)

    assert expansion(at(leader, {3: 9}), 3, 4, EPOCHS) is None
    assert expansion(at(leader, {3: 10}), 3, 4, EPOCHS) == PendingExpansion((1, 2), 3)


@pytest.mark.parametrize(
    "eligible", [{1: 11, 2: 12}, {1: 11, 2: 12, 3: 14}], ids=["fenced", "restarted since its last fetch"]
)
def test_a_follower_that_is_not_eligible_does_not_join(eligible: dict[int, int]) -> None:
    """KIP-841, KIP-903."""
    assert expansion(at(leader_of(1, 2), {3: 10}), 3, 0, eligible) is None


def test_one_change_of_the_isr_is_in_flight_at_a_time() -> None:
    """KIP-497."""
    leader = with_isr(at(leader_of(1), {2: 10, 3: 10}), PendingExpansion((1,), 2))

    assert expansion(leader, 3, 0, EPOCHS) is None
    assert shrink(leader, IsrRules(), end_offset=11, now_ms=NOW_MS + 40_000) is None


def test_followers_that_lag_for_too_long_leave() -> None:
    """Source: Partition.getOutOfSyncReplicas: a follower that has everything stays, however long ago it fetched."""
    leader = at(leader_of(1, 2, 3), {2: 10, 3: 9})

    assert shrink(leader, IsrRules(), end_offset=10, now_ms=NOW_MS + 30_000) is None
    assert shrink(leader, IsrRules(), end_offset=10, now_ms=NOW_MS + 30_001) == PendingShrink((1, 2, 3), frozenset({3}))


PENDING = PendingExpansion((1, 2), 3)


@pytest.mark.parametrize(
    ("answer", "outcome", "isr"),
    [
        (AlterPartitionAnswer(leader_epoch=5, partition_epoch=8, isr=(1, 2, 3)), AfterAnswer.COMMITTED, (1, 2, 3)),
        (AlterPartitionAnswer(leader_epoch=5, partition_epoch=6, isr=(1,)), AfterAnswer.IGNORED, PENDING),
        (AlterPartitionAnswer(leader_epoch=6, partition_epoch=8, isr=(1,)), AfterAnswer.IGNORED, PENDING),
        (AlterPartitionAnswer(ErrorCode.INELIGIBLE_REPLICA), AfterAnswer.WITHDRAWN, (1, 2)),
        (AlterPartitionAnswer(ErrorCode.OPERATION_NOT_ATTEMPTED), AfterAnswer.WITHDRAWN, (1, 2)),
        (AlterPartitionAnswer(ErrorCode.FENCED_LEADER_EPOCH), AfterAnswer.IGNORED, PENDING),
        (AlterPartitionAnswer(ErrorCode.NEW_LEADER_ELECTED), AfterAnswer.IGNORED, PENDING),
        (AlterPartitionAnswer(ErrorCode.NOT_CONTROLLER), AfterAnswer.RETRY, PENDING),
    ],
)
def test_an_answer_of_the_controller_ends_a_change_only_where_it_is_certain(
    answer: AlterPartitionAnswer, outcome: AfterAnswer, isr: tuple[int, ...] | PendingExpansion
) -> None:
    """Source: Partition.handleAlterPartitionError and handleAlterPartitionUpdate."""
    leader, result = answered(with_isr(leader_of(1, 2), PENDING), PENDING, answer)

    assert (result, leader.isr) == (outcome, Committed(isr) if isinstance(isr, tuple) else isr)


# Produce


def test_a_batch_is_refused_and_answered_by_the_number_of_replicas_in_sync() -> None:
    """B1. Source: Partition.appendRecordsToLeader, checkEnoughReplicasReachOffset."""
    rules = IsrRules(min_insync_replicas=2)
    leader, alone = leader_of(1, 2), leader_of(1)

    assert (produce_error(leader, rules), produce_error(alone, rules)) == (
        ErrorCode.NONE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    )
    assert replication_error(leader, rules, high_watermark=9, required_offset=10) is None
    assert replication_error(leader, rules, high_watermark=10, required_offset=10) is ErrorCode.NONE
    assert replication_error(alone, rules, high_watermark=10, required_offset=10) is (
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    )
    assert replication_error(Follower(2, 6, 8), rules, high_watermark=10, required_offset=10) is (
        ErrorCode.NOT_LEADER_OR_FOLLOWER
    )


def test_min_insync_replicas_counts_at_most_all_replicas() -> None:
    """Source: Partition.effectiveMinIsr."""
    assert produce_error(leader_of(1, 2, 3), IsrRules(min_insync_replicas=9)) is ErrorCode.NONE


# Roles and epochs


@pytest.mark.shows("B8")
def test_an_older_state_changes_nothing() -> None:
    """B8. Source: Partition.makeLeader and makeFollower."""
    leader = leader_of()

    assert lead(leader, replace(VIEW, partition_epoch=6), 1, end_offset=10, now_ms=NOW_MS) is None
    assert follow(leader, replace(VIEW, leader=2, partition_epoch=6)) is None


def test_a_new_state_of_the_same_leader_epoch_keeps_the_followers() -> None:
    """Source: Partition.makeLeader."""
    leader = at(leader_of(1, 2), {2: 8})
    changed = lead(leader, replace(VIEW, replicas=(1, 2, 4), isr=(1,), partition_epoch=8), 1, end_offset=20, now_ms=0)

    assert changed is not None
    assert (changed.followers[2], changed.followers[4]) == (leader.followers[2], FollowerProgress())
    assert (changed.epoch_start_offset, changed.isr) == (10, Committed((1,)))


def test_a_new_leader_epoch_starts_at_the_end_of_the_log_and_forgets_a_former_leaders_followers() -> None:
    """Source: Replica.resetReplicaState."""
    follower = follow(leader_of(), replace(VIEW, leader=2, leader_epoch=6, partition_epoch=8))
    leader = lead(follower, replace(VIEW, leader_epoch=7, partition_epoch=9), 1, end_offset=30, now_ms=NOW_MS)

    assert leader is not None
    assert (leader.epoch_start_offset, leader.followers[2]) == (30, FollowerProgress(last_caught_up_ms=NOW_MS))


@pytest.mark.shows("B8")
@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (-1, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_request_of_another_leader_epoch_is_refused(epoch: int, error: ErrorCode) -> None:
    """B8, KIP-320."""
    assert access_error(leader_of(), epoch, only_leader=True) is error


def test_a_follower_serves_only_requests_that_allow_it() -> None:
    """KIP-392."""
    follower = Follower(2, 5, 7)

    assert access_error(follower, 5, only_leader=True) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert access_error(follower, 5, only_leader=False) is ErrorCode.NONE


@pytest.mark.shows("B8")
def test_a_fetch_of_an_unknown_or_earlier_follower_is_refused() -> None:
    """B8, KIP-903. Source: Partition.followerReplicaOrThrow, Replica.updateFetchStateOrThrow."""
    leader = at(leader_of(), {2: 10})

    assert follower_error(leader, 4, 14, 5) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert follower_error(leader, 4, 14, -1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert follower_error(leader, 2, EPOCHS[2] - 1, 5) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert follower_error(leader, 2, EPOCHS[2], 5) is ErrorCode.NONE


def test_the_low_watermark_ignores_dead_brokers() -> None:
    """KIP-107. Source: Partition.lowWatermarkIfLeader."""
    leader = leader_of()
    for broker_id, start_offset in ((2, 4), (3, 1)):
        leader = with_progress(leader, broker_id, FollowerProgress(10, start_offset))

    assert (low_watermark(leader, 6, {1, 2}), low_watermark(leader, 6, {1, 2, 3})) == (4, 1)


# Progress


def test_a_follower_that_reaches_the_end_at_its_last_fetch_was_caught_up_then() -> None:
    """Source: Replica.updateFetchStateOrThrow: under a steady load no fetch reaches the current end."""
    first = FollowerProgress().after_fetch(
        fetch_offset=0, start_offset=0, leader_end_offset=10, broker_epoch=12, now_ms=100
    )
    second = first.after_fetch(fetch_offset=10, start_offset=0, leader_end_offset=20, broker_epoch=12, now_ms=200)
    slow = second.after_fetch(fetch_offset=15, start_offset=0, leader_end_offset=30, broker_epoch=12, now_ms=300)
    whole = slow.after_fetch(fetch_offset=30, start_offset=0, leader_end_offset=30, broker_epoch=12, now_ms=400)

    assert [follower.last_caught_up_ms for follower in (first, second, slow, whole)] == [0, 100, 100, 400]
