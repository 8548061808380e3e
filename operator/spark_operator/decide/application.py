"""Reconciliation of a SparkApplication with a driver created by the operator.

    (new) ──► driver of attempt 1 ──► Submitted ──► Running ──► Completed
      │                                   │            │   └──► Failed
      │ driver rejected                   └────────────┴─ failed, and the restart policy allows a retry
      ▼                                                ▼
    SubmissionFailed ── retry delay ──► driver n + 1 ◄── PendingRerun: pods of attempt n are deleted, retry delay passed

Each attempt has exactly one driver (O11). The pod's name contains application, uid and attempt, so the API server rejects a second one, and
the name of the next attempt depends only on `status.attempts`. A process that is killed after creating the pod and before writing the
status creates it again, is rejected, and finds the existing pod. An attempt's number is written as soon as its driver is seen,
before anything else is decided (`_unrecorded`), and the next driver is created only when no pod of an earlier attempt is left. Kubernetes
deletes owned objects with their owner, so there is no finalizer.

Edits of `suspend` and `timeToLiveSeconds` take effect immediately, other edits with the next attempt.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.decide.conditions import FALSE
from reconciler.decide.expiry import MAX_WAIT_S, decide_expiry
from reconciler.decide.steps import Done, Wait, WriteStatus
from reconciler.resources.metadata import read_time, write_time
from spark_operator.decide.problems import SparkProblem, driver_problem, waiting_problem
from spark_operator.decide.refusals import refused_spec
from spark_operator.decide.steps import (
    CreateDriver,
    DeletePods,
    ReadLog,
    ReadPods,
    SparkView,
    Step,
)
from spark_operator.decide.transitions import (
    after,
    count,
    ended,
    executors_of,
    moved,
    seconds_until,
    with_executors,
    written,
)
from spark_operator.resources.application import RestartType, SparkApplication
from spark_operator.resources.pods import Phase, Role, SparkPod
from spark_operator.resources.status import DriverRecord, SparkState, SparkStatus
from spark_operator.resources.summary import BalanceSummary, SummaryError, summary_in

POLL_INTERVAL_S = 2.0
"""Interval between reads of the pods of an active application: one list per namespace."""

REFUSED_RETRY_S = 60.0
"""Interval after which an engine that is not permitted is checked again."""

MAX_INTERVAL_S = 3_600.0
"""Maximum delay before the next attempt; delays grow with each failure."""

MAX_LOG_CHARACTERS = 4_096
"""Characters of a driver's log in the status: enough for a Python traceback."""

ALIVE = frozenset({SparkState.SUBMITTED, SparkState.RUNNING})


def decide_spark(application: SparkApplication, view: SparkView) -> Step:
    """Return the next step for a SparkApplication."""
    state = application.status.state
    if application.metadata.deleted is not None:
        return Done()
    if state is not None and state.ended:
        return _after_completion(application, view)
    if view.refusal is not None:
        updated = moved(
            application, view.now, state, view.refusal.reason, view.refusal.message, ready=FALSE, stalled=True
        )
        return written(application, updated) or Wait(REFUSED_RETRY_S)
    if application.spec.suspend or state is SparkState.SUSPENDING:
        return _suspend(application, view)
    if state in ALIVE:
        return _follow_driver(application, view)
    return _submit(application, view)


def _submit(application: SparkApplication, view: SparkView) -> Step:
    """Create the next attempt's driver, once the pods of the previous attempt are deleted and the retry delay has passed."""
    status = application.status
    if status.attempts:
        if view.pods is None:
            return ReadPods()
        unrecorded = _unrecorded(application, view)
        if unrecorded is not None:
            return unrecorded
        if view.pods:
            return _delete(view.pods)
    refused = refused_spec(application.spec)
    if refused is not None:
        updated = moved(application, view.now, status.state, refused.reason, refused.message, ready=FALSE, stalled=True)
        return written(application, updated) or Wait(REFUSED_RETRY_S)
    pause_s = seconds_until(status.next_attempt_time, view.now)
    if pause_s > 0:
        return Wait(min(pause_s, MAX_WAIT_S))
    if view.created is None:
        return CreateDriver(status.attempts + 1)
    if isinstance(view.created, SparkProblem):
        return _not_submitted(application, view, view.created)
    return _submitted(application, view, view.created)


