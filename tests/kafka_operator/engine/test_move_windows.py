"""Windows of a Reassignment: when they are open, and what happens outside them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator import kinds
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.decide.reassignments.move_windows import next_opening, problem_of_windows, read_window
from kafka_operator.decide.reassignments.throttle import ObservedThrottle
from kafka_operator.decide.steps import Submit
from kafka_operator.resources.reassignment import State
from kafka_operator.resources.reassignment_terms import Window
from kafka_operator.resources.throttle import BrokerThrottle, ThrottleRecord, TopicThrottle
from reconciler.decide.steps import Wait
from reconciler.names import Key
from tests.kafka_operator.decide.test_reassignment import AT_BASE, BASE, TARGET, at, written
from tests.kafka_operator.engine.test_cluster_pods import reasons
from tests.kafka_operator.engine.test_throttles import FIXED, condition, orders, status
from tests.kafka_operator.makers import decide, moving, raw_plan, raw_reassignment, ready, view
from tests.kafka_operator.world import running
from tests.reconciler.virtual_time import in_virtual_time

NIGHTS = {"schedule": "0 22 * * *", "duration": "6h"}
MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
WINDOWS = st.builds(
    Window,
    st.sampled_from(("*/7 * * * *", "30 2 * * *", "0 22 * * 1-5", "15 1 31 * *")),
    st.sampled_from(("1m", "45m", "6h", "26h")),
    st.sampled_from(("UTC", "Europe/Berlin", "America/New_York")),
)
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis takes naive bounds


@given(WINDOWS, MOMENTS)
def test_a_window_is_open_from_its_start_for_its_duration(window: Window, moment: datetime) -> None:
    """The start is included, the end is not; the search from the start of the last duration is the plain twin."""
    found = read_window(window)
    assert not isinstance(found, PlanProblem)
    starts = found.times.after(moment - found.duration)

    assert (next(starts) <= moment) == (next_opening([window], moment) is None)


@given(st.lists(WINDOWS, min_size=1, max_size=3), MOMENTS)
def test_the_next_opening_is_the_first_time_at_which_a_window_is_open(windows: list[Window], moment: datetime) -> None:
    """It is open at that time, and closed a second before."""
    opening = next_opening(windows, moment)
    if opening is None:
        return

    assert next_opening(windows, opening) is None
    assert next_opening(windows, max(moment, opening - timedelta(seconds=1))) == opening


def test_a_window_has_the_same_length_when_the_clock_is_put_on() -> None:
    """Berlin, 29 March 2026: 01:30 + 2 h is 04:30 by the clock."""
    night = [Window("30 1 * * *", "2h", "Europe/Berlin")]

    opens = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    assert next_opening(night, opens) is None
    assert next_opening(night, opens + timedelta(minutes=119)) is None
    assert next_opening(night, opens + timedelta(minutes=120)) == datetime(2026, 3, 29, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (Window("0 0 30 2 *", "6h"), "'0 0 30 2 *' is not a cron expression: Bad day-of-month"),
        (Window("0 0 31 4,6 *", "6h"), "Bad day-of-month"),
        (Window("daily at ten", "6h"), "not a cron expression with five fields"),
        (Window("@every 24h", "6h"), "only cron expressions have a time of day"),
        (Window("0 22 * * *", "6h", "Europe/Nowhere"), "'Europe/Nowhere' is not in the tz database"),
        (Window("0 22 * * *", "0m"), "write 1m to 744h"),
        (Window("0 22 * * *", "745h"), "write 1m to 744h"),
        (Window("0 22 * * *", "long"), "write 1m to 744h"),
    ],
)
def test_a_window_that_is_invalid_or_never_opens_is_reported(window: Window, message: str) -> None:
    """A window on 30 February would never open."""
    problem = problem_of_windows([Window("0 22 * * *", "6h"), window])

    assert problem is not None
    assert problem.reason == "InvalidWindow"
    assert message in problem.message


def test_outside_its_windows_a_plan_does_not_start_and_the_status_has_the_next_opening() -> None:
    """Noon; the window opens at ten in the evening."""
    item = at(State.PENDING, windows=[NIGHTS])
    item = replace(item, status=replace(item.status, handing_over=0))

    status = written(decide(item, view(AT_BASE)))

    assert (status.state, ready(status.conditions)) == (State.PENDING, ("False", "OutsideWindow"))
    assert [condition.type for condition in status.conditions] == ["Ready", "Reconciling", "Waiting"]
    assert status.next_window_time == "2026-01-01T22:00:00Z"
    assert "the next one opens at 2026-01-01T22:00:00Z" in status.conditions[0].message
    assert decide(replace(item, status=status), view(AT_BASE)) == Wait(60.0)
    soon = replace(view(AT_BASE), now=datetime(2026, 1, 1, 21, 59, 50, tzinfo=UTC))
    assert decide(replace(item, status=status), soon) == Wait(10.0)


def test_outside_its_windows_what_may_have_been_submitted_is_not_submitted_again() -> None:
    """Killed between the record and the call; the window has closed since."""
    item = at(State.PENDING, windows=[NIGHTS])
    held = replace(item, status=written(decide(item, view(AT_BASE))))

    assert decide(held, view(AT_BASE)) == Wait(60.0)
    opened = replace(view(AT_BASE), now=datetime(2026, 1, 1, 22, tzinfo=UTC))
    assert written(decide(held, opened)).next_window_time is None
    assert isinstance(decide(replace(held, status=written(decide(held, opened))), opened), Submit)


def test_outside_its_windows_moves_in_progress_keep_their_throttle_and_run_to_their_end() -> None:
    """A cancel would discard the copied bytes, and a move without its throttle would be faster than inside the window."""
    record = ThrottleRecord(
        (1000,), (BrokerThrottle(4),), (TopicThrottle("orders", frozenset({"0:1"}), frozenset({"0:4"})),)
    )
    item = at(State.RUNNING, windows=[NIGHTS], throttle={"bytesPerSecond": 1000})
    item = replace(item, status=replace(item.status, throttle=record))
    seen = ObservedThrottle({broker: {} for broker in (1, 2, 3, 4)}, {"orders": {}})
    one_moves = view(AT_BASE, moves=moving("orders", 0, BASE, TARGET), throttle=seen)

    status = written(decide(replace(item, status=replace(item.status, handed_over=1, handing_over=1)), one_moves))

    assert status.handing_over == 1
    assert status.throttle is not None
    assert "Moves in progress (1) run to their end." in status.conditions[0].message


def test_an_invalid_window_moves_nothing_until_it_is_corrected() -> None:
    """A plan that runs at any time because of a typing error would surprise. Nothing happens before a user acts (ADR 36)."""
    item = at(State.PENDING, windows=[{"schedule": "0 0 30 2 *", "duration": "6h"}])

    status = written(decide(item, view(AT_BASE)))

    assert ready(status.conditions) == ("False", "InvalidWindow")
    assert [condition.type for condition in status.conditions] == ["Ready", "Stalled", "Waiting"]
    assert status.conditions[0].message == (
        "A window of spec.windows is invalid. The schedule '0 0 30 2 *' is not a cron expression: Bad day-of-month. Correct spec.windows."
    )
    assert isinstance(decide(replace(item, status=status), view(AT_BASE)), Wait)


def test_a_rollback_and_a_cancel_wait_for_no_window() -> None:
    """A user who stops or reverses a plan wants it at once."""
    seen = view(AT_BASE, moves=moving("orders", 0, BASE, TARGET) | moving("orders", 1, BASE, TARGET))
    cancelled = decide(at(State.RUNNING, windows=[NIGHTS], action="Cancel"), seen)
    back = at(State.RUNNING, windows=[NIGHTS], action="Rollback")
    begun = written(decide(back, seen))

    assert isinstance(cancelled, Submit)
    assert begun.state is State.ROLLING_BACK
    assert isinstance(decide(replace(back, status=begun), seen), Submit)


@pytest.mark.slow
@pytest.mark.shows("E16")
@in_virtual_time
async def test_moves_start_in_windows_only_and_no_throttle_is_left_between_them() -> None:
    """A window in every second minute, moves of 70 and 140 s; one event for each change."""
    async with running() as world:
        world.kafka.move_s = 70
        await orders(world)
        windows = [{"schedule": "*/2 * * * *", "duration": "1m"}]
        plan = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2])
        world.kube.apply(raw_reassignment(plan=plan, throttle=FIXED, windows=windows, concurrency={"cluster": 1}))
        await world.until(lambda: bool(world.kafka.moves), seconds=30)
        await world.until(lambda: world.kube.ready(MOVE)[1] == "OutsideWindow", seconds=70)
        await world.until(lambda: not world.kafka.moves, seconds=60)
        await world.run(2)
        assert world.kafka.throttled() == {}
        assert len(world.kafka.submitted) == 1
        assert condition(world, "Waiting")[:2] == ("True", "OutsideWindow")
        assert status(world)["nextWindowTime"] == "2026-01-01T12:02:00Z"

        await world.until(lambda: status(world)["state"] == "Completed", seconds=300)

        assert world.kafka.throttled() == {}
        assert condition(world, "Waiting")[0] == "False"
        assert "nextWindowTime" not in status(world)
        assert reasons(world) == ["Running", "OutsideWindow", "Running", "OutsideWindow", "Running", "Completed"]
