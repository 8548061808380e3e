"""Schedules like those of a CronJob: started, skipped and reported runs; missed schedules are handled like a CronJob's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from reconciler.decide.steps import Done, Wait, WriteStatus
from reconciler.kube.port import RefusedError
from reconciler.names import Key
from reconciler.resources.metadata import read_time, write_time
from spark_operator import kinds
from spark_operator.decide.problems import SparkProblem
from spark_operator.decide.schedule import CreateRun, DeleteRuns, ScheduleView, decide_schedule, run_name
from spark_operator.resources.application import SparkApplication
from tests.kafka_operator.makers import NOW, Raw, ready
from tests.reconciler.virtual_time import in_virtual_time
from tests.spark_operator.fake_spark import RUNS_FOREVER, SCHEDULE
from tests.spark_operator.makers import SparkWorld, raw_schedule, raw_spark, schedule, spark, spark_running

MINUTE = "* * * * *"


def runs(world: SparkWorld) -> list[str]:
    """The names of all runs that are there."""
    return sorted(key.name for key in world.kube.objects if key.kind == kinds.SPARK_APPLICATION)


def run_of(item: Any, time: str, state: str | None = None) -> SparkApplication:
    """A run of a schedule, by its time."""
    name = run_name(item, read_time(time))
    return spark(name, status={} if state is None else {"state": state})


def ended(step: object) -> tuple[Any, Any]:
    """The status and event of a write."""
    assert isinstance(step, WriteStatus), step
    return step.status, step.event


@in_virtual_time
async def test_runs_start_at_their_times_and_old_ones_go() -> None:
    """One a time, named by it; as many ended ones stay as are asked for."""
    async with spark_running() as world:
        world.kube.apply(raw_schedule(schedule=MINUTE, successfulRunHistoryLimit=2))
        await world.run(30)
        assert runs(world) == []
        assert world.kube.ready(SCHEDULE)[:2] == ("True", "Scheduled")
        assert world.status(SCHEDULE)["nextScheduleTime"] == "2026-01-01T12:01:00Z"

        await world.run(60)
        (name,) = runs(world)
        assert name == world.status(SCHEDULE)["lastRunName"]
        assert world.status(SCHEDULE)["lastScheduleTime"] == "2026-01-01T12:01:00Z"
        await world.run(240)
        assert len(runs(world)) == 2
        assert 5 == len(world.fake.created) == len(set(world.fake.created))
        assert world.reasons().count("RunCreated") == 5


@in_virtual_time
async def test_a_period_starts_a_run_each_time_that_it_is_over() -> None:
    """@every, counted from the schedule's creation; the schedule does not drift with the time that creating a run takes."""
    async with spark_running() as world:
        await world.run(20)
        world.kube.apply(raw_schedule(schedule="@every 90s"))
        await world.run(5)
        created = read_time(world.kube.objects[SCHEDULE]["metadata"]["creationTimestamp"])
        assert world.kube.ready(SCHEDULE)[:2] == ("True", "Scheduled")
        assert world.status(SCHEDULE)["nextScheduleTime"] == write_time(created + timedelta(seconds=90))
        await world.run(80)
        assert runs(world) == []
        await world.run(10)
        assert len(runs(world)) == 1
        await world.run(180)
        assert len(world.fake.created) == 3
        assert world.status(SCHEDULE)["lastScheduleTime"] == write_time(created + timedelta(seconds=270))


@in_virtual_time
async def test_forbid_waits_for_the_run_that_goes_on_and_takes_the_last_time_then() -> None:
    """One event while it waits."""
    async with spark_running() as world:
        world.fake.scripts = [RUNS_FOREVER]
        world.kube.apply(raw_schedule(schedule=MINUTE, concurrencyPolicy="Forbid"))
        await world.run(250)
        (name,) = runs(world)
        assert world.kube.ready(SCHEDULE)[:2] == ("True", "RunForbidden")
        assert world.reasons().count("RunForbidden") == 1
        world.kube.delete(Key(kinds.SPARK_APPLICATION, "shop", name))
        await world.run(5)
        (second,) = runs(world)
        assert world.status(SCHEDULE)["lastScheduleTime"] == "2026-01-01T12:04:00Z"
        assert name != second
        assert "MissedTimes" in world.reasons()


@in_virtual_time
async def test_allow_has_runs_side_by_side_and_replace_has_one() -> None:
    """The three policies."""
    async with spark_running() as world:
        world.fake.scripts = [RUNS_FOREVER]
        world.kube.apply(raw_schedule("side-by-side", schedule=MINUTE))
        world.kube.apply(raw_schedule("replaced", schedule=MINUTE, concurrencyPolicy="Replace"))
        await world.run(190)
        names = runs(world)
        assert sum(name.startswith("side-by-side") for name in names) == 3
        assert sum(name.startswith("replaced") for name in names) == 1


