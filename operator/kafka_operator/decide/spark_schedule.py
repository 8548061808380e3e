"""Reconciliation of a ScheduledSparkApplication, in the manner of a CronJob.

    @every                 counts from the last time that is done, else from the creation: late runs do not shift it
    what is due            the last time of the schedule that has come since the last run; earlier ones that were missed are left out
    more than 100 missed   told once, and the last of them runs all the same
    startingDeadline       a time that lies further back is left out, and told
    concurrencyPolicy      Allow: it runs beside others. Forbid: it waits for them, and takes the last time then. Replace: they go first
    suspend                nothing starts; after it the last time that was missed does, if the deadline allows it

A run is named by schedule and time, so that a process that is killed between creating it and writing so down finds it again: one run a
time. The time is written down before old runs are deleted, so that none is taken for one that was never made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kafka_operator.decide.conditions import FALSE, TRUE, announce, ready_of, with_ready
from kafka_operator.decide.spark_times import MAX_MISSED, Missed, PeriodTimes, ScheduleError, Times, read_times
from kafka_operator.decide.spark_troubles import Trouble
from kafka_operator.decide.steps import Announcement, Done, Retry, Wait, WriteStatus
from kafka_operator.resources.metadata import RawObject, controller_reference, read_time, write_time
from kafka_operator.resources.spark_application import SparkApplication
from kafka_operator.resources.spark_schedule import ConcurrencyPolicy, ScheduledSparkApplication, ScheduleStatus
from kafka_operator.resources.spark_status import SparkState

MAX_SLEEP_S = 60.0
"""The longest sleep until a time comes: a clock that is set is noticed after so long."""

REPLACE_LOOK_S = 1.0
"""How often it is seen whether runs that are replaced are gone."""

NAME_LENGTH = 52
"""Characters of the schedule's name in a run's, as a CronJob has them: eleven are left for the time."""

INVALID_LOOK_S = 3_600.0
"""A schedule that is none is looked at again when it is edited; this is for a tz database that has come with a new image."""


@dataclass(frozen=True, slots=True)
class CreateRun:
    """Create the run of a time."""

    name: str
    content: RawObject


@dataclass(frozen=True, slots=True)
class DeleteRuns:
    """Delete these runs; each goes with its driver and executors."""

    runs: tuple[SparkApplication, ...]


Step = CreateRun | DeleteRuns | WriteStatus[ScheduleStatus] | Wait | Retry | Done


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """What a decision looks at: the runs that the schedule owns, and what became of the one that was to be created in this try."""

    now: datetime
    runs: Sequence[SparkApplication] = ()
    created: str | Trouble | None = None
    """The run's name, or why the API server takes none."""
    refusal: Trouble | None = None
    """Why no run may be created in this namespace."""


def decide_schedule(item: ScheduledSparkApplication, view: ScheduleView) -> Step:
    """Return the next step for a ScheduledSparkApplication."""
    if item.metadata.deleted is not None:
        return Done()
    if view.refusal is not None:
        told = _judged(item, view, FALSE, view.refusal.reason, view.refusal.message)
        return _written(item, replace(told, next_schedule_time=None)) or Wait(INVALID_LOOK_S)
    try:
        times = read_times(item.schedule, item.time_zone, item.since)
    except ScheduleError as error:
        told = _judged(item, view, FALSE, "InvalidSchedule", str(error))
        return _written(item, replace(told, next_schedule_time=None)) or Wait(INVALID_LOOK_S)
    old = _past_history(item, view)
    if old:
        return DeleteRuns(old)
    missed = None if item.suspend else times.missed(_earliest(item, view), view.now)
    if missed is None:
        return _rest(item, view, times)
    # The run of this very time may be there: a process that created it was killed before it wrote so down.
    others = tuple(run for run in _active(view) if run.key.name != run_name(item, missed.last))
    if others and item.concurrency_policy is ConcurrencyPolicy.FORBID:
        words = f"{others[0].key.name} is still active, so the run of {write_time(missed.last)} is delayed (concurrencyPolicy)."
        return _rest(item, view, times, Trouble("RunForbidden", words))
    if others and item.concurrency_policy is ConcurrencyPolicy.REPLACE and view.created is None:
        staying = tuple(run for run in others if run.metadata.deleted is None)
        return DeleteRuns(staying) if staying else Wait(REPLACE_LOOK_S)
    if view.created is None:
        return CreateRun(run_name(item, missed.last), run_content(item))
    if isinstance(view.created, Trouble):
        told = _judged(item, view, FALSE, view.created.reason, view.created.message)
        return _written(item, told) or Retry(REPLACE_LOOK_S)
    return _created(item, view, times, missed)


def run_name(item: ScheduledSparkApplication, time: datetime) -> str:
    """Return the name of the run of a time: the schedule's, and the minutes since 1970."""
    return f"{item.key.name[:NAME_LENGTH].rstrip('-.')}-{int(time.timestamp()) // 60}"


def run_content(item: ScheduledSparkApplication) -> RawObject:
    """Return metadata and spec of a run."""
    return {"metadata": {"ownerReferences": [controller_reference(item.metadata)]}, "spec": dict(item.template)}


