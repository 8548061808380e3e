"""The status of a SparkApplication: its state, attempt and driver.

state               what it means
(none)              not reconciled yet
Submitted           the driver of the current attempt is created
Running             it runs
Completed, Failed   the end
SubmissionFailed    no driver could be created; retried, if the policy allows it
PendingRerun        an attempt has ended, the next one is due at `nextAttemptTime`
Suspending          the driver is being ended, since its user wants it suspended
Suspended           nothing runs, until its user resumes it
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconciler.resources.metadata import Condition, Patch, RawObject, read_conditions
from spark_operator.resources.summary import BalanceSummary, read_summary


class SparkState(StrEnum):
    """How far a SparkApplication is."""

    SUBMITTED = "Submitted"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    SUBMISSION_FAILED = "SubmissionFailed"
    PENDING_RERUN = "PendingRerun"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"

    @property
    def ended(self) -> bool:
        """Whether nothing follows any more."""
        return self in {SparkState.COMPLETED, SparkState.FAILED}


@dataclass(frozen=True, slots=True)
class DriverRecord:
    """The driver of the last attempt; what it wrote last is kept when it failed."""

    name: str
    uid: str
    exit_code: int | None = None
    log_tail: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the API's form; what is not known is taken away by a merge."""
        return {"podName": self.name, "uid": self.uid, "exitCode": self.exit_code, "logTail": self.log_tail}


@dataclass(frozen=True, slots=True)
class ExecutorCounts:
    """Executors of the current attempt."""

    running: int = 0
    pending: int = 0
    succeeded: int = 0
    failed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {"running": self.running, "pending": self.pending, "succeeded": self.succeeded, "failed": self.failed}


@dataclass(frozen=True, slots=True)
class SparkStatus:
    """What is written to `status`; None where nothing is known. Times are RFC 3339."""

    observed_generation: int | None = None
    state: SparkState | None = None
    attempts: int = 0
    """Drivers that were created."""
    failed_attempts: int = 0
    """Attempts that failed since it was created or resumed."""
    failed_submissions: int = 0
    """Submissions in a row that failed."""
    driver: DriverRecord | None = None
    executors: ExecutorCounts | None = None
    """None once nothing of them is left to tidy up."""
    submission_time: str | None = None
    """When the current attempt's driver was created."""
    start_time: str | None = None
    """When the first attempt's driver was created."""
    completion_time: str | None = None
    duration_s: int | None = None
    next_attempt_time: str | None = None
    summary: BalanceSummary | None = None
    """What the last attempt that completed found, where it was one of the balance analytics."""
    conditions: tuple[Condition, ...] = ()

    def to_patch(self) -> Patch:
        """Return the whole status as a merge patch: what is not known is taken away."""
        return {
            "observedGeneration": self.observed_generation,
            "state": None if self.state is None else self.state.value,
            "attempts": self.attempts,
            "failedAttempts": self.failed_attempts,
            "failedSubmissions": self.failed_submissions,
            "driver": None if self.driver is None else self.driver.to_json(),
            "executors": None if self.executors is None else self.executors.to_json(),
            "submissionTime": self.submission_time,
            "startTime": self.start_time,
            "completionTime": self.completion_time,
            "durationSeconds": self.duration_s,
            "nextAttemptTime": self.next_attempt_time,
            "summary": None if self.summary is None else self.summary.to_json(),
            "conditions": [condition.to_json() for condition in self.conditions],
        }


def read_spark_status(status: RawObject) -> SparkStatus:
    """Read `status`; KeyError or ValueError when it does not follow the schema."""
    state, driver, executors = status.get("state"), status.get("driver"), status.get("executors")
    summary = status.get("summary")
    return SparkStatus(
        observed_generation=status.get("observedGeneration"),
        state=None if state is None else SparkState(state),
        attempts=int(status.get("attempts", 0)),
        failed_attempts=int(status.get("failedAttempts", 0)),
        failed_submissions=int(status.get("failedSubmissions", 0)),
        driver=None
        if driver is None
        else DriverRecord(driver["podName"], driver["uid"], driver.get("exitCode"), driver.get("logTail")),
        executors=None if executors is None else ExecutorCounts(**executors),
        submission_time=status.get("submissionTime"),
        start_time=status.get("startTime"),
        completion_time=status.get("completionTime"),
        duration_s=status.get("durationSeconds"),
        next_attempt_time=status.get("nextAttemptTime"),
        summary=None if summary is None else read_summary(summary),
        conditions=read_conditions(status),
    )
