"""Reconciliation of a ScheduledSparkApplication, with the semantics of a CronJob.

    @every                 counts from the last scheduled time, else from the creation: late runs do not shift it
    due time               the last scheduled time since the last run; earlier missed times are skipped
    more than 100 missed   reported once; the last of them still runs
    startingDeadline       an older scheduled time is skipped, and reported
    concurrencyPolicy      Allow: runs in parallel. Forbid: waits for active runs, then takes the last time. Replace: deletes them first
    suspend                nothing starts; afterwards the last missed time runs, if the deadline allows it

A run is named by schedule and time, so that a process that is killed between creating it and writing the status finds it again: one run
per time. The time is recorded before old runs are deleted, so that a deleted run is not created again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.decide.conditions import FALSE, TRUE, event_of_change, ready_of, with_ready
from reconciler.decide.cron_times import MAX_MISSED, Missed, PeriodTimes, ScheduleError, Times, read_times
from reconciler.decide.steps import Done, ResourceEvent, Retry, Wait, WriteStatus
from reconciler.resources.metadata import RawObject, controller_reference, read_time, write_time
from spark_operator.decide.problems import SparkProblem
from spark_operator.resources.application import SparkApplication
from spark_operator.resources.schedule import ConcurrencyPolicy, ScheduledSparkApplication, ScheduleStatus
from spark_operator.resources.status import SparkState

MAX_SLEEP_S = 60.0
"""Maximum sleep until the next scheduled time: a change of the system clock is noticed after this time."""

REPLACE_POLL_S = 1.0
"""Interval between checks whether replaced runs are deleted."""

NAME_LENGTH = 52
"""Characters of the schedule's name in a run's name, as in a CronJob: eleven are left for the time."""

INVALID_RETRY_S = 3_600.0
"""Retry interval of an invalid schedule: an edit triggers a retry at once; a tz database may arrive with a new image."""


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
    """Input of a decision: the runs that the schedule owns, and the result of creating a run in this attempt."""

    now: datetime
    runs: Sequence[SparkApplication] = ()
    created: str | SparkProblem | None = None
    """The run's name, or why the API server rejected it."""
    refusal: SparkProblem | None = None
    """Why no run may be created in this namespace."""


def decide_schedule(item: ScheduledSparkApplication, view: ScheduleView) -> Step:
    """Return the next step for a ScheduledSparkApplication."""
    if item.metadata.deleted is not None:
        return Done()
    if view.refusal is not None:
        updated = _judged(item, view, FALSE, view.refusal.reason, view.refusal.message)
        return _written(item, replace(updated, next_schedule_time=None)) or Wait(INVALID_RETRY_S)
    try:
        times = read_times(item.schedule, item.time_zone, item.since)
    except ScheduleError as error:
        updated = _judged(item, view, FALSE, "InvalidSchedule", str(error))
        return _written(item, replace(updated, next_schedule_time=None)) or Wait(INVALID_RETRY_S)
    old = _past_history(item, view)
    if old:
        return DeleteRuns(old)
    missed = None if item.suspend else times.missed(_earliest(item, view), view.now)
    if missed is None:
        return _rest(item, view, times)
    # The run of this time may already exist: the process that created it was killed before it wrote the status.
    others = tuple(run for run in _active(view) if run.key.name != run_name(item, missed.last))
    if others and item.concurrency_policy is ConcurrencyPolicy.FORBID:
        message = f"{others[0].key.name} is still active, so the run of {write_time(missed.last)} is delayed (concurrencyPolicy)."
        return _rest(item, view, times, SparkProblem("RunForbidden", message))
    if others and item.concurrency_policy is ConcurrencyPolicy.REPLACE and view.created is None:
        staying = tuple(run for run in others if run.metadata.deleted is None)
        return DeleteRuns(staying) if staying else Wait(REPLACE_POLL_S)
    if view.created is None:
        return CreateRun(run_name(item, missed.last), run_content(item))
    if isinstance(view.created, SparkProblem):
        updated = _judged(item, view, FALSE, view.created.reason, view.created.message)
        return _written(item, updated) or Retry(REPLACE_POLL_S)
    return _created(item, view, times, missed)


def run_name(item: ScheduledSparkApplication, time: datetime) -> str:
    """Return the name of the run of a scheduled time: the schedule's name, and the minutes since 1970."""
    return f"{item.key.name[:NAME_LENGTH].rstrip('-.')}-{int(time.timestamp()) // 60}"


def run_content(item: ScheduledSparkApplication) -> RawObject:
    """Return metadata and spec of a run."""
    return {"metadata": {"ownerReferences": [controller_reference(item.metadata)]}, "spec": dict(item.template)}


