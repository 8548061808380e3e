"""Reconciliation of a SparkApplication with a driver created by the operator.

    (new) ──► driver of attempt 1 ──► Submitted ──► Running ──► Completed
      │                                   │            │   └──► Failed
      │ no such driver may be             └────────────┴─ failed, and the policy says again
      ▼                                                ▼
    SubmissionFailed ── after a while ──► driver n + 1 ◄── PendingRerun: pods of attempt n are gone, its interval is over

Exactly one driver an attempt (O11). Its pod is named by application, uid and attempt, so the API server itself refuses a second one, and
the name that the next attempt will have follows from `status.attempts` alone: a process that is killed between creating the pod and
writing so down creates it again, is refused, finds its own, and goes on. An attempt's number is written as soon as its driver is seen,
before anything else is decided (`_unseen`), and the next driver is created only when no pod of an earlier attempt is left. What is owned
goes with its owner, so there is no finalizer.

Edits of `suspend` and `timeToLiveSeconds` take effect at once, others with the next attempt.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from kafka_operator.decide.conditions import FALSE
from kafka_operator.decide.spark_judging import (
    after,
    count,
    ended,
    executors_of,
    moved,
    seconds_until,
    with_executors,
    written,
)
from kafka_operator.decide.spark_refusals import refused_spec
from kafka_operator.decide.spark_steps import (
    CreateDriver,
    DeleteApplication,
    DeletePods,
    LookAtPods,
    ReadLog,
    SparkView,
    Step,
)
from kafka_operator.decide.spark_troubles import Trouble, driver_trouble, waiting_trouble
from kafka_operator.decide.steps import Done, Wait, WriteStatus
from kafka_operator.resources.metadata import read_time, write_time
from kafka_operator.resources.spark_application import RestartType, SparkApplication
from kafka_operator.resources.spark_pods import Phase, Role, SparkPod
from kafka_operator.resources.spark_status import DriverRecord, SparkState, SparkStatus
from kafka_operator.resources.spark_summary import BalanceSummary, SummaryError, summary_in

LOOK_EVERY_S = 2.0
"""How often pods of an application that goes on are looked at: one list for all of a namespace."""

REFUSED_LOOK_S = 60.0
"""How often it is seen whether an engine may be used by now."""

MAX_INTERVAL_S = 3_600.0
"""The longest pause before another attempt: intervals grow with each failure."""

MAX_WAIT_S = 3_600.0
"""The longest sleep until a time to live is over: who edits it wakes it up, a clock that is set does not."""

MAX_LOG_CHARACTERS = 4_096
"""Of a driver's last words in the status: enough for a Python traceback."""

ALIVE = frozenset({SparkState.SUBMITTED, SparkState.RUNNING})


def decide_spark(application: SparkApplication, view: SparkView) -> Step:
    """Return the next step for a SparkApplication."""
    state = application.status.state
    if application.metadata.deleted is not None:
        return Done()
    if state is not None and state.ended:
        return _after_the_end(application, view)
    if view.refusal is not None:
        told = moved(application, view.now, state, view.refusal.reason, view.refusal.message, ready=FALSE)
        return written(application, told) or Wait(REFUSED_LOOK_S)
    if application.spec.suspend or state is SparkState.SUSPENDING:
        return _suspend(application, view)
    if state in ALIVE:
        return _look_after(application, view)
    return _submit(application, view)


def _submit(application: SparkApplication, view: SparkView) -> Step:
    """Have the next attempt's driver created, once the one before it is gone and its time has come."""
    status = application.status
    if status.attempts:
        if view.pods is None:
            return LookAtPods()
        unseen = _unseen(application, view)
        if unseen is not None:
            return unseen
        if view.pods:
            return _delete(view.pods)
    refused = refused_spec(application.spec)
    if refused is not None:
        told = moved(application, view.now, status.state, refused.reason, refused.message, ready=FALSE)
        return written(application, told) or Wait(REFUSED_LOOK_S)
    pause_s = seconds_until(status.next_attempt_time, view.now)
    if pause_s > 0:
        return Wait(min(pause_s, MAX_WAIT_S))
    if view.created is None:
        return CreateDriver(status.attempts + 1)
    if isinstance(view.created, Trouble):
        return _not_submitted(application, view, view.created)
    return _submitted(application, view, view.created)