def _earliest(item: ScheduledSparkApplication, view: ScheduleView) -> datetime:
    """Return the moment after which times count: that of the last run, and no longer ago than the deadline."""
    if item.starting_deadline_s is None:
        return item.since
    return max(item.since, view.now - timedelta(seconds=item.starting_deadline_s))


def _created(item: ScheduledSparkApplication, view: ScheduleView, times: Times | PeriodTimes, missed: Missed) -> Step:
    """Write down that a time has its run, and what was missed before it."""
    assert isinstance(view.created, str), item.key
    status = _told(item, view, times, None)
    status = replace(status, last_schedule_time=write_time(missed.last), last_run_name=view.created)
    status = replace(status, active=tuple(sorted({*status.active, view.created})))
    name = f"{view.created} was created for {write_time(missed.last)}."
    if missed.too_many:
        words = f"More than {MAX_MISSED} scheduled times were missed; {name} Set startingDeadlineSeconds, and check the clock."
        return WriteStatus(status, Announcement(True, "TooManyMissedTimes", words))
    if missed.count > 1:
        return WriteStatus(
            status, Announcement(True, "MissedTimes", f"{missed.count - 1} earlier scheduled times were missed; {name}")
        )
    return WriteStatus(status, Announcement(False, "RunCreated", name))


def _rest(
    item: ScheduledSparkApplication, view: ScheduleView, times: Times | PeriodTimes, held: Trouble | None = None
) -> Step:
    """Tell how things stand, and sleep until the next time."""
    status = _told(item, view, times, held)
    late = None if item.suspend or held is not None else _too_late(item, view, times)
    if late is not None:
        status = replace(status, last_schedule_time=write_time(late.last))
        words = f"The run of {write_time(late.last)} is skipped: startingDeadlineSeconds has passed."
        return WriteStatus(status, Announcement(True, "MissedDeadline", words))
    step = _written(item, status)
    if step is not None:
        return step
    following = None if item.suspend else times.next_after(view.now)
    if following is None:
        return Done()
    return Wait(min(MAX_SLEEP_S, max(0.0, (following - view.now).total_seconds())))


def _too_late(item: ScheduledSparkApplication, view: ScheduleView, times: Times | PeriodTimes) -> Missed | None:
    """Return the times that have come and that the deadline leaves out: they are told once, and count as done."""
    if item.starting_deadline_s is None:
        return None
    return times.missed(item.since, view.now - timedelta(seconds=item.starting_deadline_s))


def _told(
    item: ScheduledSparkApplication, view: ScheduleView, times: Times | PeriodTimes, held: Trouble | None
) -> ScheduleStatus:
    """Return the present status."""
    following = times.next_after(view.now)
    if item.suspend:
        judged = _judged(item, view, TRUE, "Suspended", "No run starts until spec.suspend is false.")
        following = None
    elif held is not None:
        judged = _judged(item, view, TRUE, held.reason, held.message)
    elif following is None:
        judged = _judged(
            item, view, FALSE, "NeverDue", f"The schedule {item.schedule!r} has no time within the next fifty years."
        )
    else:
        judged = _judged(
            item, view, TRUE, "Scheduled", f"Scheduled by {item.schedule!r} in time zone {item.time_zone}."
        )
    return replace(
        judged,
        next_schedule_time=None if following is None else write_time(following),
        active=tuple(sorted(run.key.name for run in _active(view))),
    )


def _judged(
    item: ScheduledSparkApplication, view: ScheduleView, ready: str, reason: str, message: str
) -> ScheduleStatus:
    conditions = with_ready(
        item.status.conditions,
        status=ready,
        reason=reason,
        message=message,
        generation=item.metadata.generation,
        now=view.now,
    )
    return replace(item.status, observed_generation=item.metadata.generation, conditions=conditions)


def _written(item: ScheduledSparkApplication, status: ScheduleStatus) -> WriteStatus[ScheduleStatus] | None:
    if status == item.status:
        return None
    news = announce(item.status.conditions, status.conditions)
    ready = ready_of(status.conditions)
    calm = ready is not None and ready.status == TRUE
    return WriteStatus(status, None if news is None else replace(news, warning=not calm))


def _active(view: ScheduleView) -> list[SparkApplication]:
    """Return the runs that have not ended, those on their way out included: their pods may still be there."""
    return [run for run in view.runs if run.status.state is None or not run.status.state.ended]


def _past_history(item: ScheduledSparkApplication, view: ScheduleView) -> tuple[SparkApplication, ...]:
    """Return ended runs beyond those that are kept, the oldest ones; one that is not written down yet would be made again."""
    noted = [run for run in view.runs if run.metadata.deleted is None and _is_noted(item, run)]
    old: list[SparkApplication] = []
    for state, kept in ((SparkState.COMPLETED, item.successful_history), (SparkState.FAILED, item.failed_history)):
        runs = [run for run in noted if run.status.state is state]
        ordered = sorted(runs, key=lambda run: (run.metadata.created, run.key.name), reverse=True)
        old += ordered[kept:]
    return tuple(old)


def _is_noted(item: ScheduledSparkApplication, run: SparkApplication) -> bool:
    """Return whether the time of a run, which its name ends in, has been written down."""
    minutes = run.key.name.rpartition("-")[2]
    last = item.status.last_schedule_time
    return last is not None and minutes.isdecimal() and int(minutes) * 60 <= read_time(last).timestamp()