def _submitted(application: SparkApplication, view: SparkView, driver: SparkPod) -> Step:
    """Record the driver of an attempt."""
    uid = application.metadata.uid
    if driver.application_uid != uid:
        text = f"A pod {driver.name} already exists and does not belong to this application. Delete it."
        return _not_submitted(application, view, SparkProblem("DriverNameTaken", text))
    message = f"Attempt {driver.attempt}: created driver {driver.name}."
    updated = replace(
        moved(application, view.now, SparkState.SUBMITTED, "DriverCreated", message),
        attempts=driver.attempt,
        failed_submissions=0,
        driver=DriverRecord(driver.name, driver.uid),
        executors=None,
        submission_time=write_time(view.now),
        start_time=application.status.start_time or write_time(view.now),
        next_attempt_time=None,
    )
    return written(application, updated) or Wait(POLL_INTERVAL_S)


def _not_submitted(application: SparkApplication, view: SparkView, problem: SparkProblem) -> Step:
    policy, failures = application.spec.restart_policy, application.status.failed_submissions + 1
    if failures > policy.submission_retries:
        return _end(application, view, SparkState.FAILED, problem, ())
    updated = replace(
        moved(application, view.now, SparkState.SUBMISSION_FAILED, problem.reason, problem.message, ready=FALSE),
        failed_submissions=failures,
        next_attempt_time=after(view.now, min(MAX_INTERVAL_S, policy.submission_retry_interval_s * failures)),
    )
    return written(application, updated) or Wait(POLL_INTERVAL_S)


def _follow_driver(application: SparkApplication, view: SparkView) -> Step:
    """Update the status from the driver of the current attempt; a driver created in this reconciliation is read in the next one."""
    if view.pods is None:
        return ReadPods() if view.created is None else Wait(POLL_INTERVAL_S)
    step = with_executors(application, view.pods, view.now)
    if step is not None:
        return step
    record = application.status.driver
    assert record is not None, application.key
    driver = next((pod for pod in view.pods if pod.uid == record.uid), None)
    if driver is None:
        return _attempt_failed(application, view, driver_problem(None), None)
    if driver.phase is Phase.SUCCEEDED:
        return _attempt_completed(application, view, driver)
    if driver.phase is Phase.FAILED:
        if application.spec.log_tail_lines and view.log is None:
            return ReadLog(driver, application.spec.log_tail_lines)
        return _attempt_failed(application, view, driver_problem(driver), driver)
    if driver.phase is Phase.RUNNING:
        message = f"Attempt {driver.attempt} runs in driver {driver.name}."
        updated = replace(
            moved(application, view.now, SparkState.RUNNING, "Running", message),
            executors=count(executors_of(application, view.pods)),
        )
        return written(application, updated) or Wait(POLL_INTERVAL_S)
    return _not_started(application, view, driver)


def _not_started(application: SparkApplication, view: SparkView, driver: SparkPod) -> Step:
    """Report why a driver has not started; a driver that does not start in time has failed."""
    problem = waiting_problem(application, driver)
    since = application.status.submission_time
    assert since is not None, application.key
    limit_s = application.spec.start_timeout_s
    if view.now - read_time(since) >= timedelta(seconds=limit_s):
        message = "The cause is unknown." if problem is None else problem.message
        late = SparkProblem(
            "StartTimeout" if problem is None else problem.reason,
            f"The driver has not started within {limit_s} s (spec.startTimeoutSeconds). {message}",
        )
        return _attempt_failed(application, view, late, driver)
    if problem is None:
        return Wait(POLL_INTERVAL_S)
    state = application.status.state
    updated = moved(application, view.now, state, problem.reason, problem.message, ready=FALSE)
    return written(application, updated) or Wait(POLL_INTERVAL_S)


def _attempt_completed(application: SparkApplication, view: SparkView, driver: SparkPod) -> Step:
    """Record completion with the driver's summary; an invalid summary is reported and ignored."""
    assert view.pods is not None, application.key
    status, policy = application.status, application.spec.restart_policy
    message = f"Attempt {status.attempts} completed."
    try:
        summary = summary_in(driver.message)
    except SummaryError as error:
        summary, message = None, f"{message} The summary of its driver is invalid and ignored: {error}."
    if policy.type is RestartType.ALWAYS:
        updated = replace(
            moved(
                application,
                view.now,
                SparkState.PENDING_RERUN,
                "AttemptCompleted",
                f"{message} The next attempt follows.",
            ),
            next_attempt_time=after(view.now, policy.retry_interval_s),
            summary=summary,
        )
        return written(application, updated) or Wait(POLL_INTERVAL_S)
    end = SparkProblem("Completed", message)
    return _end(application, view, SparkState.COMPLETED, end, view.pods, exit_code=0, summary=summary)