def _earliest(item: ScheduledSparkApplication, view: ScheduleView) -> datetime:
    """Return the time after which scheduled times count: the last run, limited by the deadline."""
    if item.starting_deadline_s is None:
        return item.since
    return max(item.since, view.now - timedelta(seconds=item.starting_deadline_s))


def _created(item: ScheduledSparkApplication, view: ScheduleView, times: Times | PeriodTimes, missed: Missed) -> Step:
    """Record the run of a scheduled time, and the times missed before it."""
    assert isinstance(view.created, str), item.key
    status = _current_status(item, view, times, None)
    status = replace(status, last_schedule_time=write_time(missed.last), last_run_name=view.created)
    status = replace(status, active=tuple(sorted({*status.active, view.created})))
    name = f"{view.created} was created for {write_time(missed.last)}."
    if missed.too_many:
        message = f"More than {MAX_MISSED} scheduled times were missed; {name} Set startingDeadlineSeconds, and check the clock."
        return WriteStatus(status, ResourceEvent(True, "TooManyMissedTimes", message))
    if missed.count > 1:
        return WriteStatus(
            status,
            ResourceEvent(True, "MissedTimes", f"{missed.count - 1} earlier scheduled times were missed; {name}"),
        )
    return WriteStatus(status, ResourceEvent(False, "RunCreated", name))


def _rest(
    item: ScheduledSparkApplication, view: ScheduleView, times: Times | PeriodTimes, held: SparkProblem | None = None
) -> Step:
    """Update the status, and sleep until the next scheduled time."""
    status = _current_status(item, view, times, held)
    late = None if item.suspend or held is not None else _too_late(item, view, times)
    if late is not None:
        status = replace(status, last_schedule_time=write_time(late.last))
        message = f"The run of {write_time(late.last)} is skipped: startingDeadlineSeconds has passed."
        return WriteStatus(status, ResourceEvent(True, "MissedDeadline", message))
    step = _written(item, status)
    if step is not None:
        return step
    following = None if item.suspend else times.next_after(view.now)
    if following is None:
        return Done()
    return Wait(min(MAX_SLEEP_S, max(0.0, (following - view.now).total_seconds())))


def _too_late(item: ScheduledSparkApplication, view: ScheduleView, times: Times | PeriodTimes) -> Missed | None:
    """Return the scheduled times that the deadline skips: they are reported once, and count as done."""
    if item.starting_deadline_s is None:
        return None
    return times.missed(item.since, view.now - timedelta(seconds=item.starting_deadline_s))


def _current_status(
    item: ScheduledSparkApplication, view: ScheduleView, times: Times | PeriodTimes, held: SparkProblem | None
) -> ScheduleStatus:
    """Return the current status."""
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
        stalled=not isinstance(view.created, SparkProblem),  # a run that was rejected is created again
    )
    return replace(item.status, observed_generation=item.metadata.generation, conditions=conditions)


def _written(item: ScheduledSparkApplication, status: ScheduleStatus) -> WriteStatus[ScheduleStatus] | None:
    if status == item.status:
        return None
    event = event_of_change(item.status.conditions, status.conditions)
    ready = ready_of(status.conditions)
    calm = ready is not None and ready.status == TRUE
    return WriteStatus(status, None if event is None else replace(event, warning=not calm))


def _active(view: ScheduleView) -> list[SparkApplication]:
    """Return the runs that have not ended, including those being deleted: their pods may still exist."""
    return [run for run in view.runs if run.status.state is None or not run.status.state.ended]


def _past_history(item: ScheduledSparkApplication, view: ScheduleView) -> tuple[SparkApplication, ...]:
    """Return the oldest ended runs beyond the history limits; a run that is not recorded yet would be created again."""
    noted = [run for run in view.runs if run.metadata.deleted is None and _is_noted(item, run)]
    old: list[SparkApplication] = []
    for state, kept in ((SparkState.COMPLETED, item.successful_history), (SparkState.FAILED, item.failed_history)):
        runs = [run for run in noted if run.status.state is state]
        ordered = sorted(runs, key=lambda run: (run.metadata.created, run.key.name), reverse=True)
        old += ordered[kept:]
    return tuple(old)


def _is_noted(item: ScheduledSparkApplication, run: SparkApplication) -> bool:
    """Return whether the time of a run, which its name ends with, is recorded."""
    minutes = run.key.name.rpartition("-")[2]
    last = item.status.last_schedule_time
    return last is not None and minutes.isdecimal() and int(minutes) * 60 <= read_time(last).timestamp()
