"""Rates of throttles, and the progress between two measurements of sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.decide.kafka.observed import KafkaPartition, KafkaTopic, Moves
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.move_progress import STUCK_AFTER_S, Measured, measure, seconds_left
from kafka_operator.decide.reassignments.partition_progress import CurrentPartitions, PartitionProgress, find_progress
from kafka_operator.decide.reassignments.throttle_rate import HEADROOM, Need, need_of, rate_of, too_low
from kafka_operator.resources.reassignment import Partition, ReassignmentStatus
from kafka_operator.resources.reassignment_terms import Concurrency
from kafka_operator.resources.throttle import ThrottleRecord, ThrottleSpec
from tests.kafka_operator.makers import assignments, moving

P0, P1 = Partition("orders", 0), Partition("orders", 1)
PLAN = assignments(p0=(2, 3), p1=(3, 2))
BASE = assignments(p0=(1, 2), p1=(1, 2))
BOTH_MOVE = moving("orders", 0, (1, 2), (2, 3)) | moving("orders", 1, (1, 2), (3, 2))
FIXED, ADAPTIVE = ThrottleSpec(1000, 1000), ThrottleSpec(1000, 100_000)
ALIVE = (1, 2, 3)


def partitions(moves: Moves | None = None, isr: tuple[int, ...] = (1, 2)) -> PartitionProgress:
    """Two partitions on 1 and 2, led by 1."""
    shown = tuple(KafkaPartition(index, 1, (1, 2), isr) for index in range(2))
    topics = {"orders": KafkaTopic("orders", None, shown)}
    return find_progress(
        Recorded(PLAN, BASE), ReassignmentStatus(handing_over=2), CurrentPartitions(topics, moves or {})
    )


def test_the_need_is_that_of_the_busiest_broker() -> None:
    """Broker 1 sends both, broker 3 receives both; with one move at a time the busier one counts."""
    growth = {P0: 300.0, P1: 500.0}

    assert need_of(PLAN, partitions(), growth, Concurrency(10, 10)) == Need(1, 800.0)
    assert need_of(PLAN, partitions(), growth, Concurrency(1, 10)) == Need(1, 500.0)
    assert need_of(PLAN, partitions(), {}, Concurrency(1, 10)) is None


def test_a_throttle_needs_headroom_above_the_traffic() -> None:
    """The message has figures, and a rate that would be enough."""
    message = too_low(FIXED, Need(1, 1000 / HEADROOM + 1))

    assert message is not None
    assert "801 bytes per second on broker 1" in message
    assert "Set at least 1002 bytes per second" in message
    assert too_low(FIXED, Need(1, 1000 / HEADROOM)) is None
    assert too_low(FIXED, None) is None


RECORD = ThrottleRecord((4000,))


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (None, 4000),
        (Measured(0, speed=None), 4000),
        (Measured(0, used=3000, speed=3000), 6001),
        (Measured(0, used=100, speed=100), 4000),
        (Measured(0, used=100, speed=-5), 6001),
        (Measured(0, used=3000, speed=3000, fallen=1), 2000),
        (Measured(0, used=3000, speed=3000, lag=9000, lag_before=0), 2000),
        (Measured(0, used=3000, speed=3000, lag=9000, lag_before=9000), 6001),
    ],
    ids=["no poll", "first poll", "used", "unused", "no nearer", "out of sync", "falls behind", "was behind before"],
)
def test_an_adaptive_throttle_follows_what_is_measured(measured: Measured | None, expected: int) -> None:
    """Raised when it is used, halved when replicas that do not move suffer, left alone otherwise."""
    assert rate_of(ADAPTIVE, RECORD, measured, None) == expected


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.one_of(st.none(), st.integers(1, 10**7)),
    st.builds(
        Measured,
        st.integers(0, 10),
        used=st.one_of(st.none(), st.floats(0, 1e7)),
        speed=st.one_of(st.none(), st.floats(-1e7, 1e7)),
        fallen=st.integers(0, 2),
    ),
    st.one_of(st.none(), st.floats(0, 1e7)),
)
def test_a_rate_is_always_between_its_ends(
    one: int, other: int, before: int | None, measured: Measured, need: float | None
) -> None:
    """Also when the spec was changed, and when the traffic asks for more."""
    spec = ThrottleSpec(min(one, other), max(one, other))
    record = None if before is None else ThrottleRecord((before,))

    rate = rate_of(spec, record, measured, None if need is None else Need(1, need))

    assert spec.min_bytes_per_second <= rate <= spec.max_bytes_per_second


def test_polls_give_bytes_speed_and_time_left() -> None:
    """Bytes of added replicas only; speed from the second poll on."""
    moved = partitions(BOTH_MOVE)
    first, memory = measure(moved, {P0: {1: 1000, 2: 1000, 3: 100}, P1: {1: 500, 2: 500}}, None, 0, ALIVE)
    second, memory = measure(moved, {P0: {1: 1000, 2: 1000, 3: 600}, P1: {1: 500, 2: 500}}, memory, 5, ALIVE)

    assert (first.copied, first.speed, first.growth, first.total) == (100, None, None, 1500)
    assert (second.copied, second.remaining, second.used, second.speed) == (600, 900, 100.0, 100.0)
    assert seconds_left(second) == 10
    assert seconds_left(first) is None
    third, _ = measure(moved, {P0: {1: 1300, 3: 900}, P1: {1: 400}}, memory, 8, ALIVE)
    assert third.growth == {P0: 100.0, P1: 0}
    assert (third.used, int(third.speed or 0)) == (100.0, 80)


def test_a_move_is_stuck_when_it_copies_nothing_for_long() -> None:
    """One more byte restarts the time."""
    moved = partitions(BOTH_MOVE)
    sizes = {P0: {1: 10, 3: 1}, P1: {1: 10, 3: 1}}
    _, memory = measure(moved, sizes, None, 0, ALIVE)
    _, memory = measure(moved, {**sizes, P1: {1: 10, 3: 2}}, memory, 60, ALIVE)

    measured, _ = measure(moved, {**sizes, P1: {1: 10, 3: 2}}, memory, STUCK_AFTER_S, ALIVE)

    assert measured.stuck == (P0,)


def test_only_replicas_of_living_brokers_that_do_not_move_fall_behind() -> None:
    """A broker that is being emptied because it is dead slows nothing down."""
    moved = partitions(BOTH_MOVE, isr=(1,))
    sizes = {P0: {1: 1000, 2: 400, 3: 0}}

    measured, _ = measure(moved, sizes, None, 0, ALIVE)
    without, _ = measure(moved, sizes, None, 0, (1, 3))

    assert (measured.lag, measured.fallen) == (600, 2)
    assert without.fallen == 0


def test_a_spec_is_written_as_it_was_read() -> None:
    """Topics hand theirs on to the Reassignment that changes their replication factor."""
    assert FIXED.to_json() == {"bytesPerSecond": 1000}
    assert ADAPTIVE.to_json() == {"adaptive": {"minBytesPerSecond": 1000, "maxBytesPerSecond": 100_000}}
    assert replace(ADAPTIVE, min_bytes_per_second=100_000).adaptive is False
