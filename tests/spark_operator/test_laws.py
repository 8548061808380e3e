"""Laws of SparkApplications: one driver an attempt under any order of crashes and edits; no state but by the table (O11)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_operator.decide.states import FOLLOWERS, may_follow
from spark_operator.resources.status import SparkState
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import run_virtually
from tests.spark_operator.fake_spark import APPLICATION, FAILS, OUT_OF_MEMORY, RUNS_FOREVER, SUCCEEDS, DriverScript
from tests.spark_operator.fake_spark import missing_account as refused
from tests.spark_operator.makers import SparkWorld, raw_spark

SCRIPTS = (
    SUCCEEDS,
    FAILS,
    RUNS_FOREVER,
    OUT_OF_MEMORY,
    DriverScript(waiting="ErrImagePull"),
    DriverScript(executors=1, executor_reason="Evicted"),
)
POLICY = {"type": "OnFailure", "onFailureRetries": 3, "onFailureRetryInterval": 1, "onSubmissionFailureRetries": 1}

Happening = tuple[str, int]
HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(("kill before", "kill after", "suspend", "resume", "refuse", "wait")), st.integers(1, 12)
    ),
    max_size=8,
)


async def live(scripts: Sequence[DriverScript], happenings: Sequence[Happening], *, lose: bool = False) -> SparkWorld:
    """Let an application live through what happens; with `lose` its drivers are deleted by others, too."""
    world = SparkWorld(Gate())
    world.fake.scripts = list(scripts)
    world.start()
    spec = {"restartPolicy": POLICY, "startTimeoutSeconds": 5}
    try:
        world.kube.apply(raw_spark(**spec))
        for what, number in happenings:
            if what.startswith("kill"):
                world.gate.kill_at, world.gate.after = len(world.gate.calls) + number, what == "kill after"
            elif what in {"suspend", "resume"}:
                world.kube.apply(raw_spark(**spec, suspend=what == "suspend"))
            elif what == "refuse":
                world.fake.refusals = [refused()]
            if lose and world.fake.drivers() and number % 3 == 0:
                world.fake.remove(world.fake.drivers()[0]["metadata"]["name"])
            await world.run(number / 2)
        await world.run(120)
    finally:
        await world.kill()
    return world


@pytest.mark.slow
@pytest.mark.shows("O11")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(SCRIPTS), min_size=1, max_size=4), HAPPENINGS)
def test_there_is_exactly_one_driver_an_attempt(scripts: list[DriverScript], happenings: list[Happening]) -> None:
    """O11, under any crash and restart: none twice, none left out, one at a time; and what is written is what there was."""
    world = run_virtually(live(scripts, happenings))
    attempts = [attempt for _, attempt in world.fake.created]

    assert list(range(1, len(attempts) + 1)) == attempts
    assert world.fake.max_alive_drivers <= 1
    assert len(attempts) == world.status(APPLICATION).get("attempts", 0)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(SCRIPTS), min_size=1, max_size=4), HAPPENINGS)
def test_no_two_drivers_are_alive_at_once_even_if_others_delete_them(
    scripts: list[DriverScript], happenings: list[Happening]
) -> None:
    """A driver that vanishes before it is in a status may be created again under its name, but never while another one exists."""
    world = run_virtually(live(scripts, happenings, lose=True))

    assert world.fake.max_alive_drivers <= 1


def test_ends_are_ends_and_every_state_has_its_row() -> None:
    """The table is whole."""
    assert set(FOLLOWERS) == {None, *SparkState}
    for state in SparkState:
        assert state.ended is (not FOLLOWERS[state])
        assert may_follow(state, state)


def test_a_driver_is_created_from_these_states_alone() -> None:
    """Another attempt follows an end that was written down, or nothing."""
    assert {state for state, following in FOLLOWERS.items() if SparkState.SUBMITTED in following} == {
        None,
        SparkState.SUBMISSION_FAILED,
        SparkState.PENDING_RERUN,
        SparkState.SUSPENDED,
    }
