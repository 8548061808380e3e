"""The ScheduledSparkApplication resource: a template of a SparkApplication, and when it runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.names import Key
from reconciler.resources.metadata import (
    Condition,
    Metadata,
    Patch,
    RawObject,
    read_conditions,
    read_metadata,
    read_time,
)
from spark_operator import kinds

DEFAULT_HISTORY = 3
"""Ended runs of each sort that are kept, where nothing else is said: enough to compare, few enough to read."""


class ConcurrencyPolicy(StrEnum):
    """What happens when a run is due while another one goes on."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"


@dataclass(frozen=True, slots=True)
class ScheduleStatus:
    """What is written to `status`; times are RFC 3339, None where nothing is known."""

    observed_generation: int | None = None
    last_schedule_time: str | None = None
    """The last time of the schedule that is done with: its run was created, or it was left out as too late."""
    next_schedule_time: str | None = None
    last_run_name: str | None = None
    active: tuple[str, ...] = ()
    """Runs that have not ended, by name."""
    conditions: tuple[Condition, ...] = ()

    def to_patch(self) -> Patch:
        """Return the whole status as a merge patch: what is not known is taken away."""
        return {
            "observedGeneration": self.observed_generation,
            "lastScheduleTime": self.last_schedule_time,
            "nextScheduleTime": self.next_schedule_time,
            "lastRunName": self.last_run_name,
            "active": list(self.active) or None,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True)
class ScheduledSparkApplication:
    """A ScheduledSparkApplication as its user wrote it, with what we wrote to it."""

    metadata: Metadata
    schedule: str
    time_zone: str
    """A name of the tz database."""
    concurrency_policy: ConcurrencyPolicy
    suspend: bool
    successful_history: int
    failed_history: int
    starting_deadline_s: int | None
    template: RawObject
    status: ScheduleStatus

    @property
    def key(self) -> Key:
        """Return its name in Kubernetes."""
        return self.metadata.key

    @property
    def since(self) -> datetime:
        """Return the time after which runs are due: the last one, else its creation."""
        last = self.status.last_schedule_time
        return self.metadata.created if last is None else read_time(last)


def read_scheduled_spark_application(raw: RawObject) -> ScheduledSparkApplication:
    """Read a ScheduledSparkApplication from JSON; KeyError or ValueError when it does not follow the schema."""
    spec = raw["spec"]
    return ScheduledSparkApplication(
        metadata=read_metadata(kinds.SCHEDULED_SPARK_APPLICATION, raw),
        schedule=spec["schedule"],
        time_zone=spec.get("timeZone", "UTC"),
        concurrency_policy=ConcurrencyPolicy(spec.get("concurrencyPolicy", ConcurrencyPolicy.ALLOW)),
        suspend=bool(spec.get("suspend", False)),
        successful_history=int(spec.get("successfulRunHistoryLimit", DEFAULT_HISTORY)),
        failed_history=int(spec.get("failedRunHistoryLimit", DEFAULT_HISTORY)),
        starting_deadline_s=spec.get("startingDeadlineSeconds"),
        template=spec["template"],
        status=_read_status(raw.get("status") or {}),
    )


def _read_status(status: RawObject) -> ScheduleStatus:
    return ScheduleStatus(
        observed_generation=status.get("observedGeneration"),
        last_schedule_time=status.get("lastScheduleTime"),
        next_schedule_time=status.get("nextScheduleTime"),
        last_run_name=status.get("lastRunName"),
        active=tuple(status.get("active") or ()),
        conditions=read_conditions(status),
    )