@in_virtual_time
async def test_a_run_missed_while_no_operator_was_active_starts_once_and_late() -> None:
    """The operator was away for three hours and a half."""
    async with spark_running() as world:
        world.kube.apply(raw_schedule())
        await world.run(10)
        await world.kill()
        await world.run(3.5 * 3600)
        world.start()
        await world.run(30)
        assert len(runs(world)) == 1
        assert world.status(SCHEDULE)["lastScheduleTime"] == "2026-01-01T15:00:00Z"
        assert [event.reason for event in world.kube.events if event.key == SCHEDULE] == [
            "Scheduled",
            "MissedTimes",
        ] or "MissedTimes" in world.reasons()


@in_virtual_time
async def test_a_run_of_that_name_with_another_owner_is_reported() -> None:
    """Never taken over."""
    async with spark_running() as world:
        item = schedule()
        name = run_name(item, read_time("2026-01-01T13:00:00Z"))
        world.kube.apply(raw_spark(name))
        world.kube.apply(raw_schedule())
        await world.run(3700)
        assert world.kube.ready(SCHEDULE)[:2] == ("False", "RunNameTaken")


def test_more_than_a_hundred_missed_times_are_reported_and_the_last_one_runs() -> None:
    """A CronJob reports too many, too (getMostRecentScheduleTime)."""
    item = schedule(schedule=MINUTE, created="2025-12-01T00:00:00Z")
    step = decide_schedule(item, ScheduleView(NOW))
    assert isinstance(step, CreateRun)
    assert run_name(item, NOW) == step.name

    status, event = ended(decide_schedule(item, ScheduleView(NOW, created=step.name)))
    assert event.reason == "TooManyMissedTimes"
    assert write_time(NOW) == status.last_schedule_time


def test_a_run_past_its_deadline_is_skipped_and_reported_once() -> None:
    """By startingDeadlineSeconds."""
    item = schedule(startingDeadlineSeconds=60, status={"lastScheduleTime": "2026-01-01T09:00:00Z"})
    at = NOW + timedelta(minutes=5)
    status, event = ended(decide_schedule(item, ScheduleView(at)))
    assert event.reason == "MissedDeadline"
    assert write_time(NOW) == status.last_schedule_time

    written = {name: value for name, value in status.to_patch().items() if value is not None}
    again = schedule(startingDeadlineSeconds=60, status=written)
    assert isinstance(decide_schedule(again, ScheduleView(at)), Wait)


def test_a_suspended_schedule_starts_nothing_and_then_the_last_that_was_missed() -> None:
    """As a CronJob that is resumed."""
    status, _ = ended(decide_schedule(schedule(suspend=True), ScheduleView(NOW)))
    assert ready(status.conditions) == ("True", "Suspended")
    written = {name: value for name, value in status.to_patch().items() if value is not None}

    assert decide_schedule(schedule(suspend=True, status=written), ScheduleView(NOW)) == Done()
    assert isinstance(decide_schedule(schedule(status=written), ScheduleView(NOW)), CreateRun)


def test_a_run_that_is_not_written_down_is_not_deleted_as_old() -> None:
    """It would be made again: one run a time."""
    noted: Raw = {"lastScheduleTime": "2026-01-01T11:00:00Z"}
    item = schedule(successfulRunHistoryLimit=0, status=noted)
    old, new = (run_of(item, f"2026-01-01T{hour}:00:00Z", "Completed") for hour in (11, 12))

    step = decide_schedule(item, ScheduleView(NOW, runs=(old, new)))
    assert step == DeleteRuns((old,))
    assert isinstance(decide_schedule(item, ScheduleView(NOW, runs=(new,))), CreateRun)


def test_the_reason_for_no_run_is_reported() -> None:
    """A template that the schema of applications refuses."""
    problem = SparkProblem("RunRefused", str(RefusedError("spec.driver.memory")))
    status, event = ended(decide_schedule(schedule(), ScheduleView(NOW, created=problem)))
    assert ready(status.conditions) == ("False", "RunRefused")
    assert event.warning


def test_an_invalid_schedule_is_reported() -> None:
    """In words, and nothing starts."""
    status, event = ended(decide_schedule(schedule(schedule="0 25 * * *"), ScheduleView(NOW)))
    assert ready(status.conditions) == ("False", "InvalidSchedule")
    assert "hour" in event.message
