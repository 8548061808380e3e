"""Statuses of SparkApplications: state transitions, the Ready condition, and events for their changes.

Ready is True when the application has completed, Unknown while it runs without problems, False otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.decide.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    condition_of,
    event_of_change,
    judged_job,
    ready_of,
    with_condition,
)
from reconciler.decide.steps import ResourceEvent, WriteStatus
from reconciler.resources.metadata import read_time, write_time
from spark_operator.decide.problems import SparkProblem, executor_problem
from spark_operator.decide.states import may_follow
from spark_operator.resources.application import SparkApplication
from spark_operator.resources.pods import Phase, Role, SparkPod
from spark_operator.resources.status import ExecutorCounts, SparkState, SparkStatus

EXECUTORS = "ExecutorsHealthy"
"""Condition that reports executors that were killed, evicted or could not start; absent until that happens."""


def moved(
    application: SparkApplication,
    now: datetime,
    state: SparkState | None,
    reason: str,
    message: str,
    *,
    ready: str = UNKNOWN,
    mirrored: bool = False,
    stalled: bool = False,
) -> SparkStatus:
    """Return the status in a state, with the given Ready; states of another operator may be skipped (`mirrored`).

    `stalled` where nothing happens before a user acts.
    """
    before = application.status
    assert mirrored or may_follow(before.state, state), (application.key, before.state, state)
    ended = state is not None and state.ended
    judged = judged_job(
        application.metadata, before, ready=ready, reason=reason, message=message, now=now, ended=ended, stalled=stalled
    )
    return replace(judged, state=state)


def ended(application: SparkApplication, now: datetime, state: SparkState, reason: str, message: str) -> SparkStatus:
    """Return the status of an application that has ended."""
    status = application.status
    ready = TRUE if state is SparkState.COMPLETED else FALSE
    began = status.start_time
    duration_s = None if began is None else max(0, round((now - read_time(began)).total_seconds()))
    return replace(
        moved(application, now, state, reason, message, ready=ready),
        completion_time=write_time(now),
        duration_s=duration_s,
        next_attempt_time=None,
    )


def written(application: SparkApplication, status: SparkStatus) -> WriteStatus[SparkStatus] | None:
    """Return the write of a changed status, with an event if state or reason changed; None if nothing differs."""
    if status == application.status:
        return None
    old, new = ready_of(application.status.conditions), ready_of(status.conditions)
    assert new is not None, application.key
    if old is not None and (old.reason, application.status.state) == (new.reason, status.state):
        return WriteStatus(status)
    return WriteStatus(status, ResourceEvent(warning=new.status == FALSE, reason=new.reason, message=new.message))


def with_executors(
    application: SparkApplication, pods: tuple[SparkPod, ...], now: datetime
) -> WriteStatus[SparkStatus] | None:
    """Return the write of changes of executors, whose condition is separate from Ready."""
    status = application.status
    problem = executor_problem(executors_of(application, pods))
    if problem is None and condition_of(status.conditions, EXECUTORS) is None:
        return None
    shown = problem or SparkProblem("AsAskedFor", "No executor has a problem.")
    conditions = with_condition(
        status.conditions,
        EXECUTORS,
        status=TRUE if problem is None else FALSE,
        reason=shown.reason,
        message=shown.message,
        generation=application.metadata.generation,
        now=now,
    )
    if conditions == status.conditions:
        return None
    event = event_of_change(status.conditions, conditions, EXECUTORS)
    return WriteStatus(replace(status, conditions=conditions), event)


def executors_of(application: SparkApplication, pods: tuple[SparkPod, ...]) -> list[SparkPod]:
    """Return the executors of the current attempt."""
    return [pod for pod in pods if pod.role is Role.EXECUTOR and pod.attempt == application.status.attempts]


def count(executors: list[SparkPod]) -> ExecutorCounts:
    """Return the number of executors by phase."""
    phases = [pod.phase for pod in executors]
    return ExecutorCounts(
        running=phases.count(Phase.RUNNING),
        pending=phases.count(Phase.PENDING),
        succeeded=phases.count(Phase.SUCCEEDED),
        failed=phases.count(Phase.FAILED),
    )


def after(now: datetime, seconds: float) -> str:
    """Return a later time in the API's form, rounded up to whole seconds."""
    return write_time(now + timedelta(seconds=seconds, microseconds=999_999))


def seconds_until(moment: str | None, now: datetime) -> float:
    """Return the seconds until a time; 0 if there is none, or if it has passed."""
    return 0.0 if moment is None else max(0.0, (read_time(moment) - now).total_seconds())