def _attempt_failed(
    application: SparkApplication, view: SparkView, problem: SparkProblem, driver: SparkPod | None
) -> Step:
    assert view.pods is not None, application.key
    status, policy = application.status, application.spec.restart_policy
    failures = status.failed_attempts + 1
    again = policy.type is RestartType.ALWAYS or (policy.type is RestartType.ON_FAILURE and failures <= policy.retries)
    exit_code = None if driver is None else driver.exit_code
    if not again:
        return _end(
            application, view, SparkState.FAILED, problem, view.pods, exit_code=exit_code, failed_attempts=failures
        )
    pause_s = min(MAX_INTERVAL_S, float(policy.retry_interval_s * failures))
    message = f"Attempt {status.attempts} failed; retrying in {pause_s:.0f} s. {problem.message}"
    updated = replace(
        moved(application, view.now, SparkState.PENDING_RERUN, problem.reason, message, ready=FALSE),
        failed_attempts=failures,
        driver=_driver_result(status, view, exit_code),
        next_attempt_time=after(view.now, pause_s),
    )
    return written(application, updated) or Wait(POLL_INTERVAL_S)


def _end(
    application: SparkApplication,
    view: SparkView,
    state: SparkState,
    problem: SparkProblem,
    pods: tuple[SparkPod, ...],
    *,
    exit_code: int | None = None,
    failed_attempts: int | None = None,
    summary: BalanceSummary | None = None,
) -> Step:
    status = application.status
    updated = replace(
        ended(application, view.now, state, problem.reason, problem.message),
        driver=_driver_result(status, view, exit_code),
        failed_attempts=status.failed_attempts if failed_attempts is None else failed_attempts,
        executors=count(executors_of(application, pods)) if _to_delete(pods) else None,
        summary=summary,
    )
    return written(application, updated) or Done()


def _driver_result(status: SparkStatus, view: SparkView, exit_code: int | None) -> DriverRecord | None:
    if status.driver is None:
        return None
    tail = view.log[-MAX_LOG_CHARACTERS:] if view.log else None
    return replace(status.driver, exit_code=exit_code, log_tail=tail)


def _after_completion(application: SparkApplication, view: SparkView) -> Step:
    """Delete executors (the driver's pod is kept for its log), then wait until the time to live expires."""
    status = application.status
    if status.executors is None:
        return decide_expiry(status.completion_time, application.spec.time_to_live_s, view.now)
    if view.pods is None:
        return ReadPods()
    left = _to_delete(view.pods)
    return _delete(left) if left else WriteStatus(replace(status, executors=None))


def _suspend(application: SparkApplication, view: SparkView) -> Step:
    """Stop the running attempt, and set Suspended when its pods are deleted."""
    status = application.status
    if status.state is SparkState.SUSPENDED and status.observed_generation == application.metadata.generation:
        return Done()
    if view.pods is None:
        return ReadPods()
    unrecorded = None if status.state in {*ALIVE, SparkState.SUSPENDING} else _unrecorded(application, view)
    if unrecorded is not None:
        return unrecorded
    if view.pods:
        message = f"Attempt {status.attempts} is being stopped."
        updated = moved(application, view.now, SparkState.SUSPENDING, "Suspending", message)
        return written(application, updated) or _delete(view.pods)
    if status.state is not SparkState.SUSPENDING and status.state in ALIVE:
        updated = moved(application, view.now, SparkState.SUSPENDING, "Suspending", "Its driver has been deleted.")
        return written(application, updated) or Wait(POLL_INTERVAL_S)
    message = "Suspended until spec.suspend is false."
    updated = replace(
        moved(application, view.now, SparkState.SUSPENDED, "Suspended", message),
        failed_attempts=0,
        failed_submissions=0,
        executors=None,
        next_attempt_time=None,
    )
    return written(application, updated) or Done()


def _unrecorded(application: SparkApplication, view: SparkView) -> Step | None:
    """Record an attempt whose driver exists but is not in the status: the process that created it was killed before the write."""
    assert view.pods is not None, application.key
    drivers = [pod for pod in view.pods if pod.role is Role.DRIVER and pod.attempt > application.status.attempts]
    return _submitted(application, view, drivers[0]) if drivers else None


def _to_delete(pods: tuple[SparkPod, ...]) -> tuple[SparkPod, ...]:
    """Return the pods to delete at the end: executors, and a driver that has not ended."""
    return tuple(pod for pod in pods if pod.role is Role.EXECUTOR or pod.alive)


def _delete(pods: tuple[SparkPod, ...]) -> Step:
    """Delete the pods that are not being deleted yet, then wait until all are gone."""
    going = tuple(pod for pod in pods if not pod.deleting)
    return DeletePods(going) if going else Wait(POLL_INTERVAL_S)