def _submitted(application: SparkApplication, view: SparkView, driver: SparkPod) -> Step:
    """Write down which attempt has which driver."""
    uid = application.metadata.uid
    if driver.application_uid != uid:
        words = f"A pod {driver.name} already exists and does not belong to this application. Delete it."
        return _not_submitted(application, view, Trouble("DriverNameTaken", words))
    message = f"Attempt {driver.attempt}: created driver {driver.name}."
    told = replace(
        moved(application, view.now, SparkState.SUBMITTED, "DriverCreated", message),
        attempts=driver.attempt,
        failed_submissions=0,
        driver=DriverRecord(driver.name, driver.uid),
        executors=None,
        submission_time=write_time(view.now),
        start_time=application.status.start_time or write_time(view.now),
        next_attempt_time=None,
    )
    return written(application, told) or Wait(LOOK_EVERY_S)


def _not_submitted(application: SparkApplication, view: SparkView, trouble: Trouble) -> Step:
    policy, failures = application.spec.restart_policy, application.status.failed_submissions + 1
    if failures > policy.submission_retries:
        return _end(application, view, SparkState.FAILED, trouble, ())
    told = replace(
        moved(application, view.now, SparkState.SUBMISSION_FAILED, trouble.reason, trouble.message, ready=FALSE),
        failed_submissions=failures,
        next_attempt_time=after(view.now, min(MAX_INTERVAL_S, policy.submission_retry_interval_s * failures)),
    )
    return written(application, told) or Wait(LOOK_EVERY_S)


def _look_after(application: SparkApplication, view: SparkView) -> Step:
    """Follow the driver of the present attempt; one that was created in this very try has nothing to tell yet."""
    if view.pods is None:
        return LookAtPods() if view.created is None else Wait(LOOK_EVERY_S)
    news = with_executors(application, view.pods, view.now)
    if news is not None:
        return news
    record = application.status.driver
    assert record is not None, application.key
    driver = next((pod for pod in view.pods if pod.uid == record.uid), None)
    if driver is None:
        return _attempt_failed(application, view, driver_trouble(None), None)
    if driver.phase is Phase.SUCCEEDED:
        return _attempt_completed(application, view, driver)
    if driver.phase is Phase.FAILED:
        if application.spec.log_tail_lines and view.log is None:
            return ReadLog(driver, application.spec.log_tail_lines)
        return _attempt_failed(application, view, driver_trouble(driver), driver)
    if driver.phase is Phase.RUNNING:
        message = f"Attempt {driver.attempt} runs in driver {driver.name}."
        told = replace(
            moved(application, view.now, SparkState.RUNNING, "Running", message),
            executors=count(executors_of(application, view.pods)),
        )
        return written(application, told) or Wait(LOOK_EVERY_S)
    return _not_started(application, view, driver)


def _not_started(application: SparkApplication, view: SparkView, driver: SparkPod) -> Step:
    """Tell what holds a driver up; one that does not start in time has failed."""
    trouble = waiting_trouble(application, driver)
    since = application.status.submission_time
    assert since is not None, application.key
    limit_s = application.spec.start_timeout_s
    if view.now - read_time(since) >= timedelta(seconds=limit_s):
        words = "The cause is unknown." if trouble is None else trouble.message
        late = Trouble(
            "StartTimeout" if trouble is None else trouble.reason,
            f"The driver has not started within {limit_s} s (spec.startTimeoutSeconds). {words}",
        )
        return _attempt_failed(application, view, late, driver)
    if trouble is None:
        return Wait(LOOK_EVERY_S)
    state = application.status.state
    told = moved(application, view.now, state, trouble.reason, trouble.message, ready=FALSE)
    return written(application, told) or Wait(LOOK_EVERY_S)


def _attempt_completed(application: SparkApplication, view: SparkView, driver: SparkPod) -> Step:
    """Write down the end, with the summary that the driver left; one that cannot be read is told of, and nothing else."""
    assert view.pods is not None, application.key
    status, policy = application.status, application.spec.restart_policy
    words = f"Attempt {status.attempts} completed."
    try:
        summary = summary_in(driver.message)
    except SummaryError as error:
        summary, words = None, f"{words} The summary of its driver is invalid and ignored: {error}."
    if policy.type is RestartType.ALWAYS:
        told = replace(
            moved(
                application,
                view.now,
                SparkState.PENDING_RERUN,
                "AttemptCompleted",
                f"{words} The next attempt follows.",
            ),
            next_attempt_time=after(view.now, policy.retry_interval_s),
            summary=summary,
        )
        return written(application, told) or Wait(LOOK_EVERY_S)
    end = Trouble("Completed", words)
    return _end(application, view, SparkState.COMPLETED, end, view.pods, exit_code=0, summary=summary)


