"""Guard of a Reassignment: what counts as a breach, when moves pause and resume, and when they roll back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.decide.kafka.observed import NO_LEADER, Failure, KafkaPartition, KafkaTopic
from kafka_operator.decide.reassignments.guard import GUARD_POLL_S, UNKNOWN_AFTER_S, Reading, judge, quiet_s, rolls_back
from kafka_operator.decide.reassignments.guard_readings import (
    Shrinks,
    counted_shrinks,
    lag_readings,
    partition_readings,
)
from kafka_operator.decide.reassignments.move_progress import Measured
from kafka_operator.decide.reassignments.permission import HELD_POLL_S
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView
from kafka_operator.decide.steps import Submit
from kafka_operator.resources.move_guard import Guard, GuardAction, GuardRecord, LagLimit
from kafka_operator.resources.reassignment import Partition, Reassignment, ReassignmentStatus, State
from kafka_operator.resources.throttle import ThrottleSpec
from reconciler.decide.steps import Wait
from tests.kafka_operator.decide.test_reassignment import AT_BASE, BASE, ONE_ARRIVED, TARGET, at, written
from tests.kafka_operator.makers import NOW, decide, moving, ready, view

PAUSE = Guard(max_offline=0, resume_after_s=300)
ROLLBACK = replace(PAUSE, action=GuardAction.ROLLBACK)
OVER, KEPT = Reading("offline partitions", 2, 0), Reading("offline partitions", 0, 0)
UNREAD = Reading("query p99", None, 0.5, "the query found nothing.")
READINGS = st.lists(
    st.builds(Reading, st.sampled_from("ab"), st.one_of(st.none(), st.floats(-5, 5)), st.floats(-5, 5)), max_size=3
)
SECONDS = st.lists(st.tuples(READINGS, st.integers(1, 400)), min_size=1, max_size=20)


def after(seconds: float) -> datetime:
    """Now and so many seconds."""
    return NOW + timedelta(seconds=seconds)


@given(SECONDS)
def test_a_record_is_stable_and_a_breach_is_held_until_the_quiet_time_is_over(
    story: Sequence[tuple[list[Reading], int]],
) -> None:
    """O2: the same readings at the same time change nothing. Breaches only count up."""
    record, now, quiet_since = None, NOW, None
    for readings, passed_s in story:
        now += timedelta(seconds=passed_s)
        before, record = record, judge(PAUSE, record, readings, now)
        assert judge(PAUSE, record, readings, now) == record
        breached = any(reading.is_breached for reading in readings)
        quiet_since = None if breached or any(item.value is None for item in readings) else quiet_since or now
        held = record is not None and bool(record.limits)
        if breached:
            assert held
        elif held:
            assert before is not None
            assert before.limits
            assert quiet_since is None or now - quiet_since < timedelta(seconds=quiet_s(PAUSE, before.breaches))
        assert (0 if before is None else before.breaches) <= (0 if record is None else record.breaches)


def test_a_breach_names_the_limits_with_values_and_bounds() -> None:
    """A minimum is exceeded by a lower value."""
    low = Reading("query brokers-up", 2, 3, is_minimum=True)

    record = judge(PAUSE, None, [OVER, low, Reading("lag of group a", 5, 5)], NOW)

    assert record is not None
    assert record.limits == ("offline partitions", "query brokers-up")
    assert record.message == "offline partitions: 2 (maximum 0); query brokers-up: 2 (minimum 3)"


def test_the_quiet_time_doubles_with_each_breach_up_to_an_hour() -> None:
    """Moves that cause a breach each time they resume must not do so every few minutes."""
    assert [quiet_s(PAUSE, count) for count in (1, 2, 3, 4, 5, 100)] == [300, 600, 1200, 2400, 3600, 3600]
    assert quiet_s(Guard(resume_after_s=7200), 3) == 7200
    assert quiet_s(Guard(resume_after_s=0), 9) == 0


def test_a_rollback_needs_a_second_reading_over_the_limit_and_the_action() -> None:
    """A single reading pauses, which costs little; a rollback copies everything again."""
    record = judge(ROLLBACK, None, [OVER], NOW)

    assert not rolls_back(ROLLBACK, record, [OVER], NOW)
    assert rolls_back(ROLLBACK, record, [OVER], after(GUARD_POLL_S + 1))
    assert not rolls_back(ROLLBACK, record, [KEPT], after(GUARD_POLL_S + 1))
    assert not rolls_back(ROLLBACK, record, [UNREAD], after(600))
    assert not rolls_back(PAUSE, record, [OVER], after(600))


def topics(*partitions: KafkaPartition) -> dict[str, KafkaTopic]:
    """One topic."""
    return {"t": KafkaTopic("t", None, partitions)}


def test_partitions_are_counted_as_kafka_counts_them() -> None:
    """UnderMinIsrPartitionCount, OfflinePartitionsCount; a topic without min.insync.replicas is unknown, not healthy."""
    guard = Guard(max_under_min_isr=0, max_offline=1)
    seen = topics(
        KafkaPartition(0, 1, (1, 2), (1, 2)),
        KafkaPartition(1, 1, (1, 2), (1,)),
        KafkaPartition(2, NO_LEADER, (1, 2), (2,)),
    )

    readings = partition_readings(guard, seen, {"t": 2}, None)
    assert [(reading.value, reading.is_breached) for reading in readings] == [(2, True), (1, False)]
    (unknown, _) = partition_readings(guard, seen, {}, None)
    assert (unknown.value, "min.insync.replicas of 1 topics" in unknown.problem) == (None, True)


def test_shrinks_are_counted_between_readings_for_a_minute_and_removed_replicas_are_none() -> None:
    """IsrShrinksPerSec; a replica that a move removed has not shrunk the ISR."""
    full = topics(KafkaPartition(0, 1, (1, 2, 3), (1, 2, 3)))
    shrunk = topics(KafkaPartition(0, 1, (1, 2, 3), (1, 3)))
    moved = topics(KafkaPartition(0, 1, (1, 3), (1, 3)))
    guard = Guard(max_isr_shrinks_per_minute=0)

    first = counted_shrinks(None, full, 0)
    second = counted_shrinks(first, shrunk, 10)
    assert [reading.value for reading in partition_readings(guard, full, {}, first)] == [None]
    assert [reading.value for reading in partition_readings(guard, shrunk, {}, second)] == [1]
    assert counted_shrinks(second, shrunk, 60).observed == ((10, 1),)
    assert counted_shrinks(counted_shrinks(second, shrunk, 60), shrunk, 70).observed == ()
    assert counted_shrinks(first, moved, 10).observed == ()
    assert counted_shrinks(Shrinks({}, 0), full, 10).observed == ()


def test_isrs_are_not_compared_with_those_of_more_than_a_minute_ago() -> None:
    """After a pause, what has left the ISRs in the meantime is not a shrink of this minute."""
    full = topics(KafkaPartition(0, 1, (1, 2, 3), (1, 2, 3)))
    shrunk = topics(KafkaPartition(0, 1, (1, 2, 3), (1, 3)))

    later = counted_shrinks(counted_shrinks(None, full, 0), shrunk, 60)

    assert later.observed is None


def test_a_group_that_cannot_be_read_is_unknown() -> None:
    """It may have been misspelled; that is no lag of 0."""
    missing = Failure(69, "GROUP_ID_NOT_FOUND", "Group b has no committed offsets.")

    readings = lag_readings((LagLimit("a", 5), LagLimit("b", 5), LagLimit("c", 5)), {"a": 6, "b": missing})

    assert [(item.value, item.is_breached) for item in readings] == [(6, True), (None, False), (None, False)]
    assert "Group b has no committed offsets." in readings[1].problem


def guarded(state: State = State.RUNNING, **guard: object) -> Reassignment:
    """One with a guard; while it runs, its first partition has been submitted."""
    item = at(state, guard={"maxOfflinePartitions": 0, **guard}, concurrency={"cluster": 1})
    count = 1 if state is State.RUNNING else 0
    return replace(item, status=replace(item.status, handed_over=count, handing_over=count))


def seen(*readings: Reading, at_s: float = 0, **fields: object) -> ReassignmentView:
    """A view with these readings of the guard."""
    fields.setdefault("moves", moving("orders", 0, BASE, TARGET))
    return replace(view(AT_BASE, **fields), guard=readings or None, now=after(at_s))


def test_a_limit_that_is_exceeded_before_the_start_blocks_the_start_with_a_reason() -> None:
    """Also with action Rollback: there is nothing to roll back."""
    item = guarded(State.PENDING, action="Rollback")

    status = written(decide(item, seen(OVER, moves={})))

    assert (status.state, ready(status.conditions), status.handing_over) == (
        State.PENDING,
        ("False", "GuardBreached"),
        0,
    )
    assert "offline partitions: 2 (maximum 0). The plan has not started" in status.conditions[0].message
    blocked = replace(item, status=status)
    assert decide(blocked, seen(OVER, moves={}, at_s=60)) == Wait(HELD_POLL_S)


def test_a_plan_does_not_start_before_its_limits_have_been_read() -> None:
    """A limit that cannot be read is reported after a minute; the first failure has no event."""
    item = guarded(State.PENDING)

    status = written(decide(item, seen(moves={})))
    assert (status.handing_over, ready(status.conditions)) == (0, ("False", "Pending"))

    first = written(decide(replace(item, status=status), seen(UNREAD, moves={})))
    assert ready(first.conditions) == ("False", "Pending")
    later = written(decide(replace(item, status=first), seen(UNREAD, moves={}, at_s=UNKNOWN_AFTER_S)))
    assert ready(later.conditions) == ("False", "GuardUnknown")
    assert "query p99: the query found nothing." in later.conditions[0].message


def test_a_breach_starts_no_further_move_and_lets_the_current_ones_end() -> None:
    """Paused: nothing is submitted, nothing is cancelled."""
    item = guarded()
    status = written(decide(item, seen(OVER)))

    assert (status.state, ready(status.conditions)) == (State.RUNNING, ("False", "GuardBreached"))
    assert status.handing_over == 1
    assert "Moves in progress (1) run to their end." in status.conditions[0].message
    held = replace(item, status=status)
    assert isinstance(decide(held, seen(OVER, at_s=5)), Wait)


def test_moves_start_again_after_the_quiet_time() -> None:
    """Each change is one write."""
    item = guarded(resumeAfterSeconds=100)

    def one_arrived(reading: Reading, at_s: float) -> ReassignmentView:
        return replace(seen(reading, at_s=at_s, moves={}), topics={"orders": ONE_ARRIVED})

    item = replace(item, status=written(decide(item, one_arrived(OVER, 0))))
    quiet = written(decide(item, one_arrived(KEPT, 20)))
    assert quiet.guard is not None
    assert (quiet.guard.quiet_time, quiet.guard.breaches) == ("2026-01-01T12:00:20Z", 1)
    item = replace(item, status=quiet)
    assert decide(item, one_arrived(KEPT, 119)) == Wait(HELD_POLL_S)

    resumed = written(decide(item, one_arrived(KEPT, 120)))

    assert (ready(resumed.conditions), resumed.handing_over) == (("False", "Running"), 2)
    assert resumed.guard == GuardRecord(breaches=1)


def test_an_unknown_limit_holds_running_moves_only_after_a_minute_and_never_rolls_back() -> None:
    """A restart of Prometheus stops nothing."""
    item = guarded(action="Rollback")
    item = replace(item, status=written(decide(item, seen(UNREAD))))
    assert ready(item.status.conditions) == ("False", "Running")
    assert isinstance(decide(item, seen(UNREAD, at_s=59)), Wait)

    status = written(decide(item, seen(UNREAD, at_s=60)))

    assert ready(status.conditions) == ("False", "GuardUnknown")
    assert not written(decide(replace(item, status=status), seen(KEPT, at_s=70))).rollback


def test_the_message_names_a_limit_that_still_cannot_be_read() -> None:
    """It changes when that limit can be read again, and not before: a message that alternates would be written every ten seconds."""
    other = Reading("lag of group a", None, 5, "Group a has no committed offsets: check its name.")
    first = judge(PAUSE, None, [UNREAD, other], NOW)
    second = judge(PAUSE, first, [other], after(10))

    assert first is not None
    assert second is not None
    assert first.message == "query p99: the query found nothing."
    assert second.message == "lag of group a: Group a has no committed offsets: check its name."
    assert judge(PAUSE, second, [UNREAD, other], after(20)) == second


def breached(item: Reassignment) -> Reassignment:
    """The same after a breach."""
    return replace(item, status=written(decide(item, seen(OVER))))


def test_a_breach_with_action_rollback_goes_back_and_is_not_ready_in_the_end() -> None:
    """The plan was not reached: a client that waits for Ready must not go on, and one that waits for the end sees Failed (ADR 36)."""
    item = breached(guarded(action="Rollback"))
    begun = written(decide(item, seen(OVER, at_s=GUARD_POLL_S + 1)))
    assert (begun.state, begun.rollback) == (State.ROLLING_BACK, True)
    item = replace(item, status=begun)
    assert decide(item, seen(OVER, at_s=12)) == Submit({Partition("orders", 0): None})

    status = written(decide(item, seen(moves={}, at_s=12)))

    assert (status.state, ready(status.conditions)) == (State.ROLLED_BACK, ("False", "RolledBackByGuard"))
    assert [condition.type for condition in status.conditions] == ["Ready", "Stalled", "Failed", "Waiting"]
    assert "offline partitions: 2 (maximum 0)" in status.conditions[0].message


def test_a_rollback_by_the_guard_can_be_cancelled_and_begun_again_by_the_user() -> None:
    """Cancel stops what moves; Rollback afterwards is the user's own."""
    item = breached(guarded(action="Rollback"))
    item = replace(item, status=written(decide(item, seen(OVER, at_s=11))))
    cancelled = at(State.RUNNING, action="Cancel")
    cancelled = replace(cancelled, status=item.status, guard=item.guard)
    back = seen(moves=moving("orders", 0, TARGET, BASE))
    assert decide(cancelled, back) == Submit({Partition("orders", 0): None})
    status: ReassignmentStatus = written(decide(cancelled, seen(moves={})))
    assert (status.state, status.rollback) == (State.CANCELLED, False)

    again = replace(at(State.RUNNING, action="Rollback"), status=status)

    assert written(decide(again, seen(moves={}))).state is State.ROLLING_BACK


def test_a_throttle_that_is_too_low_does_not_keep_an_outdated_record() -> None:
    """Otherwise the next failed query would count as a minute without an answer."""
    item = replace(guarded(State.PENDING), throttle=ThrottleSpec(1, 1))
    item = replace(item, status=written(decide(item, seen(UNREAD, moves={}))))
    measured = Measured(0, growth={Partition("orders", 0): 100.0, Partition("orders", 1): 100.0})

    status = written(decide(item, seen(KEPT, moves={}, measured=measured)))

    assert (ready(status.conditions), status.guard) == (("False", "ThrottleTooLow"), None)


def test_a_guard_without_a_breach_leaves_no_record() -> None:
    """And a record without a breach is none."""
    assert judge(PAUSE, None, [KEPT], NOW) is None
    assert judge(PAUSE, GuardRecord(unknown_time="2026-01-01T12:00:00Z", message="x"), [KEPT], NOW) is None


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_value_at_the_bound_keeps_the_limit(value: float) -> None:
    """Both bounds are allowed."""
    assert not Reading("a", value, 0).is_breached
    assert Reading("a", value, 0, is_minimum=True).is_breached == (value < 0)