def _attempt_failed(application: SparkApplication, view: SparkView, trouble: Trouble, driver: SparkPod | None) -> Step:
    assert view.pods is not None, application.key
    status, policy = application.status, application.spec.restart_policy
    failures = status.failed_attempts + 1
    again = policy.type is RestartType.ALWAYS or (policy.type is RestartType.ON_FAILURE and failures <= policy.retries)
    exit_code = None if driver is None else driver.exit_code
    if not again:
        return _end(
            application, view, SparkState.FAILED, trouble, view.pods, exit_code=exit_code, failed_attempts=failures
        )
    pause_s = min(MAX_INTERVAL_S, float(policy.retry_interval_s * failures))
    message = f"Attempt {status.attempts} failed; retrying in {pause_s:.0f} s. {trouble.message}"
    told = replace(
        moved(application, view.now, SparkState.PENDING_RERUN, trouble.reason, message, ready=FALSE),
        failed_attempts=failures,
        driver=_last_words(status, view, exit_code),
        next_attempt_time=after(view.now, pause_s),
    )
    return written(application, told) or Wait(LOOK_EVERY_S)


def _end(
    application: SparkApplication,
    view: SparkView,
    state: SparkState,
    trouble: Trouble,
    pods: tuple[SparkPod, ...],
    *,
    exit_code: int | None = None,
    failed_attempts: int | None = None,
    summary: BalanceSummary | None = None,
) -> Step:
    status = application.status
    told = replace(
        ended(application, view.now, state, trouble.reason, trouble.message),
        driver=_last_words(status, view, exit_code),
        failed_attempts=status.failed_attempts if failed_attempts is None else failed_attempts,
        executors=count(executors_of(application, pods)) if _to_tidy(pods) else None,
        summary=summary,
    )
    return written(application, told) or Done()


def _last_words(status: SparkStatus, view: SparkView, exit_code: int | None) -> DriverRecord | None:
    if status.driver is None:
        return None
    tail = view.log[-MAX_LOG_CHARACTERS:] if view.log else None
    return replace(status.driver, exit_code=exit_code, log_tail=tail)


def _after_the_end(application: SparkApplication, view: SparkView) -> Step:
    """Tidy executors up (the driver's pod stays, for its log), then wait until the time to live is over."""
    status = application.status
    if status.executors is None:
        return live_on(application, view)
    if view.pods is None:
        return LookAtPods()
    left = _to_tidy(view.pods)
    return _delete(left) if left else WriteStatus(replace(status, executors=None))


def live_on(application: SparkApplication, view: SparkView) -> Step:
    """Wait until the time to live of an application that has ended is over, then have it deleted."""
    completed, limit_s = application.status.completion_time, application.spec.time_to_live_s
    if limit_s is None or completed is None:
        return Done()
    over = read_time(completed) + timedelta(seconds=limit_s)
    if view.now >= over:
        return DeleteApplication()
    return Wait(min((over - view.now).total_seconds(), MAX_WAIT_S))


def _suspend(application: SparkApplication, view: SparkView) -> Step:
    """Stop the running attempt, and set Suspended when its pods are deleted."""
    status = application.status
    if status.state is SparkState.SUSPENDED and status.observed_generation == application.metadata.generation:
        return Done()
    if view.pods is None:
        return LookAtPods()
    unseen = None if status.state in {*ALIVE, SparkState.SUSPENDING} else _unseen(application, view)
    if unseen is not None:
        return unseen
    if view.pods:
        message = f"Attempt {status.attempts} is being stopped."
        told = moved(application, view.now, SparkState.SUSPENDING, "Suspending", message)
        return written(application, told) or _delete(view.pods)
    if status.state is not SparkState.SUSPENDING and status.state in ALIVE:
        told = moved(application, view.now, SparkState.SUSPENDING, "Suspending", "Its driver has been deleted.")
        return written(application, told) or Wait(LOOK_EVERY_S)
    message = "Suspended until spec.suspend is false."
    told = replace(
        moved(application, view.now, SparkState.SUSPENDED, "Suspended", message),
        failed_attempts=0,
        failed_submissions=0,
        executors=None,
        next_attempt_time=None,
    )
    return written(application, told) or Done()


def _unseen(application: SparkApplication, view: SparkView) -> Step | None:
    """Write down an attempt whose driver is there and that nobody noted: whoever created it was killed before."""
    assert view.pods is not None, application.key
    drivers = [pod for pod in view.pods if pod.role is Role.DRIVER and pod.attempt > application.status.attempts]
    return _submitted(application, view, drivers[0]) if drivers else None


def _to_tidy(pods: tuple[SparkPod, ...]) -> tuple[SparkPod, ...]:
    """Return what is not to outlive the end: executors, and a driver that has not ended."""
    return tuple(pod for pod in pods if pod.role is Role.EXECUTOR or pod.alive)


def _delete(pods: tuple[SparkPod, ...]) -> Step:
    """Delete what is not on its way out already, then wait for all of it."""
    going = tuple(pod for pod in pods if not pod.deleting)
    return DeletePods(going) if going else Wait(LOOK_EVERY_S)
